"""What a site of leaderboards costs: to build, to open in Chromium, and to sort.

    python benchmarks/leaderboard_site.py               # 40 made-up models of 10,000 users
    python benchmarks/leaderboard_site.py 10 1000 out   # others; the site is kept in out

Prints the seconds and the memory of building it, its size, the milliseconds until the first table
is there, and those of sorting it, of another metric and of another baseline, each with the CPU time
of the page's thread, which counts on a machine with other work. Needs a Chromium.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from benchmark import ROOT, benchmark
from measure import clocked

from srs_eval.results.files import write_table
from srs_eval.results.run import Run
from srs_eval.results.summary import Summary
from srs_eval.site.pages import write_site
from srs_eval.submit.submission import ABOUT, RESULTS, Accepted, Board, Submission

METRICS = ("log_loss", "normalized_entropy", "brier_skill", "smece", "rmse_bins", "auc", "ici")
WHEN = ("previous_review", "previous_review", "at_review")
# Runs in the page: the state is restored from the address, as by a link.
_SHOWN = "document.documentElement.dataset.ready === 'true'"
_SORT = """(() => {
  const button = document.querySelector("th[data-key=difference] button");
  const begin = performance.now();
  button.click();
  document.body.getBoundingClientRect();
  return performance.now() - begin;
})()"""
_CHANGE = """new Promise(done => {
  const control = document.getElementById("%s");
  const before = document.querySelector("#tables table");
  const begin = performance.now();
  control.selectedIndex = control.selectedIndex + 2;
  control.dispatchEvent(new Event("input"));
  const look = () => document.contains(before) ? setTimeout(look) : done(performance.now() - begin);
  look();
})"""


def made_up(folder: Path, models: int, users: int, *, version: str = "1", seed: int = 0) -> Board:
    """Return a board of made-up scores, with the files of its submissions in a folder."""
    random = np.random.default_rng(seed)
    sizes = np.exp(random.normal(8, 1.2, users)).astype(np.int64) + 30
    rows = {user: f"rows{user}" for user in range(1, users + 1)}
    reviews = dict(zip(rows, sizes.tolist(), strict=True))
    hard = np.exp(random.normal(-1.1, 0.35, users))
    submissions = []
    for number in range(models):
        name = f"model{number:02}"
        noise = np.exp(random.normal(0.01 * (number // 3), 0.05, users))
        scores = {metric: hard * noise * random.uniform(0.9, 1.1) for metric in METRICS}
        scores["auc"] = 1 - scores["auc"] / 3
        place = folder / name
        place.mkdir(parents=True)
        about = {
            "model": name,
            "description": "Made up.",
            "authors": ["An Author"],
            "code": {"url": "https://example.org/model", "commit": "abc"},
            "licence": "MIT",
            "algorithm": {
                "_target_": f"srs_eval.algorithms.family{number % 4}.Model",
                "decay": 0.5,
            },
            "parameters": int(3 * number),
            "seconds_per_user": float(np.round(0.001 * 1.3**number, 6)),
            "tuned_on": "none",
        }
        facts = Summary(
            when=WHEN[number % len(WHEN)],
            protocol="made_up",
            sees_truth=number == models - 1 > 2,
            pretrained=number % 5 == 4,
            failed=2 if number == 1 else 0,
            fits=5 * users,
        )
        run = Run(name, place, rows, reviews, scores, facts=facts)
        columns = {"user": list(rows), "reviews": list(sizes), "rows": list(rows.values())}
        write_table(place / RESULTS, pa.table({**columns, **scores}))
        (place / ABOUT).write_text(yaml.safe_dump(about), encoding="utf-8")
        history = (Accepted("2026-01-31", "0" * 64, "verified", "run again"),)
        submissions.append(Submission(name, place, about, run, history if number % 2 else ()))
    board = f"made_up-{version}_invented-1_01234567"
    return Board(board, "made_up", version, "invented", "1", "01234567" * 8, tuple(submissions))


def _measure(models: int, users: int, folder: Path, out: Path) -> None:
    sys.path.append(str(ROOT / "docs"))
    from make_screenshots import Browser

    board = made_up(folder, models, users)
    built = clocked(lambda: write_site([board], out))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"built      {built.cpu:.1f} s CPU, {built.wall:.1f} s, ", end="")
    print(f"{memory:,.0f} MiB, {size / 1e6:,.0f} MB")
    with Browser() as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        begin = _cpu(browser)
        browser.call("Page.navigate", url=(out / board.name / "index.html").resolve().as_uri())
        while not browser.evaluate(_SHOWN):
            time.sleep(0.05)
        opened = "performance.getEntriesByName('shown')[0].startTime"
        _report("opened", browser.evaluate(opened), _cpu(browser) - begin)
        steps = {"sorted": _SORT, "metric": _CHANGE % "metric", "baseline": _CHANGE % "baseline"}
        for name, step in steps.items():
            begin = _cpu(browser)
            done = browser.call(
                "Runtime.evaluate", expression=step, returnByValue=True, awaitPromise=True
            )
            _report(name, done["result"]["value"], _cpu(browser) - begin)


def _cpu(browser: Any) -> float:
    """Return the CPU time of the page's thread, in milliseconds."""
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return 1000 * sum(each["value"] for each in metrics if each["name"] == "TaskDuration")


def _report(name: str, wall: float, cpu: float) -> None:
    print(f"{name:10} {wall:.0f} ms, {cpu:.0f} ms CPU")


@benchmark()
def main(models: int = 40, users: int = 10_000, out: Path | None = None) -> None:
    """Build and open a site, and print what that costs."""
    with tempfile.TemporaryDirectory() as scratch:
        _measure(models, users, Path(scratch, "made_up"), out or Path(scratch, "site"))
