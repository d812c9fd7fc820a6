"""Sessions: rows folded to runs, runs merged into sessions by key, sessions fired when their gap has passed."""
