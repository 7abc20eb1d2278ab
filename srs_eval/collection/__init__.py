"""The report on one Anki collection: ``python -m srs_eval.collection``."""
