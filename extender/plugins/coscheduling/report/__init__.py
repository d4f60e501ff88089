"""Why a gang waits and what would make it fit, for pages, conditions, events and metrics."""
