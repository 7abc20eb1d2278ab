"""Schedulers whose intervals imply a forgetting curve."""
