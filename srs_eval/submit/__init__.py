"""Submissions: the results of a run as two files that others can check and compare."""
