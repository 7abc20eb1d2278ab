"""The shape of the package: who may import whom, and how large a part may grow."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "srs_eval"
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports inside functions: each of these keeps something quick that need not wait.
MAY_IMPORT_LATE = {
    "compute/ray.py",  # an extra
    "__main__.py",
    "algorithms/fsrs/fsrs6.py",
    "api/comparing.py",
    "api/evaluating.py",
    "api/result.py",
    "comparison/by_users.py",
    "commands/run.py",
    "commands/compare.py",
    "collection/command.py",
    "submit/command.py",
    "commands/export.py",
    "commands/prepare.py",
    "commands/fit.py",
    "data/hub.py",
    "experiment/job.py",
    "experiment/jobs.py",
    "experiment/outside.py",
    "metrics/result.py",
    "mlflow_plugins/dataset_source.py",
    "place.py",
    "results/result.py",
    "site/command.py",
    "mlflow_plugins/evaluator.py",
    "tracking/mlflow_run.py",
    "tracking/mlflow_session.py",
    "tracking/mlflow_tracker.py",
}
MAY_CATCH_EVERYTHING = {
    *("evaluation/evaluate.py", "experiment/attempt.py", "compute/processes.py"),
    *("config/targets.py", "checks/harness.py", "checks/worker.py", "data/interruptible.py"),
    "checks/quick.py",  # of what is being tried
    "compute/ray.py",  # which raises instances of Exception itself
}
HEAVY = {"torch", "mlflow", "pandas", "matplotlib", "scipy", "numba", "sklearn", "optuna"}

TEXTS = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}


def imported(node):
    """Every module that is imported anywhere below a node, as dotted names."""
    for below in ast.walk(node):
        if isinstance(below, ast.Import):
            yield from (alias.name for alias in below.names)
        elif isinstance(below, ast.ImportFrom) and below.module == "srs_eval":
            yield from (f"srs_eval.{alias.name}" for alias in below.names)
        elif isinstance(below, ast.ImportFrom):
            yield below.module


@cache
def all_nodes():
    """Every node of every file, with the file it is in."""
    return [(place, node) for place, text in TEXTS.items() for node in ast.walk(ast.parse(text))]


def nodes(kind):
    """Every node of a kind, with the file it is in."""
    return [(place, node) for place, node in all_nodes() if isinstance(node, kind)]


def loaded_by(module):
    """Names of all modules that are loaded once `module` is, in a fresh interpreter."""
    command = [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


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
        if place not in MAY_IMPORT_LATE
    }
    assert late == set()


def test_no_import_is_relative():
    assert [place for place, node in nodes(ast.ImportFrom) if node.level] == []


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


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("srs_eval")
    assert loaded & {*HEAVY, "numpy", "pyarrow", "hydra", "omegaconf"} == set()
    ours = {name for name in loaded if name.startswith("srs_eval.")}
    assert ours == {"srs_eval.cpu", "srs_eval.errors"}


@pytest.mark.slow
def test_what_answers_a_call_for_help_loads_nothing_heavy():
    assert loaded_by("srs_eval.commands.run") & HEAVY == set()
    assert loaded_by("srs_eval.commands.compare") & HEAVY == set()
    assert loaded_by("srs_eval.export") & HEAVY == set()


def test_few_files_are_at_the_root_beside_the_commands():
    commands = {place.removeprefix("commands/") for place in TEXTS if place.startswith("commands/")}
    assert len([place for place in TEXTS if "/" not in place and place not in commands]) <= 6


def test_a_file_has_at_most_400_lines():
    long = {place: n for place, text in TEXTS.items() if (n := len(text.splitlines())) > 400}
    assert long == {}


def lines_of_code(function):
    """Lines of a function without its documentation."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    text = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - text


def test_a_function_has_at_most_60_lines_of_code():
    long = {
        (place, function.name): n
        for place, function in nodes(ast.FunctionDef)
        if (n := lines_of_code(function)) > 60
    }
    assert long == {}


def test_a_module_is_named_after_what_it_holds():
    vague = {"utils", "util", "helpers", "common", "base", "misc", "core"}
    assert [place for place in TEXTS if Path(place).stem in vague] == []


def test_nothing_depends_on_the_name_of_an_algorithm():
    names = {path.stem for path in (PACKAGE.parent / "conf/algo").glob("*.yaml")}
    wrong = {
        (place, ast.unparse(compared))
        for place, compared in nodes(ast.Compare)
        for part in ast.walk(compared)
        if isinstance(part, ast.Constant) and part.value in names
    }
    assert wrong == set()


def test_only_what_must_go_on_catches_everything():
    broad = {
        (place, ast.unparse(handler))
        for place, handler in nodes(ast.ExceptHandler)
        if handler.type is None
        or re.search(r"\b(Base)?Exception\b", ast.unparse(handler.type).replace(".", "_"))
        if place not in MAY_CATCH_EVERYTHING
    }
    assert broad == set()


def test_nothing_is_left_to_do():
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK|raise NotImplementedError)\b")
    assert [place for place, text in TEXTS.items() if words.search(text)] == []


def test_everything_public_is_documented():
    public = [
        (place, node)
        for place, tree in nodes(ast.Module)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [place for place, tree in nodes(ast.Module) if not ast.get_docstring(tree)] == []
    assert [(place, node.name) for place, node in public if not ast.get_docstring(node)] == []


def test_no_compiled_code_is_kept_on_disk():
    """See docs/adr/0010: numba would write into the package, or into the home folder."""
    assert not [place for place, text in TEXTS.items() if "cache=True" in text]
