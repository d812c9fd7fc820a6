"""Count windows: numbers of rows of a key, in order of arrival, whatever their time."""
