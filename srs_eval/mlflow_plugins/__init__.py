"""What MLflow and Hydra find of srs_eval by themselves; one tiny module per entry point.

MLflow loads them while it is itself being imported: a module that imports more than its one
abstract class meets a circular import and is dropped, so that all work is done elsewhere.
"""
