"""Recurrent memory models, one pass per card."""
