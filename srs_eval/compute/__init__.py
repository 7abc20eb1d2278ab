"""Ways to evaluate many users: one interface, several machines or processes."""
