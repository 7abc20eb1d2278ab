"""The search over hyper-parameters."""
