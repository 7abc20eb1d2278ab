"""What docs/synthetic.md says of version 2 is in its table, which a script makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """Cells by name of the statistic."""
    page = (DOCS / "synthetic.md").read_text(encoding="utf-8")
    table = page.split("<!-- table -->")[1].split("<!-- /table -->")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines() if line[:1] == "|"]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}


def of_versions(rows: dict[str, list[str]], name: str) -> list[float]:
    """Mean or median of a statistic for simulated users of version 1 and 2."""
    return [float(cell.split("[")[0]) for cell in rows[name][-2:]]


def test_fsrs_7_loses_to_fsrs_6_in_version_1_alone(rows: dict[str, list[str]]) -> None:
    first, second = of_versions(rows, "log loss of FSRS-7 minus that of FSRS-6, mean")
    assert first > 0.01
    assert abs(second) < 0.005


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("residuals, same day: 1 apart", 0.4, 1.1),
        ("last of a day and first of the next", -0.3, 0.3),
        ("slow answer: log-odds of the card's next recall", -0.35, -0.1),
        ("variance of log time between cards", 0.15, 0.3),
        ("answer time, median seconds", 7, 11),
        ("share of days with study", 0.35, 0.6),
        ("recall of scored reviews (public benchmark: 0.86)", 0.84, 0.88),
    ],
)
def test_version_2_is_near_real_logs(
    rows: dict[str, list[str]], name: str, low: float, high: float
) -> None:
    assert low < of_versions(rows, name)[1] < high


@pytest.mark.slow
def test_the_table_is_made_by_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_synthetic", DOCS / "make_synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    users = script.SyntheticUsers(users=2, seed=script.SEED, version=2)
    studied = list(script.studied(users))
    column = script.column(studied)
    assert column[0] == str(len(studied)) != "0"
    assert len(column) == 2 + len(script.STATISTICS)
