"""A sweeper for Hydra that searches with Optuna and survives being killed."""
