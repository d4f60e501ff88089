"""Stand-ins for the other side of an interface."""
