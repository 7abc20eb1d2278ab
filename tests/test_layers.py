"""The shape of the package: who may import whom, and what it depends on."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import importlinter.cli
import pytest
from cases import ROOT
from packaging.utils import canonicalize_name

TEXTS = {str(path): path.read_text("utf-8") for path in sorted(ROOT.glob("srs_eval/**/*.py"))}


def nodes(kind):
    """Every node of a kind, with the file it is in."""
    for name, text in TEXTS.items():
        yield from ((name, node) for node in ast.walk(ast.parse(text)) if isinstance(node, kind))


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
    modules = {alias.name for _, node in nodes(ast.Import) for alias in node.names}
    modules |= {node.module for _, node in nodes(ast.ImportFrom)}
    others = {name.partition(".")[0] for name in modules} - {"srs_eval", "hydra_plugins"}
    owners = packages_distributions()
    names = {
        name: {*map(canonicalize_name, owners.get(name, [name]))}
        for name in others - set(sys.stdlib_module_names)
    }
    assert [name for name, owned in names.items() if not declared & owned] == []


def test_nothing_depends_on_the_name_of_an_algorithm_and_no_compiled_code_is_kept_on_disk():
    """docs/decisions.md says why nothing is kept."""
    names = {path.stem for path in ROOT.glob("conf/algo/*.yaml")}
    wrong = [
        (file, ast.unparse(compared))
        for file, compared in nodes(ast.Compare)
        for part in ast.walk(compared)
        if isinstance(part, ast.Constant) and part.value in names
    ]
    assert wrong == []
    assert not [file for file, text in TEXTS.items() if "cache=True" in text]
