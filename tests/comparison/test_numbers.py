"""Every number of the frame is what its name says, and every number printed is one of the frame.

What a number should be is computed here from the scores, by loops.
"""

import io
import json
import math
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from saved import entry_with

from srs_eval.comparison import report
from srs_eval.comparison.answer import terminal
from srs_eval.comparison.compare import compare
from srs_eval.comparison.leaderboard import NOISE
from srs_eval.comparison.report import JSON, csv_text, latex, markdown, write_files
from srs_eval.metrics.means import mean_of_users

RUNS = ("ann", "bob", "cleo", "dan", "eve")
TIMES = ("previous_review", "day_before", "at_review")
SIGNS = {"log_loss": 1, "auc": -1, "mbe": 1}
WEIGHTS = {"users": np.ones_like, "reviews": np.asarray, "log_reviews": np.log}
BIAS = "threshold_bias_at_0_9"


class Random:
    """A random comparison by a metric, and the scores it was made of."""

    def __init__(self, seed, metric):
        rng = np.random.default_rng(seed)
        users = [*(f"user{n}" for n in rng.permutation(17)), *rng.permutation(9).tolist()]
        size = len(users), len(RUNS)
        level = rng.uniform(0.2, 0.6, (len(users), 1)) + rng.normal(0, 0.02, len(RUNS))
        scores = {name: level + rng.normal(0, 0.03, size) for name in (*SIGNS, "smece", BIAS)}
        scores["mbe"] *= rng.choice([-1, 1], size)
        column = scores[metric] = np.round(scores[metric], 2)  # some users are alike
        if seed % 2:
            column[:, 1], column[:, 2] = column[:, 0], column[:, 3] + 1e-6
        column[rng.integers(len(users)), rng.integers(len(RUNS))] = math.nan
        sizes = rng.integers(10, 9_000, len(users))
        runs = [
            entry_with(
                name,
                dict(zip(users, sizes.tolist(), strict=True)),
                {key: each[:, n] for key, each in scores.items()},
                when=TIMES[rng.integers(1 + seed % 3)],
                sees_truth=n == 4,
                fits=9,
                failed=int(n == 3),
            )
            for n, name in enumerate(RUNS)
        ]
        self.standings = compare(runs, metric=metric, baseline="bob")
        self.metric, self.sign = metric, SIGNS[metric]
        known = ~np.isnan(column).any(axis=1)
        self.values, self.sizes = (abs(column) if metric == "mbe" else column)[known], sizes[known]

    def mean(self, run, weighting):
        weights = WEIGHTS[weighting](self.sizes.astype(float))
        return float((self.values[:, run] * weights).sum() / weights.sum())

    def counts(self, run, other):
        """Users for whom a run is better than another, worse, and the same."""
        gains = [self.sign * (row[other] - row[run]) for row in self.values.tolist()]
        return sum(g > 0 for g in gains), sum(g < 0 for g in gains), sum(g == 0 for g in gains)


@pytest.fixture(params=[*enumerate([*SIGNS] * 2)], ids=str)
def random(request):
    return Random(*request.param)


def test_every_number_of_the_frame_is_what_its_name_says(random):
    frame = random.standings.frame
    assert len(frame) == len(RUNS) * len(WEIGHTS)
    assert not {"dan", "eve"} & {*frame.leader}  # one has failed fits, and one knows the truth
    for _, board in frame.groupby(["weighting", "when"], sort=False):
        assert all(a <= b for a, b in pairwise(random.sign * board["mean"]))
    for _, board in frame.groupby(["weighting", "leader"], sort=False):
        assert board.place.tolist() == [*range(1, len(board) + 1)]
    for _, board in frame.set_index("run").groupby("weighting"):
        leader = board.leader["bob"]  # compared with the baseline once
        one, other = board.loc[leader], board.loc["bob"]
        if leader != "bob":
            mirrored = (-other.to_best, -other.to_best_hi, -other.to_best_lo, other.to_best_p)
            names = ("to_baseline", "to_baseline_lo", "to_baseline_hi", "to_baseline_p")
            assert tuple(one[name] for name in names) == mirrored
    for row in frame.itertuples():
        run = RUNS.index(row.run)
        assert row.mean == pytest.approx(random.mean(run, row.weighting))
        weights = WEIGHTS[row.weighting](random.sizes.astype(float))
        base = random.mean(1, row.weighting) if random.metric == "log_loss" else math.nan
        assert row.to_baseline_percent == pytest.approx(100 * (row.mean / base - 1), nan_ok=True)
        lo, hi = mean_of_users(random.values[:, run], weights).interval()
        assert (row.lo, row.hi) == pytest.approx((max(lo, 0), hi))
        assert row.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
        same = frame[(frame.weighting == row.weighting) & (frame.when == row.when)]
        leader = next(iter(same.run[same.to_best_verdict.isin(["best", "leads"])]), None)
        for to, other in (("best", leader), ("baseline", "bob")):
            users = (*(getattr(row, f"to_{to}_users_{n}") for n in ("better", "worse", "alike")),)
            if other is None or other == row.run:
                assert other is None or users == (0, 0, 0)
                continue
            other = RUNS.index(other)
            difference = row.mean - random.mean(other, row.weighting)
            assert getattr(row, f"to_{to}") == pytest.approx(difference)
            assert users == random.counts(run, other)
            lo, hi, p, said = (getattr(row, f"to_{to}_{n}") for n in ("lo", "hi", "p", "verdict"))
            if said == "bound":
                continue
            differs = said in ("better", "worse")
            assert differs or said in (NOISE, "identical")
            assert differs == (p < 0.01) == (lo > 0 or hi < 0) or said == "identical"
            if differs:
                assert (said == "worse") == (random.sign * getattr(row, f"to_{to}") > 0)


def test_json_read_back_has_the_frame_and_every_pair(random, tmp_path, page_without_images):
    write_files(random.standings, tmp_path)
    saved = json.loads((tmp_path / JSON).read_text(encoding="utf-8"))
    frame = random.standings.frame
    again = pd.DataFrame(saved["leaderboard"]).replace({None: np.nan})
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    for a, run in enumerate(RUNS):
        better = [random.counts(a, b) for b in range(len(RUNS))]
        shares = [(wins + same / 2) / len(random.values) for wins, _, same in better]
        assert saved["superiority"][run] == pytest.approx(shares)
    assert len(saved["pairs"]) == len(WEIGHTS) * len(RUNS) * (len(RUNS) - 1) / 2
    for pair in saved["pairs"]:
        run, other = (RUNS.index(pair[name]) for name in ("run", "other"))
        weights = WEIGHTS[pair["weighting"]](random.sizes.astype(float))
        gap = mean_of_users(random.values[:, run] - random.values[:, other], weights)
        means = [random.mean(n, pair["weighting"]) for n in (run, other)]
        assert gap.mean == pytest.approx(means[0] - means[1])
        numbers = [pair[name] for name in ("difference", "lo", "hi", "p")]
        assert numbers == pytest.approx([gap.mean, *gap.interval(), gap.p_value])


def test_tables_of_the_page_have_every_pair_and_the_users_that_differ_most(random, monkeypatch):
    monkeypatch.setattr(report, "render", lambda _, **values: values)
    monkeypatch.setattr(report, "_MOST_USERS", 6)
    standings, rows = random.standings, random.standings.rows
    content, leaders = report.page(standings), {*rows.leader} - {""}
    assert ("its time" in content["pictures"][0][0]) == (len(leaders) > 1)
    tables = [table.rows for part in content["parts"] for table in part.tables]
    _, *against, gaps, _, counts, users = tables
    assert bool(against) == ({*rows.leader} != {"bob"})
    for name, *cells in gaps:
        expected = (rows["mean"][name] - rows["mean"]).where(rows.run != name)
        shown = [float(cell or "nan") for cell in cells]
        assert shown == pytest.approx([*expected], abs=5.1e-5, nan_ok=True)
    for name, *numbers in counts:
        assert numbers[:2] == rows.loc[name].filter(like="to_best_users")[:2].tolist()
    scores, leader = standings.scores, rows.run.iloc[0]
    gap = scores[leader] - scores["bob" if leader != "bob" else rows.run.iloc[-1]]
    order = gap.sort_values(kind="stable").index
    assert [row[0] for row in users] == [*order[:3], *order[-3:]]
    for user, size, *values in users:
        assert (size, values) == (standings.sizes[user], scores.loc[user, rows.run].tolist())


def test_every_number_printed_is_one_of_the_frame(random):
    frame = random.standings.frame
    rows = frame[frame.weighting == "users"]
    columns = [rows[name] for name in ("mean", "to_best", "to_best_lo", "to_best_hi")]
    known = np.concatenate([*columns, 100 * rows[BIAS], rows.to_baseline_percent.abs(), [0.1]])
    for form in (terminal, markdown, latex):
        text = form(random.standings)
        assert re.search(r"at 90 .*88 to 92", text, re.DOTALL)
        body = [line for line in text.splitlines() if any(f"{name} " in line for name in RUNS)]
        printed = re.findall(r"(?<![\w.])[-+]?\d+\.\d+", "\n".join(body))
        assert len(printed) >= 2 * len(RUNS), form.__name__
        for number in printed:
            rounding = 0.5 * 10.0 ** -len(number.partition(".")[2])
            gap = np.nanmin(abs(known - float(number)))
            assert gap <= rounding * (1 + 1e-6), (form.__name__, number)
    lines = terminal(random.standings).splitlines()
    for _, row in rows.iterrows():
        (line,) = [line for line in lines if re.match(rf"{row.run}( [§†]+)?  ", line)]
        assert row.to_best_verdict in line
        assert line.endswith("*") == (row[f"{BIAS}_lo"] > 0 or row[f"{BIAS}_hi"] < 0)
        assert len(line) <= 80
    table = pd.read_csv(io.StringIO(csv_text(random.standings)))
    expected = frame.replace("", np.nan)
    pd.testing.assert_frame_equal(table, expected, check_exact=True, check_dtype=False)
