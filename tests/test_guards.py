"""What guards the tests: changes of the package are made, and skips are not silent in CI."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import mutants
import pytest
from programs import loaded

SOURCE = """
def span(low: float = 1.0, high=2):
    '''Return the width.'''
    if high < low:
        raise ValueError(f"{high} < {low}")
    return high - low
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    (tmp_path / "planted.py").write_text(SOURCE)
    return tmp_path / "planted.py"


def test_changes_are_of_what_a_function_does(path: Path) -> None:
    found = [(change.line, change.before, change.after) for change in mutants.changes_of(path)]
    assert found == [
        (4, "if high < low:", "if not high < low:"),
        (4, "high < low", "high <= low"),
        (6, "return high - low", "return None"),
        (6, "high - low", "high + low"),
    ]


def test_live_functions_get_the_changed_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    span: FunctionType = loaded(path).span
    monkeypatch.setitem(mutants.FUNCTIONS, str(path), [span])
    mutants.replace_code(path, mutants.changed_code(path, 3))
    assert span(2, 5) == 7
    mutants.replace_code(path, mutants.marked_code(path))
    span(2, 5)
    assert "planted.py:span:2" in mutants.ENTERED


TESTS = """
import pytest

def test_passes(): pass
def test_accepted(): pytest.skip("there is no GPU here")
@pytest.mark.xfail
def test_known(): raise ValueError
@pytest.mark.skipif(True, reason="no Chromium on the PATH")
def test_by_mark(): pass
@pytest.fixture
def log(): pytest.skip("the log is not beside this checkout")
def test_by_fixture(log): pass
"""
MODULE = "import pytest; pytest.importorskip('no_such_package')"


@pytest.mark.parametrize("ci", ["true", ""])
def test_only_accepted_skips_are_silent_in_ci(tmp_path: Path, ci: str) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    env = os.environ | {"CI": ci, "PYTHONPATH": str(Path(__file__).parent)}
    words = ["-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", "--color=no"]
    words += ["--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)]
    command = [sys.executable, *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    skipped = "1 skipped, 1 xfailed, 3 errors" if ci else "4 skipped, 1 xfailed"
    assert done.stdout.strip().splitlines()[-1].startswith(f"1 passed, {skipped}"), done.stdout
