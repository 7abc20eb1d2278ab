"""What docs/fits.md says in words is in its table."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "fits.md"
Key = tuple[str, str, str, str, int]
VERSIONS = [
    ("FSRS-4.5", "days"), ("FSRS-5", "days"), ("FSRS-6", "days"), ("FSRS-7", "days"),
    ("FSRS-7", "seconds"),
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> dict[Key, list[str]]:
    """Cells by version, clock, fit, recency and number of fits: scores of both logs."""
    table = PAGE.read_text(encoding="utf-8").split("<!-- table -->")[1].split("<!-- /table -->")[0]
    lines = [line for line in table.splitlines() if line[:1] == "|"]
    found = {}
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found[cells[0], cells[1], cells[2], cells[3], int(cells[4])] = cells[5:]
    return found


def josh(rows: dict[Key, list[str]], version: str, clock: str, fit: str, fits: int = 5) -> float:
    return float(rows[version, clock, fit, "none", fits][0])


def gain(rows: dict[Key, list[str]], place: int, version: str, clock: str) -> tuple[float, bool]:
    """How much newton gains with five fits and no recency, and whether 0 is in the interval."""
    cells = rows[version, clock, "newton", "none", 5]
    low, high = (float(bound) for bound in cells[place + 1].strip("[]").split(","))
    return -float(cells[place]), low <= 0 <= high


def test_every_row_is_there(rows: dict[Key, list[str]]) -> None:
    assert len(rows) == len(VERSIONS) * 8


def test_the_trainer_matters_most_where_there_are_many_parameters(
    rows: dict[Key, list[str]],
) -> None:
    gains = [gain(rows, 2, *version) for version in VERSIONS]
    assert max(gains[0][0], gains[1][0]) < 0.002
    assert [round(found, 3) for found, _ in gains[2:]] == [0.006, 0.016, 0.010]
    assert not any(holds_zero for _, holds_zero in gains[2:])
    for version in VERSIONS:
        assert 0.0015 < gain(rows, 6, *version)[0] < 0.0075


def test_versions_rank_as_told(rows: dict[Key, list[str]]) -> None:
    newer = [VERSIONS[0], VERSIONS[1], VERSIONS[2], VERSIONS[4]]
    fitted = [josh(rows, *version, "newton") for version in newer]
    assert fitted == sorted(fitted, reverse=True)
    public = [josh(rows, *version, "reference") for version in VERSIONS]
    assert public[2] >= public[1]
    assert public[3] > max(public[1], public[2])


def test_refits_mend_what_the_trainer_left_undone(rows: dict[Key, list[str]]) -> None:
    gains = {
        fit: [josh(rows, *v, fit) - josh(rows, *v, fit, 50) for v in VERSIONS]
        for fit in ("reference", "newton")
    }
    assert 0.006 < max(gains["reference"]) < 0.0075
    assert max(gains["newton"]) < 0.00095


def test_recency_hardly_helps_newton(rows: dict[Key, list[str]]) -> None:
    for version in VERSIONS:
        for fits in (5, 50):
            none, mild = (rows[(*version, "newton", r, fits)] for r in ("none", "mild"))
            for place in (0, 4):
                assert float(none[place]) - float(mild[place]) < 0.00045
