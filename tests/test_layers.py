"""The shape of the package: who may import whom, and how large a part may grow."""

import ast
import inspect
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from pydoc import locate

import pytest
from packaging.utils import canonicalize_name

from srs_eval import nouns

PACKAGE = Path(__file__).parents[1] / "srs_eval"
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports inside functions: each of these keeps something quick that need not wait.
MAY_IMPORT_LATE = """
    compute/ray.py algorithms/half_life/hlr.py api/comparing.py api/evaluating.py
    api/result.py api/show.py comparison/by_users.py commands/run.py commands/compare.py
    collection/command.py submit/command.py commands/export.py commands/prepare.py
    commands/fit.py commands/cli.py run/job.py run/jobs.py
    run/experiment.py config/building.py algorithms/sessions/trees.py
    metrics/result.py mlflow_plugins/dataset_source.py place.py results/result.py
    site/command.py watch/command.py watch/night.py mlflow_plugins/evaluator.py
    tracking/mlflow_run.py tracking/mlflow_session.py tracking/mlflow_tracker.py
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
    owners = packages_distributions()
    modules = {name.partition(".")[0] for _, tree in nodes(ast.Module) for name in imported(tree)}
    others = modules - set(sys.stdlib_module_names) - {"srs_eval", "hydra_plugins"}
    assert len(others) > 10
    undeclared = {
        name
        for name in others
        if not declared & set(map(canonicalize_name, owners.get(name, [name])))
    }
    assert undeclared == set()


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
    """A file has at most 400 lines, a function 60; docs/adr/0010 says where numba would write."""
    functions = nodes(ast.FunctionDef)
    long = [(place, f.name) for place, f in functions if f.end_lineno - f.body[0].end_lineno > 60]
    assert long + [place for place, text in TEXTS.items() if text.count("\n") > 400] == []
    assert not [place for place, text in TEXTS.items() if "cache=True" in text]


HEADING = re.compile(r"^ *(Parameters|Returns|Yields|Raises|Attributes)\n *-+$", re.M)


def test_internal_docstrings_are_sentences():
    """Sections of numpydoc are for what docs/api.md shows, option classes and protocols."""
    page = (PACKAGE.parent / "docs/api.md").read_text("utf-8")
    shown = re.findall(r"^\.\. auto(?:class|function):: (\S+)(\n +:members:)?", page, re.M)
    api = {locate(name if "." in name else f"srs_eval.nouns.{name}"): full for name, full in shown}
    protocols = {each for each in vars(nouns).values() if getattr(each, "_is_protocol", False)}
    with_members = names(protocols | {each for each, members in api.items() if members})
    texts = [path.read_text("utf-8") for path in (PACKAGE.parent / "conf").rglob("*.yaml")]
    targets = {locate(name) for text in texts for name in re.findall(r"_target_: (\S+)", text)}
    kinds = {kind for each in targets for kind in getattr(each, "__mro__", [each])}
    public = names(api) | with_members | names(kinds)
    defined = dict(pair for place, tree in nodes(ast.Module) for pair in inside(tree, place))
    headed = {
        name for name, node in defined.items() if HEADING.search(ast.get_docstring(node) or "")
    }
    members = {name for name in headed if re.sub(r"\.(?!_)\w+$", "", name) in with_members}
    assert headed - public - members == set()
    assert public <= defined.keys()
    assert len(headed & public) > 50


def names(kinds):
    """The names of what srs_eval defines, after the file that does."""
    ours = [each for each in kinds if each.__module__.startswith("srs_eval.")]
    return {
        f"{Path(inspect.getfile(each)).relative_to(PACKAGE).as_posix()}.{each.__qualname__}"
        for each in ours
    }


def inside(node, name):
    """Every function and class below a node, by its dotted name after that of the file."""
    for child in ast.iter_child_nodes(node):
        is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        full = f"{name}.{child.name}" if is_named else name
        if is_named:
            yield full, child
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from inside(child, full)
