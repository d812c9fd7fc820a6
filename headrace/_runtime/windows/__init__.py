"""Windows: one folder for each way of keeping them, and beside them what several of them need."""
