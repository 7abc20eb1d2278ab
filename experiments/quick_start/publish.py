"""Copy the leaderboard that a run of the study printed into the pages that show it.

``python -m srs_eval -m experiment=quick_start hydra.sweep.dir=FOLDER``, then
``python experiments/quick_start/publish.py FOLDER``.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from srs_eval.comparison.answer import terminal
from srs_eval.comparison.compare import compare_group, grouped
from srs_eval.comparison.entry import read_entry
from srs_eval.runs.folder import runs_below

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", Path(__file__).with_name("README.md"))
BETWEEN = re.compile(r"(<!-- leaderboard -->\n).*?(<!-- /leaderboard -->)", re.S)
PICTURED = "fsrs6"
FIGURES = ("calibration", "roc", "forgetting", "users")


def published(page: Path) -> str:
    """Find the leaderboard that stands in a page."""
    found = BETWEEN.search(page.read_text(encoding="utf-8"))
    return found[0].partition("```text\n")[2].partition("\n```")[0] if found else ""


def main(folder: Path) -> None:
    """Rewrite the leaderboard of each page, and the figures beside them."""
    (jobs,) = grouped([read_entry(job) for job in runs_below(folder)])
    board = terminal(compare_group(jobs))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(BETWEEN.sub(rf"\1```text\n{board}\n```\n\2", text), encoding="utf-8")
    (pictured,) = [job.place for job in jobs if job.facts.label == PICTURED]
    for name in FIGURES:
        shutil.copy(pictured / "figures" / f"{name}.png", ROOT / "docs" / "images" / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
