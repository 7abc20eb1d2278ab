"""The shape of the package: who may import whom, and how large a part may grow."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "srs_eval"
FILES = sorted(PACKAGE.rglob("*.py"))

BOTTOM = {"nouns", "errors", "cards", "plain_text"}
FACTS = BOTTOM | {"predictions"}
SCORED = FACTS | {"metrics", "evaluate", "scoring"}
TRY_OUT = BOTTOM | {"trial", "tampering", "expectations"}
# What each part of the package may import, itself apart. A new part needs a place here.
MAY_IMPORT = {
    "nouns": set(),
    "errors": set(),
    "stopping": set(),
    "cards": {"nouns"},
    "plain_text": set(),
    "predictions": {"nouns", "errors"},
    "data": BOTTOM,
    "protocol": BOTTOM,
    "engine": BOTTOM,
    "algorithms": BOTTOM | {"engine"},
    "metrics": FACTS,
    "trial": BOTTOM,
    "expectations": BOTTOM,
    "tampering": BOTTOM,
    "worker": set(),
    "trying_out": TRY_OUT,
    "future_checks": TRY_OUT | {"trying_out"},
    "training_checks": TRY_OUT | {"trying_out"},
    "step_checks": TRY_OUT | {"trying_out", "future_checks", "training_checks"},
    "rare_cases": TRY_OUT | {"trying_out", "worker"},
    "checks": TRY_OUT
    | {"trying_out", "future_checks", "training_checks", "step_checks", "rare_cases"},
    "evaluate": {"nouns", "errors", "predictions", "metrics"},
    "scoring": FACTS | {"metrics", "evaluate"},
    "compute": {"nouns", "errors"},
    "tracking": {"nouns", "errors", "local_paths", "plain_text"},
    "local_paths": set(),
    "targets": {"nouns", "errors"},
    "hydra_section": {"errors", "local_paths", "option_files", "targets"},
    "rebuilt": {"nouns", "errors", "targets"},
    "building": {"nouns", "errors", "metrics", "compute", "tracking", "targets"},
    "mlflow_plugins": {"nouns", "errors", "metrics", "report", "tracking", "rebuilt"},
    "comparison": FACTS | {"metrics"},
    "report": SCORED | {"comparison", "local_paths", "stopping"},
    "sweeping": {"errors", "report", "targets", "tracking"},
    "plan": {"nouns", "errors", "metrics", "comparison", "compute", "tracking", "sweeping"},
    "learned_model": SCORED | {"plan", "comparison", "tracking", "rebuilt"},
    "log_items": SCORED | {"plan", "comparison", "tracking", "report", "learned_model"},
    "all_users": SCORED | {"plan", "report", "stopping"},
    "job": SCORED | {"all_users", "plan", "comparison", "tracking", "report", "log_items"},
    "attempt": {"errors", "stopping", "plan", "report", "job", "sweeping"},
    "option_files": {"errors"},
    "pretrain": {
        "nouns",
        "errors",
        "local_paths",
        "building",
        "settings",
        "option_files",
        "report",
    },
    "settings": {"errors", "option_files"},
    "new": {"errors", "local_paths", "option_files", "report"},
    "compare": {"errors", "comparison", "report", "tracking"},
    "handover": {"nouns", "errors", "engine", "algorithms", "report"},
    "export": {"nouns", "errors", "report", "handover"},
    "run": {"errors", "stopping", "attempt", "building", "hydra_section", "plan", "report"}
    | {"settings", "option_files", "sweeping"},
    "project_words": {"report"},
    "__main__": {"run", "stopping"},
    "__init__": {"checks", "metrics", "report"},
}
# Libraries that are slow to load or easily replaced, and who may import them.
AT_HOME = {
    "hydra": (
        *("run.py", "settings.py", "hydra_section.py", "sweeping/"),
        "mlflow_plugins/hydra_callback.py",
    ),
    "omegaconf": (
        *("run.py", "building.py", "settings.py", "option_files.py", "sweeping/"),
        "hydra_section.py",
        "mlflow_plugins/hydra_callback.py",
    ),
    "optuna": ("sweeping/",),
    "mlflow": ("tracking/", "mlflow_plugins/"),
    "torch": ("algorithms/neural/",),
    "ray": ("compute/",),
    "sklearn": ("algorithms/boosted_trees.py",),
    "matplotlib": ("report/", "sweeping/figures.py"),
    "huggingface_hub": ("data/hub.py",),
}
# Imports inside functions: each of these keeps something quick that need not wait.
MAY_IMPORT_LATE = {
    "run.py",
    "__main__.py",
    "compare.py",
    "export.py",
    "job.py",
    "tracking/mlflow_tracker.py",
    "tracking/mlflow_session.py",
    "tracking/mlflow_run.py",
    "mlflow_plugins/evaluator.py",
    "mlflow_plugins/dataset_source.py",
    "data/hub.py",
    "algorithms/fsrs6.py",
    "metrics/result.py",
}
MAY_CATCH_EVERYTHING = {
    *("evaluate.py", "attempt.py", "compute/processes.py"),
    *("targets.py", "trying_out.py", "worker.py"),
}
HEAVY = {"torch", "mlflow", "pandas", "matplotlib", "scipy", "numba", "sklearn", "optuna"}


TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in FILES
}
TEXTS = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}


def part_of(place):
    return place.split("/")[0].removesuffix(".py")


def imported(node):
    """Every module that is imported anywhere below a node, as dotted names."""
    for below in ast.walk(node):
        if isinstance(below, ast.Import):
            yield from (alias.name for alias in below.names)
        elif isinstance(below, ast.ImportFrom) and below.module == "srs_eval":
            yield from (f"srs_eval.{alias.name}" for alias in below.names)
        elif isinstance(below, ast.ImportFrom):
            yield below.module


def nodes(kind):
    """Every node of a kind, with the file it is in."""
    return [
        (place, n) for place, tree in TREES.items() for n in ast.walk(tree) if isinstance(n, kind)
    ]


def loaded_by(module):
    """Names of all modules that are loaded once `module` is, in a fresh interpreter."""
    command = [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_imports_point_one_way():
    wrong = {
        (place, name)
        for place, tree in TREES.items()
        for name in imported(tree)
        if name.startswith("srs_eval.")
        and name.split(".")[1] not in {part_of(place), *MAY_IMPORT.get(part_of(place), ())}
    }
    assert wrong == set()


def test_every_part_has_its_place():
    assert {part_of(place) for place in TREES} == set(MAY_IMPORT)


def test_there_is_no_way_round_in_a_circle():
    def follow(part, behind=()):
        assert part not in behind, " -> ".join([*behind, part])
        for other in MAY_IMPORT[part]:
            follow(other, (*behind, part))

    for part in MAY_IMPORT:
        follow(part)


def test_the_parts_in_the_middle_do_not_know_each_other():
    middle = {"data", "protocol", "engine", "algorithms", "metrics"}
    known = {part: MAY_IMPORT[part] & middle for part in middle}
    assert {part: others for part, others in known.items() if others} == {"algorithms": {"engine"}}


def test_each_library_stays_at_home():
    wrong = {
        (place, name)
        for place, tree in TREES.items()
        for name in imported(tree)
        if (homes := AT_HOME.get(name.split(".")[0])) and not place.startswith(homes)
    }
    assert wrong == set()


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


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_by("srs_eval")
    assert loaded & {*HEAVY, "numpy", "pyarrow", "hydra", "omegaconf"} == set()
    assert {name for name in loaded if name.startswith("srs_eval.")} == set()


def test_what_answers_a_call_for_help_loads_nothing_heavy():
    assert loaded_by("srs_eval.run") & HEAVY == set()
    assert loaded_by("srs_eval.compare") & HEAVY == set()
    assert loaded_by("srs_eval.export") & HEAVY == set()


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
    assert [place for place in TREES if Path(place).stem in vague] == []


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
        for place, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [place for place, tree in TREES.items() if not ast.get_docstring(tree)] == []
    assert [(place, node.name) for place, node in public if not ast.get_docstring(node)] == []


def test_no_compiled_code_is_kept_on_disk():
    """See docs/adr/0010: numba would write into the package, or into the home folder."""
    assert not [place for place, text in TEXTS.items() if "cache=True" in text]
