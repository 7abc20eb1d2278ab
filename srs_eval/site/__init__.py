"""A static site of leaderboards, made from submissions."""
