"""What the user said, as frozen data: nodes, the ports between them, and checks on the whole."""
