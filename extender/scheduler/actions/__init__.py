"""What is written to the API server for gangs: nominations, gates, wake-ups, conditions, events, evictions."""
