"""Which events may help which gangs that wait."""
