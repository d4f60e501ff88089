"""The parts of PodGroupManager, one idea each; each knows only those that it is given."""
