"""For people in Python: evaluate, compare, fit and load; `srs_eval` itself has their names."""
