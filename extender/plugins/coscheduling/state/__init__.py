"""What is known of gangs, under one lock: groups, members, quorum, sets of groups, places kept, what was decided."""
