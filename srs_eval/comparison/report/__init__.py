"""A comparison as tables, HTML, LaTeX and figures."""
