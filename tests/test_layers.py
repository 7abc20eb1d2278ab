"""The shape of the package: who may import whom; and skips of tests are not silent in CI."""

import ast
import os
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from commands import process, write
from packaging.utils import canonicalize_name

PACKAGE = Path(__file__).parents[1] / "srs_eval"
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports inside functions: each of these keeps something quick that need not wait.
MAY_IMPORT_LATE = """
    algorithms/half_life/hlr.py api.py results.py
    collection/command.py comparison/files.py metrics/score.py
    __main__.py runs/callbacks.py runs/cli.py runs/commands.py runs/compute.py runs/config.py
    runs/drawing.py runs/evaluation.py runs/job.py runs/mlflow_model.py
    runs/mlflow_store.py runs/tracking.py runs/words.py
    runs/ray.py runs/search.py data/anki/__init__.py data/table.py
"""

TEXTS = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}


@cache
def nodes(kind):
    """Every node of a kind, with the file it is in."""
    if kind is not ast.AST:
        return [(place, node) for place, node in nodes(ast.AST) if isinstance(node, kind)]
    return [(place, node) for place, text in TEXTS.items() for node in ast.walk(ast.parse(text))]


def imported(node):
    """Every module that is imported anywhere below a node, as dotted names."""
    for below in ast.walk(node):
        if isinstance(below, ast.Import):
            yield from (alias.name for alias in below.names)
        elif isinstance(below, ast.ImportFrom) and below.module == "srs_eval":
            yield from (f"srs_eval.{alias.name}" for alias in below.names)
        elif isinstance(below, ast.ImportFrom):
            yield below.module


def test_layers_hold():
    """Contracts in pyproject.toml say who may import whom, and where each library is at home."""
    import importlinter.cli

    contracts = PACKAGE.parent / "pyproject.toml"
    assert importlinter.cli.lint_imports(config_filename=str(contracts)) == 0


def test_imports_stand_on_top():
    late = {
        (place, name)
        for place, function in nodes(ast.FunctionDef)
        for name in imported(function)
        if place not in MAY_IMPORT_LATE.split()
    }
    assert late == set()


@pytest.mark.slow
def test_what_is_imported_is_declared_as_a_dependency():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *(extras[name] for name in extras.keys() - {"test", "dev"})]
    declared = {
        canonicalize_name(re.match(r"[\w-]+", each)[0]) for group in groups for each in group
    }
    modules = {name.partition(".")[0] for _, tree in nodes(ast.Module) for name in imported(tree)}
    others = modules - set(sys.stdlib_module_names) - {"srs_eval", "hydra_plugins"}
    owners = packages_distributions()
    names = {name: {*map(canonicalize_name, owners.get(name, [name]))} for name in others}
    assert [name for name, owned in names.items() if not declared & owned] == []


def test_nothing_depends_on_the_name_of_an_algorithm():
    names = {path.stem for path in (PACKAGE.parent / "conf/algo").glob("*.yaml")}
    wrong = {
        (place, ast.unparse(compared))
        for place, compared in nodes(ast.Compare)
        for part in ast.walk(compared)
        if isinstance(part, ast.Constant) and part.value in names
    }
    assert wrong == set()


def test_files_and_functions_stay_short_and_no_compiled_code_is_kept_on_disk():
    """A file has at most 400 lines, a function 60; docs/decisions.md says why nothing is kept."""
    functions = nodes(ast.FunctionDef)
    long = [(place, f.name) for place, f in functions if f.end_lineno - f.body[0].end_lineno > 60]
    assert long + [place for place, text in TEXTS.items() if text.count("\n") > 400] == []
    assert not [place for place, text in TEXTS.items() if "cache=True" in text]


TESTS = """
import pytest

def test_passes(): pass
def test_accepted(): pytest.skip("there is no GPU here")
@pytest.mark.skipif(True, reason="no Chromium on the PATH")
def test_by_mark(): pass
@pytest.fixture
def log(): pytest.skip("the log is not beside this checkout")
def test_by_fixture(log): pass
"""
MODULE = "import pytest; pytest.importorskip('no_such_package')"


def test_only_accepted_skips_are_silent_in_ci(tmp_path):
    write(tmp_path, {"test_some.py": TESTS, "test_module.py": MODULE})
    env = os.environ | {"CI": "true", "PYTHONPATH": str(Path(__file__).parent)}
    words = ["-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", "--color=no"]
    words += ["--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)]
    done = process([sys.executable, *words], env=env)
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("1 passed, 1 skipped, 3 errors"), done.stdout
