"""Memory models: one family per file."""
