"""A cluster without a cluster: YAML files in, the mirror's own scheduleOne, a report out."""
