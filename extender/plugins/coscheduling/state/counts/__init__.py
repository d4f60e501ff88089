"""What is counted of a group's members, and what follows from the numbers."""
