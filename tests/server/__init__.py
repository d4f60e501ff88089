"""The server: the application through Flask's client, and the real worker in a process of its own."""
