"""The shape of the package: who may import whom."""

import importlinter.cli
from cases import ROOT


def test_layers_hold():
    """Contracts in pyproject.toml say who may import whom, and where each library is at home."""
    assert importlinter.cli.lint_imports(config_filename=str(ROOT / "pyproject.toml")) == 0
