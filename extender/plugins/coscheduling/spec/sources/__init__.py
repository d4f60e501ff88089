"""The ways besides our own PodGroup in which pods and other systems' objects make a gang: which keys, and what their values mean."""
