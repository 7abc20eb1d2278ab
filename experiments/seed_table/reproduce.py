"""Evaluate the models of published results again, and compare the scores user by user.

    python experiments/seed_table/reproduce.py data=../anki-revlogs-10k published=result first=100

``data`` is any part of anki-revlogs-10k, ``published`` a folder with the results of the public
srs-benchmark, lines of JSON for each user. A result is made again if its name is that of a model
and of flags below, with its own trainer (``fit=reference``). Printed are, for each result, users,
users with another number of scored reviews, users with every score equal to six decimals, and the
mean difference in log loss with its 99 % interval; a file has the scores of every user.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import MISSING, OmegaConf

import srs_eval as se  # before NumPy
from srs_eval.data.reviews import Source
from srs_eval.metrics.means import mean_of_users
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import EvaluationProtocol

TRAINED = {"fit": "reference"}
# Models by the names of the public benchmark, with -short where histories in days have same-day
# reviews: option and arguments, and the weights that -recency stands for.
MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "FSRSv1": ("fsrs1", TRAINED, "mild"),
    "FSRSv2": ("fsrs2", TRAINED, "mild"),
    "FSRSv3": ("fsrs3", TRAINED, "mild"),
    "FSRSv4": ("fsrs4", TRAINED, "mild"),
    "FSRS-4.5": ("fsrs45", TRAINED, "mild"),
    "FSRS-5-short": ("fsrs5", TRAINED, "mild"),
    "FSRS-6-short": ("fsrs6", TRAINED, "mild"),
    "FSRS-7-short": ("fsrs7", TRAINED, "steep"),
    "SBD-short": ("sbd", {}, "steep"),
    "LogisticRegression-short": ("logistic", TRAINED, "quartic"),
    "SM2": ("sm2", {}, ""),
    "SM2-trainable": ("sm2_trainable", TRAINED, "mild"),
    "Anki": ("anki_sm2_trainable", {**TRAINED, "published_order": True}, "mild"),
    "HLR": ("hlr", TRAINED, "mild"),
    "Ebisu-v2": ("ebisu", {}, ""),
    "ACT-R": ("act_r", TRAINED, "mild"),
    "DASH": ("dash", TRAINED, "mild"),
    "DASH[MCM]": ("dash_mcm", TRAINED, "mild"),
    "DASH[ACT-R]": ("dash_act_r", TRAINED, "mild"),
    "AVG": ("avg", {}, ""),
    "MOVING-AVG": ("moving_avg", {}, ""),
    "90%": ("constant", {"p": 0.9}, ""),
    "RMSE-BINS-EXPLOIT": ("rmse_bins_exploit", {}, ""),
}
KINDS: dict[str, dict[str, Any]] = {
    "-default": {"fit": "default"},
    "-S0": {"fit": "s0"},
    "-binary": {"binary": True},
}
# Ends of names, the longest first.
PROTOCOLS: dict[str, EvaluationProtocol] = {
    "-secs-equalize_test_with_non_secs": SrsBenchmarkEqualised(answer_time=True),
    "-secs": SrsBenchmarkSecs(answer_time=True),
    "": SrsBenchmark(),
}
METRICS = {
    "RMSE": "rmse",
    "LogLoss": "log_loss",
    "RMSE(bins)": "rmse_bins",
    "smECE": "smece",
    "AUC": "auc",
    "ICI": "ici",
    "MBE": "mbe",
}
MARGIN = 0.0005  # in mean log loss: what rounding in single precision and the order of batches move
SAME = 2e-6  # published scores have six decimals


@dataclass
class Options:
    """Options of the program."""

    data: str = MISSING  # folder in the layout of anki-revlogs-10k
    published: Path = MISSING  # folder with NAME.jsonl, or one such file
    first: int | None = None  # only the first users with logs and published scores
    workers: int | None = None  # processes; one for each core
    out: Path = Path("reproduced.csv")


def configuration(name: str) -> tuple[str, dict[str, Any], EvaluationProtocol] | None:
    """Return the option, its arguments and the protocol of a result; None if it is none of these.

    >>> configuration("FSRS-7-short-secs-recency-equalize_test_with_non_secs")[:2]
    ('fsrs7', {'fit': 'reference', 'recency': 'steep'})
    """
    is_recent, plain = "-recency" in name, name.replace("-recency", "")
    flag = next(flag for flag in PROTOCOLS if plain.endswith(flag))
    plain = plain.removesuffix(flag)
    kinds = [kind for kind in KINDS if kind in plain]
    for kind in kinds:
        plain = plain.replace(kind, "")
    base = plain if plain in MODELS or not flag else plain.removesuffix("-short")
    option, arguments, recency = MODELS.get(base, ("", {}, ""))
    if not option or (is_recent and not recency):
        return None
    for kind in kinds:
        arguments = arguments | KINDS[kind]
    return option, arguments | ({"recency": recency} if is_recent else {}), PROTOCOLS[flag]


def published(file: Path) -> pd.DataFrame:
    """Read the scores of each user, and the numbers of reviews as ``size``."""
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    rows = {line["user"]: {"size": line["size"], **line["metrics"]} for line in lines}
    table = pd.DataFrame.from_dict(rows, orient="index", dtype=float)
    return table[[name for name in ("size", *METRICS) if name in table]]


def made_again(
    name: str, theirs: pd.DataFrame, source: Source, workers: int | None
) -> pd.DataFrame:
    """Return the scores of the users as srs_eval finds them, in the columns that are published."""
    option, arguments, protocol = configuration(name)  # type: ignore[misc]
    wanted = {"brier", *(METRICS[metric] for metric in theirs.columns.drop("size"))}
    panel = Panel([metric for metric in default_panel() if metric.name in wanted])
    result = se.evaluate(
        se.algorithm(option, **arguments),
        source,
        protocol=protocol,
        panel=panel,
        curves_per_user=0,
        workers=workers,
    )
    scores = result.scores.assign(rmse=np.sqrt(result.scores["brier"]))
    ours = {metric: scores[METRICS[metric]] for metric in theirs.columns.drop("size")}
    return pd.DataFrame({"size": scores["reviews"], **ours})


def verdict(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, Any]:
    """Say how many users are equal, and what the differences in log loss mean."""
    equal = np.isclose(ours, theirs, rtol=0, atol=SAME, equal_nan=True)
    gap = (ours["LogLoss"] - theirs["LogLoss"])[equal[:, 0]]
    low, high = mean_of_users(gap.to_numpy()).interval() if len(gap) > 1 else (np.nan, np.nan)
    words = {
        "no users": not len(ours),
        "equal": bool(equal.all()),
        "other reviews": not equal[:, 0].all(),
        f"within {MARGIN}": low > -MARGIN and high < MARGIN,
        "differs": low > MARGIN or high < -MARGIN,
        "undecided": True,
    }
    return {
        "verdict": next(word for word, holds in words.items() if holds),
        "users": len(ours),
        "other sizes": int((~equal[:, 0]).sum()),
        "all equal": int(equal.all(axis=1).sum()),
        "mean difference": gap.mean(),
        "99 % interval": f"[{low:+.6f}, {high:+.6f}]",
        "largest": gap.abs().max(),
    }


def main(words: list[str]) -> pd.DataFrame:
    """Evaluate, print the table, write the scores of every user, and return the table."""
    options = OmegaConf.merge(OmegaConf.structured(Options), OmegaConf.from_cli(words))
    files = sorted(options.published.glob("*.jsonl")) or [options.published]
    known, rows, tables = se.source("revlogs_10k", path=options.data).users(), {}, []
    for file in files:
        if configuration(file.stem) is None:
            print(f"not made again: {file.stem}")
            continue
        theirs = published(file)
        users = [user for user in known if user in theirs.index][: options.first]
        source = se.source("revlogs_10k", path=options.data, users=users)
        ours = made_again(file.stem, theirs, source, options.workers)
        theirs = theirs.loc[ours.index]
        rows[file.stem] = verdict(ours, theirs)
        both = ours.join(theirs.add_suffix(" published")).rename_axis("user").reset_index()
        tables.append(both.assign(result=file.stem))
    table = pd.DataFrame.from_dict(rows, orient="index")
    print(table.to_string())
    if tables:
        pd.concat(tables).to_csv(options.out, index=False)
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
