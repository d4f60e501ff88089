"""What is known of gangs, their members and their places, under one lock. No code here."""
