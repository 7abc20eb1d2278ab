"""What an interval does to recall: Anki's fuzz, read as a randomised experiment."""
