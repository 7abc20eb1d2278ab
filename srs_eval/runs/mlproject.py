"""A command whose words are in strings, as in MLproject.

``python -m srs_eval.runs.mlproject srs_eval "data=anki 'data.path=my cards.colpkg'"`` is
``python -m srs_eval data=anki 'data.path=my cards.colpkg'``.
"""

import runpy
import shlex
import sys

if __name__ == "__main__":
    module, *texts = sys.argv[1:]
    try:
        sys.argv = [module, *(word for text in texts for word in shlex.split(text))]
    except ValueError as error:  # A quotation mark that is not closed
        sys.exit(f"srs_eval: {' '.join(texts)}: {str(error).lower()}")
    runpy.run_module(module, run_name="__main__", alter_sys=True)
