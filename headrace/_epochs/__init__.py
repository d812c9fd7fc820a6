"""The epoch planner: facts in, the next offset out. Pure."""
