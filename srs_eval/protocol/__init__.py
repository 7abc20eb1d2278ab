"""Which reviews are scored, and what may be learned before each of them."""
