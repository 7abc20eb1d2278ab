"""Whole runs and comparisons give the numbers that release 0.2 recorded.

`runs.json` has the numbers and `predictions.npz` the prediction of each row. Neither is ever
edited: a number that moves on purpose is an entry of `changed.json`, a list of objects with `case`,
`what` (a metric, or "predictions"), `old`, `new` and `reason`.

Predictions may differ by 1e-6, by `TOLERANCES` where an algorithm ends where rounding leads it.
Where predictions are equal, metrics and their intervals must be equal to 1e-9.
"""

import hashlib
import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import process
from public_logs import JOSH as JOSH_FILE

HERE = Path(__file__).parent
COLLECTION = HERE.parents[2] / "shared" / "data" / "anki-mit" / "collection.anki21"
RECORDED = json.loads((HERE / "runs.json").read_text())
JOSH = "data=py_fsrs data.path=JOSH data.day_start_hour=10"
MIT = "data=revlogs_10k data.path=MIT"
ANKI = "data=anki data.path=ANKI"
SIMULATED = "data.users=4 data.max_reviews=600"
MANY = "data.users=12 data.size_scale=0.1 data.max_reviews=1500"
CSV = (
    "data=csv data.path=log.csv data.columns.user=who data.columns.card=item "
    "data.columns.rating=grade data.columns.time=at"
)

# How far predictions of a case may differ, by a part of its name.
TOLERANCES = {
    **dict.fromkeys(("logistic", "session_filter", "forecast", "mixture", "hlr_duolingo"), 1e-5),
    **{"pretrain": 1e-5, "lstm": 1e-4, "reference": 1e-4, "quick start": 1e-4, "network": 1e-3},
}
# The words of commands, by the names of cases.
SERIES = {
    r"(\w+) on josh": f"algo={{}} {JOSH} panel=quick",
    r"(\w+) in fractional days": f"algo={{}} {JOSH} panel=quick protocol=srs_benchmark_equalised",
    r"fsrs6 under (\w+)": f"algo=fsrs6 {JOSH} panel=quick protocol={{}}",
    r"network (\w+)": f"algo={{}} {SIMULATED} panel=quick",
    r"((?:fit|recency)=\w+)": f"algo=fsrs6 algo.{{}} {JOSH} panel=quick",
}
CASES = {
    name: words.format(match[1])
    for name in RECORDED
    for pattern, words in SERIES.items()
    if (match := re.fullmatch(pattern, name))
}
CASES |= {
    "full panel": f"algo=fsrs6 {JOSH} panel=full",
    "default panel of simulated users": f"algo=fsrs6 {SIMULATED}",
    "default panel of avg": f"algo=avg {SIMULATED}",
    "oracle": f"algo=oracle {SIMULATED} panel=quick",
    "10k layout": f"algo=fsrs6 {MIT} panel=default",
    "avg of the 10k layout": f"algo=avg {MIT} panel=quick",
    "anki file": f"algo=fsrs6 {ANKI} panel=quick",
    "per_group by deck, unpooled": (
        f"algo=per_group algo.group=deck algo.fewest=100 {ANKI} panel=quick"
    ),
    "recorded": (
        f"algo=recorded algo.column=p {CSV} data.columns.p=p protocol=recorded panel=quick"
    ),
    "csv with skipped users": f"algo=hlr {CSV} panel=default",
    "failing for some users": f"--config-dir plug algo=failing {MANY} panel=quick",
    "binary ratings": f"algo=fsrs6 algo.binary=true {JOSH} panel=quick",
}
# Commands whose runs are compared: sweeps, which begin with -m, and single runs.
COMPARED = {
    "quick start compared": ["-m experiment=quick_start"],
    "three models of one user compared": [f"algo={a} {JOSH}" for a in ("fsrs6", "hlr", "avg")],
    "three models of twelve users compared": [
        f"algo={algo} {MANY}" for algo in ("fsrs45", "sm2", "moving_avg")
    ],
}


def write_inputs(folder):
    """Write a table of 20 users, five of them too short, and an algorithm that fails."""
    rng = np.random.default_rng(7)
    lines = ["who,item,grade,at,p"]
    for user in range(20):
        for card in range(2 if user % 4 == 3 else 40):
            days, half_life = rng.uniform(0, 60), rng.lognormal(1.5, 0.7)
            for k in range(8):
                gap = 0.0 if k == 0 else float(rng.lognormal(0.4 + 0.5 * k, 0.6))
                days, p = days + gap, 0.9 if k == 0 else 2.0 ** (-gap / half_life / (1 + k))
                rating = "good" if rng.random() < p else "again"
                recorded = min(0.99, max(0.05, p + rng.normal(0, 0.05)))
                at = 1.6e9 + round(days * 86400)
                lines.append(f"u{user},{card},{rating},{at},{recorded:.4f}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "plug" / "algo").mkdir(parents=True)
    (folder / "plug" / "algo" / "failing.yaml").write_text("_target_: invented.FailsForSome\n")


# The arithmetic of the recorded numbers.
ARITHMETIC = {
    "OMP_NUM_THREADS": "1",
    "SRS_EVAL_CPU": "x86-64-v3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
}
# Runs commands, each a line of input, one after another, and prints their statuses.
PROGRAM = """
import sys
import srs_eval
import commands
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

def run(word, *words):
    if word == "compare":
        return status(*COMMANDS[word], words)
    return commands.run_here([word, *words])

print("", *[run(*line.split(), "tracking=none") for line in sys.stdin])
"""


def run_cases(names, folder, logs):
    """Run cases in a folder; return the numbers of each run, and of each comparison."""
    write_inputs(folder)
    commands, results = [], {}
    for case, name in enumerate(names):
        for k, words in enumerate(COMPARED.get(name, [CASES.get(name)])):
            kind = "sweep" if words.startswith("-m") else "run"
            words = re.sub(r"data.path=([A-Z]+)", lambda m: f"data.path={logs[m[1]]}", words)
            run = f"{case}/{k}"
            commands.append((name, run, f"{words} figures=false hydra.{kind}.dir={run}"))
        if name in COMPARED:
            commands.append((name, f"{case}", f"compare {case} out={case}"))
    env = os.environ | ARITHMETIC | {"PYTHONPATH": os.pathsep.join(sys.path)}
    lines = "\n".join(line for *_, line in commands)
    done = process([sys.executable, "-c", PROGRAM], cwd=folder, env=env, input=lines)
    assert done.returncode == 0, done.stderr
    statuses = done.stdout.split()[-len(commands) :]
    for (name, place, line), status in zip(commands, map(int, statuses), strict=True):
        if line.startswith("compare"):
            numbers = {"comparison": comparison(folder / place / "comparison.json")}
            results[name] = {"status": status, **numbers}
            continue
        for file in sorted((folder / place).rglob("summary.json")):
            label = json.loads(file.read_text())["label"]
            own = name if name in CASES else f"{name}: {label}"
            results[own] = {"status": status, **numbers_of(file.parent)}
    return results


def numbers_of(folder):
    """Read the numbers of a run and the prediction of each row, as `runs.json` has them."""
    summary = json.loads((folder / "summary.json").read_text())
    rows = pd.read_parquet(folder / "predictions.parquet").sort_values(["user", "row"])
    outcomes = [(str(u), int(r), bool(y)) for u, r, y in rows[["user", "row", "recalled"]].values]
    scores = pd.read_parquet(folder / "scores.parquet")
    fits = pd.read_parquet(folder / "fits.parquet").sort_values(["user", "fold"])
    coverage, curves = summary["coverage"], folder / "curves.parquet"
    counts = {
        f"{what} {how}": coverage[what][how]
        for what in ("users", "reviews")
        for how in ("read", "scored", "skipped", "failed")
    }
    for name in ("users", "reviews", "fits", "failed", "skipped", "fallback", "not_converged"):
        counts[name] = summary[name]
    counts["reviews dropped"] = sum(coverage["reviews"].get("dropped", {}).values())
    p, first = rows.p.to_numpy(), fits.parameters.iloc[0]
    falling = pd.read_parquet(curves, columns=["p"]).p if curves.exists() else None
    columns = [name for name in scores if name in summary["metrics"]]
    return {
        "rows": hashlib.sha256(repr(outcomes).encode()).hexdigest()[:16],
        "predictions": p.astype(np.float32),
        "sample": p[:: max(1, len(p) // 200)],
        "parameters": () if first is None else first[:40],
        "curves": None if falling is None else {"n": len(falling), "mean": falling.mean()},
        "counts": counts,
        "columns": columns,
        "users": dict(zip(scores.user.astype(str), scores[columns].to_numpy(float), strict=True)),
        "metrics": summary["metrics"],
    }


def comparison(file):
    """Read the numbers of a comparison by what they are about."""
    content = json.loads(file.read_text())
    keys = ("mean", "lo", "hi", "n_users", "to_best", "to_best_lo", "to_best_hi", "to_best_p")
    values = {
        f"{row['run']} by {row['weighting']} {key}": row[key]
        for row in content["leaderboard"]
        for key in keys
    }
    for pair in content["pairs"]:
        low, high = sorted((pair["run"], pair["other"]))
        sign = 1 if pair["run"] == low else -1
        ends = sorted(sign * pair[key] for key in ("lo", "hi"))
        about = f"{low} less {high} by {pair['weighting']}"
        values[f"{about} difference"] = sign * pair["difference"]
        values |= {f"{about} lo": ends[0], f"{about} hi": ends[1], f"{about} p": pair["p"]}
    for row, shares in content["superiority"].items():
        for name, share in zip(content["superiority"], shares, strict=True):
            values[f"{row} better than {name}"] = share
    return values


def recorded(name):
    """Return the recorded numbers of a run or a comparison."""
    with np.load(HERE / "predictions.npz") as file:
        return RECORDED[name] | ({"predictions": file[name]} if name in file else {})


def flat(result):
    """Return the numbers of a run or a comparison: by what they are of, and a name."""
    values = {}
    for about in ("counts", "curves"):
        values |= {(about, key): value for key, value in (result.get(about) or {}).items()}
    for about in ("predictions", "parameters", "sample"):
        values |= {(about, key): value for key, value in enumerate(result.get(about, ()))}
    for user, scores in result.get("users", {}).items():
        for metric, value in zip(result["columns"], scores, strict=True):
            values[metric, f"of user {user}"] = value
    for metric, row in result.get("metrics", {}).items():
        for key in ("mean_users", "mean_reviews", "pooled", "n_users", "lo", "hi"):
            values[metric, key] = row[key]
    for what, value in result.get("comparison", {}).items():
        values[tuple(what.rsplit(" ", 1))] = value
    return {key: math.nan if value is None else float(value) for key, value in values.items()}


def allowed(old, about, key, loose, tight):
    """Return how far a number may differ. Ends of intervals of one user are resampled."""
    if about in ("counts", "curves"):
        return loose * (key == "mean")
    if about == "parameters":
        return 1e-5 if loose == 1e-6 else np.inf
    if about in ("predictions", "sample"):
        return loose + 1e-7
    if key not in ("lo", "hi"):
        return tight
    if old.get((about, "n_users")) != 1:
        return max(tight, 1e-6)
    width = old[about, "hi"] - old[about, "lo"]
    is_floored = about.startswith(("smece", "ici", "corp_"))
    return np.inf if is_floored or math.isnan(width) else 0.15 * width + 1e-6


def expect_the_same(name, old, new):
    """Hold the numbers of a run or a comparison against others, but for those declared."""
    changed = json.loads((HERE / "changed.json").read_text())
    declared = {entry["what"] for entry in changed if entry["case"] == name}
    declared |= {"parameters", "sample"} if "predictions" in declared else set()
    for key in ("status", "rows"):
        assert old.get(key) == new.get(key), (name, key)
    loose = tight = max((t for part, t in TOLERANCES.items() if part in name), default=1e-6)
    before, after = flat(old), flat(new)
    assert before.keys() <= after.keys()
    table = pd.DataFrame({"before": before, "after": pd.Series(after)[[*before]]})
    sample = table.loc["sample"] if "sample" in old else table
    if np.allclose(sample.before, sample.after, rtol=0, atol=1e-12):
        tight = 1e-9
    room = [allowed(before, *key, loose, tight) for key in before]
    moved = (table.after - table.before).abs() / np.maximum(1, table.before.abs())
    same = (moved <= room) | table.isna().all(axis=1) | np.isinf(room)
    assert table[~same].drop(declared, level=0, errors="ignore").empty, table[~same]


QUICK = (
    *("hlr on josh", "hlr_duolingo on josh", "fsrs6 under prequential"),
    *("default panel of simulated users", "recorded", "csv with skipped users"),
    *("failing for some users", "fsrs7 in fractional days", "10k layout"),
    "three models of twelve users compared",
)
SLOW = (
    *("act_r on josh", "session_filter on josh", "forecast on josh", "lstm on josh"),
    "logistic in fractional days",
)
REST = [name for name in (*CASES, *COMPARED) if name not in (*QUICK, *SLOW)]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(QUICK, id="quick"),
        pytest.param(SLOW, id="slow", marks=pytest.mark.slow),
        *(pytest.param([name], id=name, marks=pytest.mark.nightly) for name in REST),
    ],
)
def test_the_numbers_are_those_of_release_0_2(names, real_logs, tmp_path):
    if "data=anki" in CASES.get(names[0], "") and not COLLECTION.exists():
        pytest.skip("the collection is not here")
    logs = {"JOSH": real_logs / JOSH_FILE, "MIT": real_logs / "anki-mit", "ANKI": COLLECTION}
    results = run_cases(names, tmp_path, logs)
    expected = {name: recorded(name) for name in RECORDED if name.partition(":")[0] in names}
    assert {*results} == {*expected}
    for name, result in results.items():
        expect_the_same(name, expected[name], result)
