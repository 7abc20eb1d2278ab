"""The command lines: ``python -m srs_eval`` and its siblings."""
