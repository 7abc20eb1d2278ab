"""Runs in MLflow, by MLflow's own functions."""


class Nothing:
    """Keep no runs."""


class Mlflow:
    """Log runs to MLflow."""

    def __init__(self, **arguments: object) -> None:
        self.arguments = arguments
