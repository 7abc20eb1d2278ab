"""Runs and comparisons whose numbers release 0.2 recorded, and what may differ from them.

`runs.json` has the numbers and `predictions.npz` the prediction of each row. Neither is ever
edited: a number that moves on purpose is an entry of `changed.json`, a list of objects with `case`,
`what` (a metric, or "predictions"), `old`, `new` (mean over users, or the largest difference of a
prediction) and `reason`.

Predictions may differ by 1e-6, by `TOLERANCES` where an algorithm ends where rounding leads it.
Where predictions are equal, metrics and their intervals must be equal to 1e-9.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
FOLDERS = {"JOSH": "py-fsrs-josh/review_logs_josh.csv", "MIT": "anki-mit"}
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

METRICS = (
    *("log_loss", "normalized_entropy", "brier", "brier_skill", "log_loss_certain_wrong"),
    *("smece", "smece_floor", "ece", "ici", "mbe"),
    *("corp_miscalibration_log", "corp_discrimination_log"),
    *("rmse_bins", "rmse_bins_floor", "rmse_bins_wiki", "rmse_bins_by_p", "auc"),
    *("temporal_violation", "temporal_strict", "temporal_flat"),
    *(
        f"confusion_{statistic}_at_0_{threshold}"
        for statistic in ("tpr", "fnr", "fpr", "tnr", "ppv", "fdr", "for", "npv")
        for threshold in (7, 8, 9, 95)
    ),
    *(f"threshold_bias_at_0_{threshold}" for threshold in (7, 8, 9, 95)),
)
METRICS_OF_FULL = ("smece_exact",)
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


def write_inputs(folder: Path) -> None:
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


def run_command(module: str, words: str, folder: Path, logs: Mapping[str, Path]) -> int:
    """Run a command in a folder, in the arithmetic of the recorded numbers; return its status."""
    arithmetic = {
        "OMP_NUM_THREADS": "1",
        "SRS_EVAL_CPU": "x86-64-v3",
        "ATEN_CPU_CAPABILITY": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
    }
    for name, path in logs.items():
        words = words.replace(f"data.path={name}", f"data.path={path}")
    command = [sys.executable, "-m", module, *words.split()]
    environment = {**os.environ, **arithmetic, "COLUMNS": "160"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def run_case(name: str, folder: Path, logs: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Run a case in a folder, and return the numbers of its run, or of its runs and comparison."""
    write_inputs(folder)
    if name in CASES:
        status = run_command("srs_eval", f"{CASES[name]} {QUIET} hydra.run.dir=out", folder, logs)
        return {name: {"status": status, **numbers(folder / "out")}}
    results, runs = {}, []
    for k, words in enumerate(COMPARED[name]):
        place = "hydra.sweep.dir=s" if words.startswith("-m") else f"hydra.run.dir=r{k}"
        status = run_command("srs_eval", f"{words} {QUIET} {place}", folder, logs)
        runs.append(place.partition("=")[2])
        pattern = "s/*/summary.json" if words.startswith("-m") else f"r{k}/summary.json"
        for file in sorted(folder.glob(pattern)):
            label = json.loads(file.read_text())["label"]
            results[f"{name}: {label}"] = {"status": status, **numbers(file.parent)}
    status = run_command("srs_eval.compare", f"{' '.join(runs)} out=c tracking=none", folder, logs)
    results[name] = {"status": status, "comparison": comparison(folder / "c" / "comparison.json")}
    return results


def numbers(folder: Path) -> dict[str, Any]:
    """Read the numbers of a run and the prediction of each row."""
    summary = json.loads((folder / "summary.json").read_text())
    rows = pd.read_parquet(folder / "predictions.parquet").sort_values(["user", "row"])
    outcomes = [(str(u), int(r), bool(y)) for u, r, y in rows[["user", "row", "recalled"]].values]
    scores = pd.read_parquet(folder / "scores.parquet")
    columns = [name for name in METRICS if name in scores]
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
    p = rows.p.to_numpy()
    first = fits.parameters.iloc[0]
    return {
        "rows": hashlib.sha256(repr(outcomes).encode()).hexdigest()[:16],
        "predictions": p.astype(np.float32),
        "sample": [float(value) for value in p[:: max(1, len(p) // 200)]],
        "parameters": [] if first is None else [float(value) for value in first[:40]],
        "curves": _curves(curves) if curves.exists() else None,
        "counts": counts,
        "columns": columns,
        "users": {
            str(user): [None if math.isnan(value) else float(value) for value in values]
            for user, values in zip(scores.user, scores[columns].to_numpy(float), strict=True)
        },
        "metrics": summary["metrics"],
    }


def _curves(file: Path) -> dict[str, float]:
    """Read the number of points of forgetting curves and their mean."""
    p = pd.read_parquet(file, columns=["p"]).p
    return {"n": len(p), "mean": float(p.mean())}


def comparison(file: Path) -> dict[str, float]:
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
    names = [*content["superiority"]]
    for row, shares in content["superiority"].items():
        values |= {
            f"{row} better than {name}": share for name, share in zip(names, shares, strict=True)
        }
    return {what: value for what, value in values.items() if value is not None}


def recorded(case: str) -> dict[str, dict[str, Any]]:
    """Return the recorded numbers of a case."""
    runs = json.loads((HERE / "runs.json").read_text())
    with np.load(HERE / "predictions.npz") as predictions:
        return {
            name: {**run, "predictions": predictions[name] if "rows" in run else None}
            for name, run in runs.items()
            if name == case or name.startswith(f"{case}: ")
        }


def differences(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two results of a run or a comparison beyond the tolerances."""
    changed = json.loads((HERE / "changed.json").read_text())
    declared = {entry["what"]: entry for entry in changed if entry["case"] == name}
    tolerance = max((t for part, t in TOLERANCES.items() if part in name), default=1e-6)
    for key in ("status", "rows", "counts"):
        if old.get(key) != new.get(key):
            yield f"{key}: {old.get(key)}, now {new.get(key)}"
    yield from _of_comparison(old, new, tolerance, declared)
    if "rows" not in old or old["rows"] != new.get("rows"):
        return
    entry = declared.get("predictions")
    largest = float(np.max(np.abs(old["predictions"].astype(float) - new["predictions"])))
    is_off = abs(largest - entry["new"]) > 0.1 * largest if entry else largest > tolerance + 1e-7
    if is_off:
        yield f"predictions differ by {largest:.2g}"
    if tolerance == 1e-6 and not entry and differ(old["parameters"], new["parameters"], 1e-5):
        yield f"parameters of the first fit: {old['parameters']}, now {new['parameters']}"
    before, now = old["curves"] or {}, new["curves"] or {}
    if differ(before.get("n"), now.get("n"), 0) or differ(
        before.get("mean"), now.get("mean"), tolerance
    ):
        yield f"curves.parquet: {old['curves']}, now {new['curves']}"
    is_exact = not entry and not differ(old["sample"], new["sample"], 1e-12)
    tight = 1e-9 if is_exact else entry["new"] if entry else tolerance
    yield from _of_users(old, new, tight, declared)
    yield from _of_metrics(name, old, new, tight, declared)


def differ(old: Any, new: Any, tolerance: float) -> bool:
    """Return whether numbers, or lists of them, differ relative to the larger of 1 and the old."""
    if old is None or new is None:
        return (old is None) != (new is None)
    if np.shape(old) != np.shape(new):
        return True
    return bool(np.any(np.abs(np.subtract(old, new)) > tolerance * np.maximum(1, np.abs(old))))


def _of_comparison(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    tolerance: float,
    declared: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    """Yield numbers of a comparison that differ."""
    before = old.get("comparison", {})
    for what, value in before.items():
        about, _, key = what.rpartition(" ")
        if key in ("lo", "hi") and before.get(f"{about} n_users") == 1:  # resampled
            most = 0.15 * (before[f"{about} hi"] - before[f"{about} lo"])
        else:
            most = tolerance
        if what not in declared and differ(value, new["comparison"].get(what), most):
            yield f"{what}: {value}, now {new['comparison'].get(what)}"


def _of_users(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    tolerance: float,
    declared: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    """Yield scores of a user that differ."""
    for user, scores in old["users"].items():
        now = dict(zip(new["columns"], new["users"].get(user, ()), strict=False))
        for metric, value in zip(old["columns"], scores, strict=True):
            if metric not in declared and differ(value, now.get(metric), tolerance):
                yield f"{metric} of user {user}: {value}, now {now.get(metric)}"


def _of_metrics(
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    tolerance: float,
    declared: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    """Yield means and intervals of a metric that differ."""
    for metric, row in old["metrics"].items():
        now = new["metrics"].get(metric)
        if now is None:
            if metric in METRICS or (metric in METRICS_OF_FULL and name == "full panel"):
                yield f"{metric} is gone"
            continue
        entry = declared.get(metric)
        if entry:
            means = row["mean_users"], now["mean_users"]
            if differ([*means], [entry["old"], entry["new"]], 1e-6):
                yield f"{metric} is not what changed.json says: {means}"
            continue
        for key in ("mean_users", "mean_reviews", "pooled", "n_users"):
            if differ(row[key], now.get(key), tolerance):
                yield f"{metric}.{key}: {row[key]}, now {now.get(key)}"
        yield from _of_interval(metric, row, now, tolerance)


def _of_interval(
    metric: str, old: Mapping[str, Any], new: Mapping[str, Any], tolerance: float
) -> Iterator[str]:
    """Yield ends of an interval that differ; those of one user are resampled."""
    has_several = bool(old["n_users"]) and old["n_users"] > 1
    for key in ("lo", "hi"):
        before, now = old[key], new.get(key)
        if has_several:
            is_off = differ(before, now, max(tolerance, 1e-6))
        elif before is None or now is None:
            may_go = metric not in METRICS or metric.startswith(("smece", "ici", "corp_"))
            is_off = before is not None and not may_go
        else:
            is_off = abs(before - now) > 0.15 * (old["hi"] - old["lo"]) + 1e-6
        if is_off:
            yield f"{metric}.{key}: {before}, now {now}"
