"""Two streams in one step."""
