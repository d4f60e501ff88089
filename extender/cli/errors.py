"""What a command raises for wrong use; main turns it into exit code 2."""


class UsageError(Exception):
    """An unknown file, a flag that does not fit. The text names the place."""


class UnusableKubeconfigError(UsageError):
    """A kubeconfig that is not there, is malformed, or names what is not there."""
