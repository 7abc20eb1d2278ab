"""Fitted parameters in the formats of schedulers."""
