"""The metric panel: proper scores, calibration, discrimination, behaviour over time."""
