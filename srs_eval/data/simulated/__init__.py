"""Simulated users: memory, habits and scheduler."""
