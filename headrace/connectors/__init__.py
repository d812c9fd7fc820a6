"""Sources and sinks, one package each; a program imports the ones that it uses."""
