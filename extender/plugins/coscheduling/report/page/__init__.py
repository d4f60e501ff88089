"""What the page of the ops listener shows, as it changes: nodes, gangs, and each change of them as one message."""
