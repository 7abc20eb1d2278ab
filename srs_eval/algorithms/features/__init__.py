"""Models of log-odds on features of the history."""
