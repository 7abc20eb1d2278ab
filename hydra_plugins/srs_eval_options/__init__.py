"""The options of other packages, where srs_eval is the application that runs."""
