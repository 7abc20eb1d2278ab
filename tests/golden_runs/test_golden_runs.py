"""Whole runs and comparisons give the numbers that release 0.2 recorded.

`runs.json` has the numbers and `predictions.npz` the prediction of each row. Neither is ever
edited: a number that moves on purpose is an entry of `changed.json`, a list of objects with `case`,
`what` (a metric, or "predictions"), `old`, `new` and `reason`.

Predictions may differ by 1e-6, by `TOLERANCES` where an algorithm ends where rounding leads it.
Where predictions are equal, metrics and their intervals must be equal to 1e-9.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import process
from public_logs import JOSH as JOSH_FILE

HERE = Path(__file__).parent
COLLECTION = HERE.parents[2] / "shared" / "data" / "anki-mit" / "collection.anki21"
JOSH = "data=py_fsrs data.path=JOSH data.day_start_hour=10"
MIT = "data=revlogs_10k data.path=MIT"
ANKI = "data=anki data.path=ANKI"
SIMULATED = "data.users=4 data.max_reviews=600"
MANY = "data.users=12 data.size_scale=0.1 data.max_reviews=1500"
CSV = (
    "data=csv data.path=log.csv data.columns.user=who data.columns.card=item "
    "data.columns.rating=grade data.columns.time=at"
)
QUIET = "figures=false tracking=none"

# How far predictions of a case may differ, by a part of its name.
TOLERANCES = {
    "lstm": 1e-4,
    "logistic": 1e-5,
    "session_filter": 1e-5,
    "forecast": 1e-5,
    "mixture": 1e-5,
    "hlr_duolingo": 1e-5,
    "reference": 1e-4,
    "pretrain": 1e-5,
    "quick start": 1e-4,
    "network": 1e-3,
}
ALGORITHMS = (
    *("avg", "avg_smoothed", "constant", "moving_avg", "sm2", "sm2_trainable"),
    *("anki_sm2", "anki_sm2_trainable", "hlr", "hlr_duolingo", "ebisu", "act_r", "dash"),
    *("dash_mcm", "dash_act_r", "fsrs1", "fsrs2", "fsrs3", "fsrs4", "fsrs45"),
    *("fsrs45_default", "fsrs45_pretrain", "fsrs5", "fsrs6", "fsrs7", "sbd", "logistic"),
    *("lstm", "session_filter", "session_filter_small", "forecast", "rmse_bins_exploit"),
    *("mixture", "fsrs_rs"),
)
CASES = {
    **{f"{algo} on josh": f"algo={algo} {JOSH} panel=quick" for algo in ALGORITHMS},
    **{
        f"{algo} in fractional days": (
            f"algo={algo} {JOSH} panel=quick protocol=srs_benchmark_equalised"
        )
        for algo in ("fsrs6", "fsrs7", "logistic", "lstm", "session_filter", "sbd")
    },
    **{
        f"fsrs6 under {protocol}": f"algo=fsrs6 {JOSH} panel=quick protocol={protocol}"
        for protocol in ("srs_benchmark_secs", "prequential", "srs_benchmark_refit", "validation")
    },
    **{
        f"network {algo}": f"algo={algo} {SIMULATED} panel=quick"
        for algo in (
            *("lstm_published", "lstm_curves", "gru", "gru_p", "gru_curves", "nn17"),
            "transformer",
        )
    },
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
    "fit=reference": f"algo=fsrs6 algo.fit=reference {JOSH} panel=quick",
    "fit=default": f"algo=fsrs6 algo.fit=default {JOSH} panel=quick",
    "recency=none": f"algo=fsrs6 algo.recency=none {JOSH} panel=quick",
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
PLUG_IN = '''
import numpy as np

from srs_eval import Algorithm


class Constant:
    parameters = (0.9,)

    def predict(self, reviews, rows):
        return np.full(len(rows), 0.9)


class Failing(Algorithm):
    """Fails for users whose number of reviews leaves 1 when divided by 16."""

    def fit(self, reviews, rows, rng):
        if len(reviews.card) % 16 == 1:
            raise ValueError("no fit for this user")
        return Constant()
'''


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
    (folder / "plug" / "algo" / "failing.yaml").write_text("_target_: failing.Failing\n")
    (folder / "failing.py").write_text(PLUG_IN)


QUICK = (
    *("hlr on josh", "fsrs6 under prequential", "default panel of simulated users"),
    *("recorded", "csv with skipped users", "failing for some users"),
)
SLOW = ("fsrs7 in fractional days", "10k layout", "three models of twelve users compared")
PARAMETERS = [
    *QUICK,
    *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
    *(
        pytest.param(name, marks=pytest.mark.nightly)
        for name in (*CASES, *COMPARED)
        if name not in (*QUICK, *SLOW)
    ),
]
# The arithmetic of the recorded numbers.
ARITHMETIC = {
    "OMP_NUM_THREADS": "1",
    "SRS_EVAL_CPU": "x86-64-v3",
    "ATEN_CPU_CAPABILITY": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "COLUMNS": "160",
}


def run_command(module, words, folder, logs):
    """Run a command in a folder; return its status."""
    for name, path in logs.items():
        words = words.replace(f"data.path={name}", f"data.path={path}")
    command = [sys.executable, "-m", module, *words.split()]
    return process(command, cwd=folder, env=os.environ | ARITHMETIC).returncode


def run_case(name, folder, logs):
    """Run a case in a folder, and return the numbers of its run, or of its runs and comparison."""
    write_inputs(folder)
    results, runs = {}, []
    for k, words in enumerate(COMPARED.get(name, [CASES.get(name)])):
        kind = "sweep" if words.startswith("-m") else "run"
        status = run_command("srs_eval", f"{words} {QUIET} hydra.{kind}.dir=r{k}", folder, logs)
        runs.append(f"r{k}")
        pattern = f"r{k}/*/summary.json" if kind == "sweep" else f"r{k}/summary.json"
        for file in sorted(folder.glob(pattern)):
            label = json.loads(file.read_text())["label"]
            own = name if name in CASES else f"{name}: {label}"
            results[own] = {"status": status, **numbers(file.parent)}
    if name in COMPARED:
        words = f"{' '.join(runs)} out=c tracking=none"
        status = run_command("srs_eval.compare", words, folder, logs)
        results[name] = {"status": status, "comparison": comparison(folder / "c/comparison.json")}
    return results


def numbers(folder):
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
        "curves": {} if falling is None else {"n": len(falling), "mean": falling.mean()},
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


def recorded(case):
    """Return the recorded numbers of a case."""
    runs = json.loads((HERE / "runs.json").read_text())
    with np.load(HERE / "predictions.npz") as predictions:
        return {
            name: {**run, "predictions": predictions[name] if "rows" in run else None}
            for name, run in runs.items()
            if name == case or name.startswith(f"{case}: ")
        }


def flat(result):
    """Yield each number of a run or a comparison: what it is of, its name, and itself."""
    for key, value in (result.get("curves") or {}).items():
        yield "curves", key, value
    for user, scores in result.get("users", {}).items():
        for metric, value in zip(result["columns"], scores, strict=True):
            yield metric, f"of user {user}", value
    for metric, row in result.get("metrics", {}).items():
        for key in ("mean_users", "mean_reviews", "pooled", "n_users", "lo", "hi"):
            yield metric, key, row[key]
    for what, value in result.get("comparison", {}).items():
        if value is not None:
            about, _, key = what.rpartition(" ")
            yield about, key, value


def allowed(old, about, key, loose, tight):
    """Return how far a number may differ. Ends of intervals of one user are resampled."""
    if about == "curves":
        return loose * (key != "n")
    if key not in ("lo", "hi"):
        return tight
    numbers = {name: value for what, name, value in flat(old) if what == about}
    if numbers.get("n_users") != 1:
        return max(tight, 1e-6)
    if None in (numbers["lo"], numbers["hi"]) or about.startswith(("smece", "ici", "corp_")):
        return np.inf
    return 0.15 * (numbers["hi"] - numbers["lo"]) + 1e-6


def differ(old, new, tolerance):
    """Whether numbers differ beyond a tolerance, which is relative to those above 1."""
    if np.shape(old) != np.shape(new):
        return True
    old, new = (np.asarray(each, np.float64) for each in (old, new))  # None becomes nan
    close = np.abs(old - new) <= tolerance * np.maximum(1, np.abs(old))
    return not np.all(close | (np.isnan(old) & np.isnan(new)) | np.isinf(tolerance))


def differences(name, old, new):
    """Yield what differs between two results of a run or a comparison beyond the tolerances."""
    changed = json.loads((HERE / "changed.json").read_text())
    declared = {entry["what"] for entry in changed if entry["case"] == name}
    loose = tight = max((t for part, t in TOLERANCES.items() if part in name), default=1e-6)
    for key in ("status", "rows", "counts"):
        if old.get(key) != new.get(key):
            yield f"{key}: {old.get(key)}, now {new.get(key)}"
    if old["predictions"] is not None and "predictions" not in declared:
        if differ(old["predictions"], new["predictions"], loose + 1e-7):
            yield "predictions differ"
        if loose == 1e-6 and differ(old["parameters"], new["parameters"], 1e-5):
            yield f"parameters of the first fit: {old['parameters']}, now {new['parameters']}"
        if not differ(old["sample"], new["sample"], 1e-12):
            tight = 1e-9
    now = {(about, key): value for about, key, value in flat(new)}
    for about, key, value in flat(old):
        tolerance = allowed(old, about, key, loose, tight)
        if about not in declared and differ(value, now.get((about, key)), tolerance):
            yield f"{about} {key}: {value}, now {now.get((about, key))}"


@pytest.mark.parametrize("case", PARAMETERS)
def test_the_numbers_are_those_of_release_0_2(case, real_logs, tmp_path):
    if "data=anki" in CASES.get(case, "") and not COLLECTION.exists():
        pytest.skip("the collection is not here")
    logs = {"JOSH": real_logs / JOSH_FILE, "MIT": real_logs / "anki-mit", "ANKI": COLLECTION}
    expected, results = recorded(case), run_case(case, tmp_path, logs)
    assert [*results] == [*expected]
    for name, old in expected.items():
        assert [*differences(name, old, results[name])] == [], name


def test_a_moved_prediction_score_count_and_mean_are_found():
    name = "hlr on josh"
    old = recorded(name)[name]
    assert [*differences(name, old, old)] == []
    changed = {
        "predictions": old["predictions"] + 1e-5,
        "counts": {**old["counts"], "users": 2},
        "users": {user: [values[0] + 1e-8, *values[1:]] for user, values in old["users"].items()},
        "metrics": {**old["metrics"], "auc": {**old["metrics"]["auc"], "mean_users": 0.5}},
    }
    for key, value in changed.items():
        assert [*differences(name, old, {**old, key: value})], key
