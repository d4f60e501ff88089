"""Finds what is wrong with an installation: configuration files that do not fit together, and what a cluster lacks."""
