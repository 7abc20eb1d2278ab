"""The program that changes the package: what it changes, and that a change is made."""

import ast
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, b, c)", "f(b, a, c)"),
        ("(a, b)", "(b, a)"),
        ("max(a, b)", "min(a, b)"),
        ("0.5", "1.0"),
        ("not a", "a"),
        ("a or b", "a and b"),
        ("'text'", None),
    ],
)
def test_a_change_does_something_else(before: str, after: str | None) -> None:
    made = mutants.changed(ast.parse(before, mode="eval").body)
    assert (made and ast.unparse(made)) == after


def test_live_functions_get_the_changed_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    span: FunctionType = loaded(path).span
    monkeypatch.setitem(mutants.FUNCTIONS, str(path), [span])
    mutants.replace_code(path, mutants.changed_code(path, 3))
    assert span(2, 5) == 7
    mutants.replace_code(path, mutants.marked_code(path))
    span(2, 5)
    assert "planted.py:span:2" in mutants.ENTERED
