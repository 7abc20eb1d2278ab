"""What a person sees of an evaluation: tables, files, plots."""
