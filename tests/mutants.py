"""Change the package in small ways, and report which changes the quick tests do not notice.

    python tests/mutants.py --sample 100 --seed 1
    python tests/mutants.py --sample 30 --modules data/anki --tests tests/data

A first run of the quick tests records which of them enter which function. Then each change is made
in a process of its own, forked after all tests were collected: functions get their changed code,
and the tests that enter the changed one run, files with the cheapest tests first, until one fails.
A test that runs for too long has noticed, too. Exit status 1 if fewer than 90 % are noticed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "srs_eval"
FOLDERS = ("stats", "protocol", "evaluation", "results", "exporting", "comparison")
QUICK = ("-m", "not slow and not nightly", "-q", "-p", "mutants", "-p", "no:cacheprovider")
NOTICED = 0.9
LONGEST = 90.0  # seconds for the tests of one change
BUDGET = 30.0  # seconds that its tests took before, the cheapest files first

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot},
    **{ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div},
    **{ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or},
    **{ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


@dataclass(frozen=True, slots=True)
class Change:
    """One small change of a function."""

    file: str  # below the package
    function: str  # name and first line, as code objects have them
    number: int  # of the change in its file
    line: int
    before: str
    after: str


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield functions and methods, without those inside other functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef):
                yield node
            elif isinstance(node, ast.ClassDef | ast.If | ast.Try):
                waiting.append(node)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements of a function after its docstring."""
    return function.body[ast.get_docstring(function) is not None :]


def inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield what a function does: no docstrings, annotations, defaults and messages of errors."""
    waiting: list[ast.AST] = list(reversed(_body(function)))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.Assert | ast.ImportFrom):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of what is of one length
            continue
        yield node
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []
        elif isinstance(node, ast.FunctionDef):
            waiting += _body(node)[::-1]
        elif isinstance(node, ast.Lambda):
            waiting.append(node.body)
        else:
            waiting += [*ast.iter_child_nodes(node)][::-1]


def changed(node: ast.AST) -> ast.AST | None:
    """Return a node that does something else; None where this makes no change of it."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]  # type: ignore[list-item]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            new.op = SWAPS[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return new.operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Constant(value=float(value)):
            new.value = 2 * value or 1.0
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            new.func = ast.Name(NAMES[name], ast.Load())
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred):
            new.args = [second, first, *rest]
        case ast.Tuple(elts=[first, second, *rest], ctx=ast.Load()):
            new.elts = [second, first, *rest]
        case ast.Dict(values=[first, second, *rest]):
            new.values = [second, first, *rest]
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            new.value = ast.Constant(None)
        case ast.IfExp() | ast.If():
            new.test = ast.UnaryOp(ast.Not(), new.test)
        case _:
            return None
    return None if ast.dump(new) == ast.dump(node) else new  # such as (0, 0) turned around


def changes_of(path: Path) -> list[Change]:
    """List the changes that can be made in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    found: list[Change] = []
    for function in functions(tree):
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        for node in inside(function):
            after = changed(node)
            if after is not None:
                before, now = (ast.unparse(each).splitlines()[0][:80] for each in (node, after))
                name = f"{function.name}:{first}"
                place = path.relative_to(PACKAGE).as_posix()
                line = getattr(node, "lineno", first)
                found.append(Change(place, name, len(found), line, before, now))
    return found


def changed_code(path: Path, number: int) -> CodeType:
    """Compile a file with one change."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = (node for function in functions(tree) for node in inside(function))
    wanted = [node for node in nodes if changed(node) is not None][number]
    after = changed(wanted) or wanted

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(after, node) if node is wanted else self.generic_visit(node)

    return compile(ast.fix_missing_locations(Put().visit(tree)), str(path), "exec")


def marked_code(path: Path) -> CodeType:
    """Compile a file whose functions note that they were entered."""
    tree = ast.parse(path.read_text("utf-8"))
    place = path.relative_to(PACKAGE).as_posix()
    for function in functions(tree):
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        note = f"__import__('mutants').ENTERED.add({f'{place}:{function.name}:{first}'!r})"
        function.body[:0] = ast.parse(note).body
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


ENTERED: set[str] = set()
FAILED: list[str] = []
FUNCTIONS: dict[str, list[FunctionType]] = defaultdict(list)
CACHED: list[Any] = []
_RECORD, _PLAN, _MODULES = "MUTANTS_RECORD", "MUTANTS_PLAN", "MUTANTS_MODULES"


def modules() -> list[Path]:
    """List the files that are changed."""
    places = [PACKAGE / each for each in os.environ.get(_MODULES, " ".join(FOLDERS)).split()]
    return sorted(
        path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])
    )


def replace_code(path: Path, code: CodeType) -> None:
    """Give the functions of an imported file their code in a compiled one."""
    new, waiting = {}, [code]
    while waiting:
        each = waiting.pop()
        new[each.co_qualname, each.co_firstlineno] = each
        waiting += [const for const in each.co_consts if isinstance(const, CodeType)]
    for found in FUNCTIONS[str(path)]:
        own = found.__code__
        after = new.get((own.co_qualname, own.co_firstlineno))
        if after is not None and after.co_freevars == own.co_freevars:
            found.__code__ = after


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Import all that is changed; have functions note that they were entered, if asked to."""
    for path in modules():
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        importlib.import_module(name.removesuffix(".__init__"))
    gc.unfreeze()
    for found in gc.get_objects():
        if type(found) is FunctionType:  # asking proxies for their class may raise
            FUNCTIONS[found.__code__.co_filename].append(found)
        elif type(found) is type(cache(len)) and str(found.__module__).startswith("srs_eval."):
            CACHED.append(found)
    gc.freeze()
    if _RECORD in os.environ:
        for path in modules():
            replace_code(path, marked_code(path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the functions that a test entered, and how long it took."""
    ENTERED.clear()
    FAILED.clear()
    if _RECORD in os.environ:  # what an earlier test left there, this one would not enter
        for cached in CACHED:
            cached.cache_clear()
    begin = time.perf_counter()
    done = yield
    if _RECORD in os.environ and not FAILED:
        row = [item.nodeid, time.perf_counter() - begin, sorted(ENTERED)]
        place = Path(f"{os.environ[_RECORD]}.{os.getpid()}")
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    return done


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a failure."""
    if report.failed:
        FAILED.append(report.nodeid)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests of each change of a plan in a fork, and write which one noticed."""
    if _PLAN not in os.environ:
        return None
    plan = Path(os.environ[_PLAN])
    items = {item.nodeid: item for item in session.items}
    with plan.with_suffix(".out").open("w", encoding="utf-8") as out:
        for change, tests in json.loads(plan.read_text("utf-8")):
            chosen = [items[each] for each in tests if each in items]
            out.write(json.dumps([change, len(tests), noticed_by(Change(**change), chosen)]) + "\n")
            out.flush()
    return True


def noticed_by(change: Change, items: Sequence[pytest.Item]) -> str:
    """Return the test that notices a change, which is made in a fork; "" if none does."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        path = PACKAGE / change.file
        replace_code(path, changed_code(path, change.number))
        for item, following in zip(items, [*items, None][1:], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if FAILED:
                os.write(writing, FAILED[0].encode())
                break
        os._exit(0)
    os.close(writing)
    deadline, ended = time.monotonic() + LONGEST, (0, 0)
    while ended == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.05)
        ended = os.waitpid(child, os.WNOHANG)
    if ended == (0, 0):
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "a test that ran for too long"
    with os.fdopen(reading, "rb") as told:
        return told.read().decode() or ("the process, which ended" if ended[1] else "")


def recorded(jobs: int, tests: Sequence[str]) -> list[tuple[str, float, list[str]]]:
    """Run the quick tests once, and return what each took and entered."""
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    texts = b"".join(path.read_bytes() for path in sorted(sources))
    texts += repr((modules(), tests)).encode()
    place = Path(tempfile.gettempdir()) / f"mutants-{hashlib.sha256(texts).hexdigest()[:16]}"
    if not place.exists():
        for part in place.parent.glob(f"{place.name}.*"):
            part.unlink()
        # Without numba's compiler, which does not know how to note.
        variables = {_RECORD: str(place), "NUMBA_DISABLE_JIT": "1"}
        run_pytest([*tests, "-n", str(jobs), "--dist", "worksteal"], variables)
        parts = sorted(place.parent.glob(f"{place.name}.*"))
        place.write_bytes(b"".join(part.read_bytes() for part in parts))
    return [json.loads(line) for line in place.read_text("utf-8").splitlines()]


def run_pytest(words: Sequence[str], variables: dict[str, str]) -> int:
    """Run the quick tests with this file as a plug-in."""
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, **variables, "PYTHONPATH": path, "CI": "true"}
    command = [sys.executable, "-m", "pytest", *QUICK, *words]
    return subprocess.run(command, cwd=ROOT, env=env, check=False, stdout=sys.stderr).returncode


def chosen(tests: Sequence[tuple[str, float]]) -> list[str]:
    """Choose tests whose files are the cheapest, as many as a budget of seconds allows."""
    files: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for test, seconds in tests:
        files[test.partition("::")[0]].append((test, seconds))
    spent = 0.0
    kept: list[str] = []
    for rows in sorted(files.values(), key=lambda rows: sum(seconds for _, seconds in rows)):
        for test, seconds in rows:
            if not kept or spent + seconds <= BUDGET:
                spent += seconds
                kept.append(test)
    return kept


def main(words: Sequence[str] | None = None) -> int:
    """Try a sample of changes; return 1 if too few are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=100, help="number of changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--modules", nargs="*", default=FOLDERS, help="folders or files below it")
    parser.add_argument("--tests", nargs="*", default=[], help="files of tests, all by default")
    given = parser.parse_args(words)
    os.environ[_MODULES] = " ".join(given.modules)
    reach: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for test, seconds, entered in recorded(given.jobs, given.tests):
        for function in entered:
            reach[function].append((test, seconds))
    found = [change for path in modules() for change in changes_of(path)]
    sample = random.Random(given.seed).sample(found, min(given.sample, len(found)))
    results = tried(
        [(each, chosen(reach[f"{each.file}:{each.function}"])) for each in sample], given.jobs
    )
    return report(results, len(found))


def tried(plan: Sequence[tuple[Change, list[str]]], jobs: int) -> list[tuple[Change, int, str]]:
    """Return the number of tests of each change, and which of them noticed."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for job in range(jobs):
            part = plan[job::jobs]
            file = Path(folder) / f"{job}.json"
            file.write_text(json.dumps([(asdict(change), tests) for change, tests in part]))
            needed = sorted({test.partition("::")[0] for _, tests in part for test in tests})
            variables = {_PLAN: str(file)}
            running.append((file, Thread(target=run_pytest, args=(["-s", *needed], variables))))
        for _, thread in running:
            thread.start()
        for file, thread in running:
            thread.join()
            for line in file.with_suffix(".out").read_text("utf-8").splitlines():
                change, tests, noticed = json.loads(line)
                results.append((Change(**change), tests, noticed))
    return results


def report(results: Sequence[tuple[Change, int, str]], candidates: int) -> int:
    """Print the changes that no test noticed and the totals; return the exit status."""
    totals, noticed = Counter[str](), Counter[str]()
    for change, tests, by in sorted(results, key=lambda row: (row[0].file, row[0].line)):
        folder = change.file.partition("/")[0]
        totals[folder] += 1
        noticed[folder] += bool(by)
        if not by:
            where = f"{change.file}:{change.line}"
            print(f"{where}: {change.before}  ->  {change.after}  ({tests} tests)")  # noqa: T201
    for folder, total in totals.items():
        print(f"{folder}: {noticed[folder]} of {total} noticed")  # noqa: T201
    share = noticed.total() / max(totals.total(), 1)
    of = f"{noticed.total()} of {totals.total()} noticed ({share:.0%})"
    print(f"all: {of}, from {candidates:,} possible changes")  # noqa: T201
    return int(share < NOTICED)


if __name__ == "__main__":
    sys.exit(main())
