"""Fitted parameters on their way to the apps that schedule with them."""
