"""Configuration: types, defaults, validation and loading of our own file and of KubeSchedulerConfiguration."""
