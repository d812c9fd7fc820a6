"""Each row beside the one of another input that is nearest in time: versioned and as-of joins."""
