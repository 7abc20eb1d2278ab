"""Runs: from the words of a command to a finished folder."""
