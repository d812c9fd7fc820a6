"""From the graph to what runs: stages in a line, cut at shuffles."""
