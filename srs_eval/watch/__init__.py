"""Recorded predictions of an app in production, looked at every night."""
