"""The shape of the package: who may import whom, and how large a part may grow."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "srs_eval"
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports inside functions: each of these keeps something quick that need not wait.
MAY_IMPORT_LATE = """
    compute/ray.py algorithms/fsrs/fsrs6.py api/comparing.py api/evaluating.py
    api/result.py api/show.py comparison/by_users.py commands/run.py commands/compare.py
    collection/command.py submit/command.py commands/export.py commands/prepare.py
    commands/fit.py commands/cli.py data/hub.py experiment/job.py experiment/jobs.py
    experiment/outside.py config/building.py
    metrics/result.py mlflow_plugins/dataset_source.py place.py results/result.py
    site/command.py mlflow_plugins/evaluator.py tracking/mlflow_run.py
    tracking/mlflow_session.py tracking/mlflow_tracker.py
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
    declared = {as_pip_knows(re.match(r"[\w-]+", each)[0]) for group in groups for each in group}
    owners = packages_distributions()
    modules = {name.partition(".")[0] for _, tree in nodes(ast.Module) for name in imported(tree)}
    others = modules - set(sys.stdlib_module_names) - {"srs_eval", "hydra_plugins"}
    assert len(others) > 10
    undeclared = {
        name for name in others if not declared & set(map(as_pip_knows, owners.get(name, [name])))
    }
    assert undeclared == set()


def as_pip_knows(name):
    return name.lower().replace("_", "-")


def test_nothing_depends_on_the_name_of_an_algorithm():
    names = {path.stem for path in (PACKAGE.parent / "conf/algo").glob("*.yaml")}
    wrong = {
        (place, ast.unparse(compared))
        for place, compared in nodes(ast.Compare)
        for part in ast.walk(compared)
        if isinstance(part, ast.Constant) and part.value in names
    }
    assert wrong == set()


def test_files_and_functions_stay_short():
    """A file has at most 400 lines, a function 60."""
    functions = nodes(ast.FunctionDef)
    long = [(place, f.name) for place, f in functions if f.end_lineno - f.body[0].end_lineno > 60]
    assert long + [place for place, text in TEXTS.items() if text.count("\n") > 400] == []


def test_no_compiled_code_is_kept_on_disk():
    """See docs/adr/0010: numba would write into the package, or into the home folder."""
    assert not [place for place, text in TEXTS.items() if "cache=True" in text]


HEADING = re.compile(r"^ *(Parameters|Returns|Yields|Raises|Attributes)\n *-+$", re.M)


def test_internal_docstrings_are_sentences():
    """Sections of numpydoc are for what docs/api.md shows, option classes and protocols."""
    shown, with_members = shown_by_the_api()
    public = shown | option_classes() | protocols()
    with_members |= protocols()
    headed = {name for name, node in defined() if HEADING.search(ast.get_docstring(node) or "")}
    assert {each for each in headed - public if not is_member(each, with_members)} == set()
    assert public <= dict(defined()).keys()
    assert len(headed & public) > 50


def is_member(name, classes):
    owner, _, own = name.rpartition(".")
    return owner in classes and not own.startswith("_")


def shown_by_the_api():
    """What docs/api.md shows, and the classes of it with their members."""
    text = (PACKAGE.parent / "docs/api.md").read_text("utf-8")
    shown = re.findall(r"^\.\. auto(?:class|function):: (\S+)(\n +:members:)?", text, re.M)
    full = {name if "." in name else f"srs_eval.nouns.{name}": members for name, members in shown}
    return set(map(home, full)), {home(name) for name, members in full.items() if members}


def option_classes():
    """What option files name as a target, and its base classes in srs_eval."""
    texts = [path.read_text("utf-8") for path in (PACKAGE.parent / "conf").rglob("*.yaml")]
    found, new = set(), {name for text in texts for name in re.findall(r"_target_: (\S+)", text)}
    while new:
        found |= new
        new = {base for name in new for base in bases(name) if base.startswith("srs_eval.")} - found
    return found


def protocols():
    nouns = [name for name, _ in defined() if name.startswith("srs_eval.nouns.")]
    return {name for name in nouns if "typing.Protocol" in bases(name)}


def bases(name):
    """The base classes of a class, by the modules that define them."""
    module, _, _ = name.rpartition(".")
    given = getattr(dict(defined()).get(name), "bases", [])
    return [home(f"{module}.{ast.unparse(base).partition('[')[0]}") for base in given]


def home(name):
    """The name of a class or function in the module that defines it."""
    while imports().get(name, name) != name:
        name = imports()[name]
    return name


@cache
def imports():
    """What each module imports from others, by the name that it has there."""
    return {
        f"{module_of(place)}.{alias.asname or alias.name}": f"{node.module}.{alias.name}"
        for place, node in nodes(ast.ImportFrom)
        for alias in node.names
    }


@cache
def defined():
    """Every function and class, by its dotted name."""
    return [pair for place, tree in nodes(ast.Module) for pair in inside(tree, module_of(place))]


def inside(node, name):
    for child in ast.iter_child_nodes(node):
        is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        full = f"{name}.{child.name}" if is_named else name
        if is_named:
            yield full, child
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from inside(child, full)


def module_of(place):
    return ".".join(("srs_eval", *Path(place).with_suffix("").parts)).removesuffix(".__init__")
