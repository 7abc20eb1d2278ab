"""Models that learn from every answer, also within a session: what they read, and how."""
