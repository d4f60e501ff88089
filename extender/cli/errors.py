"""What a command raises for wrong use, which main turns into exit code 2, and where there is no answer to show."""


class UsageError(Exception):
    """An unknown file, a flag that does not fit. The text names the place. Each argument is a line of it."""

    def __str__(self) -> str:
        return "\n".join(self.args)


class NoAnswerError(OSError):
    """There is no answer to show: nothing listens, another program does, or what is asked about is not there."""


class NotThereError(NoAnswerError):
    """The extender answers, and does not know what is asked about."""


class UnusableKubeconfigError(UsageError):
    """A kubeconfig that is not there, is malformed, or names what is not there."""
