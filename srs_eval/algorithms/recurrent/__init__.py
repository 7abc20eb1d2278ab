"""The recurrent network that needs no PyTorch."""
