"""Every number in every table of a text and of a paper, read back and compared with its meaning.

What a number in a file of full precision should be is computed here from the scores, by loops
where its meaning is simple, and taken from the verdict where it is a test. A cell should say the
number of the JSON file. Rows are found by the name of their run and columns by their heading, so
that further ones do no harm.
"""

import csv
import html as entities
import json
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from srs_eval.comparison.report.files import CSV, JSON, LATEX, MARKDOWN, write_files
from srs_eval.comparison.report.words import headline

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.strata import FACTS, Strata, Stratum
from srs_eval.metrics.means import Estimate
from srs_eval.runs.summary import Summary

RUNS = ("ann", "bob", "cleo", "dan", "eve")
TIMES = ("previous_review", "day_before", "at_review")
SIGNS = {"log_loss": 1, "auc": -1, "mbe": 1, "smece": 1}
WEIGHTS = {"users": np.ones_like, "reviews": np.asarray, "log_reviews": np.log}
ALIKE = ("best", "leads", "identical", "not significantly different")
SAID = {
    "worse": "Worse on average: ",
    "not significantly different": "Not significantly different on average: ",
    "identical": "The same scores: ",
    "better": "Better on average, but not eligible for best: ",
}
NUMBER = r"[<>]?[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?"


class Comparison:
    """A random comparison by a metric, and the scores it was made of."""

    def __init__(self, seed, metric):
        rng = np.random.default_rng(seed)
        users = [*(f"user{n}" for n in rng.permutation(17)), *rng.permutation(9).tolist()]
        size = len(users), len(RUNS)
        level = rng.uniform(0.2, 0.6, (len(users), 1)) + rng.normal(0, 0.02, len(RUNS))
        self.scores = {name: level + rng.normal(0, 0.03, size) for name in SIGNS}
        self.scores["mbe"] *= rng.choice([-1, 1], size)
        self.scores[metric] = column = np.round(self.scores[metric], 2)  # some users are alike
        if seed % 2:
            column[:, 1], column[:, 2] = column[:, 0], column[:, 3] + 1e-6
        self.scores[metric][rng.integers(len(users)), rng.integers(len(RUNS))] = math.nan
        sizes = rng.integers(10, 9_000, len(users))
        runs = [
            Entry(
                name=name,
                place=Path("nowhere") / name,
                rows=dict.fromkeys(users, "digest"),
                reviews=dict(zip(users, sizes.tolist(), strict=True)),
                scores={known: columns[:, number] for known, columns in self.scores.items()},
                facts=Summary(
                    name,
                    data=f"of {name}",
                    when=str(rng.choice(TIMES[: 1 + seed % 3])),
                    sees_truth=bool(rng.random() < 0.2),
                ),
            )
            for number, name in enumerate(RUNS)
        ]
        self.metric, self.sign = metric, SIGNS[metric]
        self.baseline = int(rng.integers(len(RUNS)))
        self.verdict = compare(runs, metric=metric, baseline=RUNS[self.baseline])
        self.strata = made_up_strata(rng)
        vars(self.verdict)["strata"] = self.strata
        kept = ~np.isnan(self.scores[metric]).any(axis=1)
        self.users = [user for user, is_kept in zip(users, kept, strict=True) if is_kept]
        self.sizes = sizes[kept]
        found = self.scores[metric][kept]
        self.values = np.abs(found) if metric == "mbe" else found

    def mean(self, run, weighting="users"):
        weights = WEIGHTS[weighting](self.sizes.astype(float))
        return (self.values[:, run] * weights).sum() / weights.sum()

    def counts(self, run, other):
        """Users for whom a run is better than another, worse, and alike."""
        gains = [self.sign * (row[other] - row[run]) for row in self.values.tolist()]
        return sum(g > 0 for g in gains), sum(g < 0 for g in gains), sum(g == 0 for g in gains)

    def gaps(self, run):
        """Difference to the baseline of each user."""
        rows = zip(self.users, self.values.tolist(), strict=True)
        return {user: row[run] - row[self.baseline] for user, row in rows}

    def mean_rank(self, run, group):
        ranks = []
        for row in self.sign * self.values[:, group]:
            own = row[group.index(run)]
            ranks.append(1 + sum(row < own) + (sum(row == own) - 1) / 2)
        return np.mean(ranks)

    def superiority(self, run, other):
        better, _, tied = self.counts(run, other)
        return (better + tied / 2) / len(self.users)


def made_up_strata(rng):
    """Differences in some strata of two facts, for all runs but the last."""
    facts, runs = [], len(RUNS) - 1
    for fact in FACTS[:2]:
        strata = []
        for label in fact.labels[:4]:
            gap, low, high = rng.normal(0, 0.02, runs), *rng.uniform(0.001, 0.02, (2, runs))
            sizes = rng.integers(100, 10_000, 2).tolist()
            strata.append(Stratum(label, rng.random(), *sizes, gap, gap - low, gap + high))
        facts.append((fact, tuple(strata)))
    um_plus = [[Estimate(*rng.uniform(0.01, 0.1, 2), 0.0, 9.0) for _ in RUNS[1:]] for _ in RUNS[1:]]
    return Strata(tuple(range(runs)), "log_loss", "users", tuple(facts), tuple(um_plus))


def expected_cells(saved):
    """What cells say by the JSON, by table, row and heading: text, numbers, users with numbers."""
    cells = defaultdict(dict)
    metric = saved["metric"]
    for row in saved["leaderboard"]:
        cells[f"leaderboard_{row['weighting']}"][row["run"]] = {
            "when": row["when"].replace("_", " "),
            metric: [row["mean"]],
            "99 % interval": [row["lo"], row["hi"]],
            "to best": [row["to_best"]],
            **of_a_test(row, "to_best", "on average"),
        }
    for row in (each for each in saved["leaderboard"] if each["weighting"] == "users"):
        name, others = row["run"], {"log_loss", "smece", "auc"} - {metric}
        # One user lacks a score of the metric that is compared, and no other.
        cells["beside"][name] = {f"{other} (26 users)": [row[other]] for other in others}
        cells["ranks"][name] = {"mean rank": [row["mean_rank"]]}
        if row["to_best"] is not None:
            before = TIMES[: 1 + TIMES.index(row["when"])]
            led = max(set(before) & set(saved["leaders"]), key=TIMES.index)
            cells[f"leaderboard_majority_{led}"][name] = majority(row, "to_best")
        if name != saved["baseline"]:
            difference = {"difference": [row["to_baseline"]]}
            test = of_a_test(row, "to_baseline", "on average")
            cells["against_baseline"][name] = {**difference, **test}
            cells["against_baseline_majority"][name] = majority(row, "to_baseline")
    for run, (name, shares) in zip(saved["runs"], saved["superiority"].items(), strict=True):
        row = zip(RUNS, shares, strict=True)
        cells["superiority"][name] = {n: [None if n == name else share] for n, share in row}
        cells["runs"][name] = {"data": run["data"]}
    for row in saved["against_baseline"]:
        if row["run"] != saved["baseline"]:
            users = {"better for": row["gains"], "worse for": row["losses"]}
            cells["users"][row["run"]] = users
    for fact, strata in saved["where"]["facts"].items():
        rows = cells[f"where_{fact}"]
        rows["share"] = {part["label"]: [part["share"], part["users"]] for part in strata}
        for run in set(strata[0]["lo"]) - {saved["baseline"]}:
            names = "difference", "lo", "hi"
            rows[run] = {part["label"]: [part[name][run] for name in names] for part in strata}
    for one in saved["where"]["um_plus"]:
        cell = {one["other"]: [one[name] for name in ("mean", "lo", "hi")]}
        cells["um_plus"].setdefault(one["run"], {}).update(cell)
    return cells


def of_a_test(row, to, name):
    """Cells of a test; the leader has none."""
    lo, hi = row[f"{to}_lo"], row[f"{to}_hi"]
    return {
        "interval": [lo, hi],
        "level": [None if lo is None else row[f"{to}_level"]],
        "p": [row[f"{to}_p"]],
        name: row[f"{to}_verdict"],
    }


def majority(row, to):
    counts = {name: row[f"{to}_users_{name}"] for name in ("better", "worse", "alike")}
    differ = counts["better"] + counts["worse"]
    return {
        **{name: [count] for name, count in counts.items()},
        "share": [counts["better"] / differ if differ else None],
        **of_a_test(row, f"{to}_users", "for most users"),
    }


def largest(gaps, sign):
    """Return the differences of the users with the largest in one direction."""
    return sorted((gap for gap in gaps.values() if sign * gap > 0), key=abs)[:-6:-1]


def check_cell(cell, expected):
    """Compare a cell with text, with numbers as they are rounded, or with users and numbers."""
    if isinstance(expected, str):
        assert cell == expected
    elif expected and isinstance(expected[0], list):
        found = re.findall(r"(\w+)[\s~]\(([-+.\d]+)\)", cell)
        assert [user for user, _ in found] == [f"{user}" for user, _ in expected]
        for (_, shown), (_, gap) in zip(found, expected, strict=True):
            check_number(shown, gap, shown)
    elif all(value is None for value in expected):
        assert cell in ("", "-", "none")
    else:
        shown = re.findall(NUMBER + r"(?: %)?", cell)
        assert len(shown) == len(expected), cell
        for text, value in zip(shown, expected, strict=True):
            check_number(text, value, cell)


def check_number(text, value, cell):
    """Compare a number with a text of some decimals."""
    plain = text.replace(",", "").removesuffix(" %").lstrip("<>")
    shown, exponent = plain.partition("e")[::2]
    step = 10.0 ** (int(exponent or 0) - len(shown.partition(".")[2]))
    value = 100 * value if text.endswith("%") else value
    if text[0] in "<>":
        assert (value < float(plain)) == (text[0] == "<"), (cell, value)
    else:
        assert abs(float(plain) - value) <= 0.5 * step * (1 + 1e-6), (cell, value)


def check_answer(interval, _, p, verdict, null):
    """Compare the last cells of a row, which must not contradict each other as printed."""
    if verdict not in ("best", "leads", "unknown"):
        differs = verdict in ("better", "worse")
        assert (p.startswith("<") or float(p) < 0.01) == differs
        if interval != "-":
            lo, hi = (float(bound) for bound in re.findall(NUMBER, interval))
            assert (lo > null or hi < null) == differs


def check_headline(verdict):
    """Find each run in the sentence on its leader, where its verdict says."""
    board, said = verdict.leaderboard, headline(verdict)
    leaders = [leader for leader in board.groups if leader >= 0]
    sentences = re.split(r"Predicted [a-z' ]+: ", said)[-len(leaders) :]
    for leader, sentence in zip(leaders, sentences, strict=True):
        for model in board.groups[leader]:
            name, answer = RUNS[model], board.to_best[model].average.verdict
            if answer in SAID:
                assert name in sentence.partition(SAID[answer])[2].partition(". ")[0]
            else:
                word = "predicts best" if answer == "best" else "leads|alone"
                assert re.match(f"{name} ({word})", sentence)


def tables_of_markdown(text):
    """Yield tables, in order."""
    for section in text.split("\n## ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (lines[0], *lines[2:])]
        plain = [[entities.unescape(cell).replace("\\", "") for cell in row] for row in rows]
        yield [[cell.strip(" *") for cell in row] for row in plain]


def tables_of_latex(text):
    """Tables by their labels."""
    tables = {}
    for section in text.split("\\label{tab:")[1:]:
        key, _, rest = section.partition("}")
        body = rest.partition("\\toprule")[2].partition("\\bottomrule")[0].replace("\\midrule", "")
        rows = [re.split(r"(?<!\\)&", row) for row in body.split("\\\\") if row.strip()]
        tables[key] = [[from_latex(cell) for cell in row] for row in rows]
    return tables


def from_latex(cell):
    for written, sign in ((r"\textless{}", "<"), (r"\textgreater{}", ">"), (r"$\geq$", "≥")):
        cell = cell.replace(written, sign)
    return re.sub(r"\\textbf|[{}\\]", "", cell).strip()


COMPARISONS = [(seed, metric) for seed, metric in enumerate([*SIGNS] * 3) if metric != "smece"]


@pytest.fixture(params=COMPARISONS, ids=str)
def one(request):
    return Comparison(*request.param)


def test_every_cell_of_every_table_says_what_its_heading_says(one, tmp_path):
    write_files(one.verdict, tmp_path)
    in_markdown, in_latex, in_json = (
        (tmp_path / name).read_text(encoding="utf-8") for name in (MARKDOWN, LATEX, JSON)
    )
    latex = tables_of_latex(in_latex)  # by the names of tables; formats have one order
    markdown = dict(zip(latex, tables_of_markdown(in_markdown), strict=True))
    for key, rows in expected_cells(json.loads(in_json)).items():
        for headings, *body in (latex[key], markdown[key]):
            assert len(set(headings)) == len(headings)
            found = {row[0].split()[0]: dict(zip(headings, row, strict=True)) for row in body}
            for run, row in rows.items():
                for heading, expected in row.items():
                    check_cell(found[run][heading], expected)
    for key, (_, *rows) in latex.items():
        for row in rows if key.startswith(("leaderboard_", "against_")) else ():
            check_answer(*row[-4:], null=50.0 if "majority" in key else 0.0)
    bold = re.findall(r"\\textbf\{(\w+)", in_latex.partition("tab:leaderboard_reviews")[0])
    alike = [row[0].split()[0] for row in latex["leaderboard_users"] if row[-1] in ALIKE]
    assert bold == alike
    assert not re.search(r"\b(nan|inf)\b", in_latex, re.IGNORECASE)
    check_headline(one.verdict)


def check_row(row, one, run, board):
    """Compare a row of the tidy table, of which all values are text or numbers."""
    verdict, leader = one.verdict, board.leaders[run]
    weights = WEIGHTS[board.weighting](one.sizes.astype(float))
    means = [one.mean(n, board.weighting) for n in (run, leader, one.baseline)]
    group = next(group for group in verdict.leaderboard.groups.values() if run in group)
    expected = {
        **{"mean": means[0], "lo": board.lo[run], "hi": board.hi[run]},
        **{"n_users": len(one.users), "n_effective": weights.sum() ** 2 / (weights**2).sum()},
        "place": 1 + board.groups[leader].index(run),
        "mean_rank": one.mean_rank(run, group),
    }
    for to, other, standing, theirs in (
        ("best", leader, board.to_best[run], means[1]),
        ("baseline", one.baseline, board.to_baseline[run], means[2]),
    ):
        counts = (0, 0, 0) if run == other else one.counts(run, other)
        average, users = standing.average, standing.users
        expected |= {
            f"to_{to}": math.nan if run == other else means[0] - theirs,
            **{f"to_{to}_lo": average.lo, f"to_{to}_hi": average.hi},
            **{f"to_{to}_level": average.level, f"to_{to}_p": average.p_value},
            **{f"to_{to}_users_lo": users.lo, f"to_{to}_users_hi": users.hi},
            **{f"to_{to}_users_level": users.level, f"to_{to}_users_p": users.p_value},
            f"to_{to}_users_better": counts[0],
            f"to_{to}_users_worse": counts[1],
            f"to_{to}_users_alike": counts[2],
        }
        is_worse = {average: one.sign * (means[0] - theirs) > 0, users: counts[1] > counts[0]}
        for answer, worse in is_worse.items():
            assert answer.verdict not in ("better", "worse") or (answer.verdict == "worse") == worse
        assert row[f"to_{to}_verdict"] == average.verdict
        assert row[f"to_{to}_users_verdict"] == users.verdict
    for name in ("log_loss", "smece", "auc"):
        if name != one.metric:
            expected[name] = one.scores[name][:, run].mean()
    found = {
        name: float(row[name]) if row[name] not in ("", None) else math.nan for name in expected
    }
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_every_number_in_files_of_full_precision_is_what_its_name_says(one, tmp_path):
    write_files(one.verdict, tmp_path)
    with (tmp_path / CSV).open(encoding="utf-8", newline="") as file:
        in_csv = list(csv.DictReader(file))
    saved = json.loads((tmp_path / JSON).read_text(encoding="utf-8"))
    for rows in (in_csv, saved["leaderboard"]):
        assert len(rows) == len(RUNS) * len(WEIGHTS)
        for board in one.verdict.leaderboards:
            mine = {row["run"]: row for row in rows if row["weighting"] == board.weighting}
            for run, name in enumerate(RUNS):
                check_row(mine[name], one, run, board)
    assert (saved["users"], saved["baseline"]) == (len(one.users), RUNS[one.baseline])
    for row in saved["against_baseline"]:
        run = RUNS.index(row["run"])
        for name, sign in (("gains", -one.sign), ("losses", one.sign)):
            gaps = one.gaps(run)
            assert [gap for _, gap in row[name]] == pytest.approx(largest(gaps, sign))
            assert [gaps[user] for user, _ in row[name]] == pytest.approx(largest(gaps, sign))
    for run, name in enumerate(RUNS):
        row = [one.superiority(run, other) for other in range(len(RUNS))]
        assert saved["superiority"][name] == pytest.approx(row)
    boards = {board.weighting: board for board in one.verdict.leaderboards}
    assert len(saved["pairs"]) == len(boards) * len(RUNS) * (len(RUNS) - 1) / 2
    for pair in saved["pairs"]:
        run, other = (RUNS.index(pair[name]) for name in ("run", "other"))
        difference = one.mean(run, pair["weighting"]) - one.mean(other, pair["weighting"])
        estimate = boards[pair["weighting"]].pairs[run][other]
        assert pair["difference"] == pytest.approx(difference)
        assert (pair["lo"], pair["hi"]) == estimate.interval()
        assert pair["lo"] <= pair["difference"] <= pair["hi"]
        assert pair["p"] == estimate.p_value
    for fact, strata in one.strata.facts:
        for row, stratum in zip(saved["where"]["facts"][fact.name], strata, strict=True):
            sizes = row["label"], row["share"], row["reviews"], row["users"]
            assert sizes == (stratum.label, stratum.share, stratum.n_reviews, stratum.n_clusters)
            for at, run in enumerate(one.strata.runs):
                found = tuple(row[name][RUNS[run]] for name in ("difference", "lo", "hi"))
                assert found == (stratum.gap[at], stratum.lo[at], stratum.hi[at])
