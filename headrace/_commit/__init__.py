"""The commit protocol: what is durable, what is visible, and how one becomes the other."""
