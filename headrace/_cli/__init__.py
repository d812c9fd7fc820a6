"""The command line: `headrace`."""
