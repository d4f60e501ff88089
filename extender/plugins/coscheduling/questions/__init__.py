"""What would become of gangs if: one that is not there yet, those on a node that is drained. Nothing is noted of any answer."""
