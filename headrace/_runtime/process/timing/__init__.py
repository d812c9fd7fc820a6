"""What is to come: timers, and rows that wait for their time."""
