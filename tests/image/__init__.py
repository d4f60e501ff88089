"""The image, started from its root file system: what the Dockerfile makes is enough to serve."""
