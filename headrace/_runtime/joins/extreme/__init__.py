"""The rows with the greatest or least value of their window."""
