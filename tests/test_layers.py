"""The shape of the package: who may import whom, and what it depends on."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import importlinter.cli
import pytest
from cases import ROOT
from packaging.utils import canonicalize_name


def test_layers_hold():
    """Contracts in pyproject.toml say who may import whom, and where each library is at home."""
    assert importlinter.cli.lint_imports(config_filename=str(ROOT / "pyproject.toml")) == 0


@pytest.mark.slow
def test_what_is_imported_is_declared_as_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *(extras[name] for name in extras.keys() - {"test", "dev"})]
    declared = {
        canonicalize_name(re.match(r"[\w-]+", each)[0]) for group in groups for each in group
    }
    texts = "\n".join(path.read_text("utf-8") for path in ROOT.glob("srs_eval/**/*.py"))
    modules = re.findall(r"^ *(?:import|from) (\w+)[\w.]*(?: import .*| as \w+|)$", texts, re.M)
    others = {*modules} - {"srs_eval", "hydra_plugins"}
    owners = packages_distributions()
    names = {
        name: {*map(canonicalize_name, owners.get(name, [name]))}
        for name in others - set(sys.stdlib_module_names)
    }
    assert [name for name, owned in names.items() if not declared & owned] == []
