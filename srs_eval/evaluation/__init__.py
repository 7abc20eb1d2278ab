"""The evaluation of one algorithm: fit and predict each user, then score."""
