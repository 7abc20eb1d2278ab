"""The folder of a run: its only writer and its only reader."""
