"""Members that a job makes in a later phase: what is known of them, and the room that is kept for them."""
