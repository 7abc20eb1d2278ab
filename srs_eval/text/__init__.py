"""Text for people: the console, escapes for files, and suggestions for misspelt names."""
