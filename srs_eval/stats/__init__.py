"""Inference about means over users: estimates, intervals and tests."""
