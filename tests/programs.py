"""Programs of the checkout as modules, wherever they are."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def loaded(path):
    """Load a file, below the checkout if the path is relative."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
