"""Searches over settings: what to try next, what became of it, and what was best.

Optuna is imported by a search alone. `progress` is what a job needs to know of the search it
is part of, if it is part of one.
"""
