"""Runs made of objects, and predictions that are compared."""

from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from srs_eval.comparison.entry import DIGEST, SIZE, Entry, index_of
from srs_eval.comparison.words import one_line
from srs_eval.metrics.predictions import Curves, concatenate
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.compute import Serial
from srs_eval.runs.config import Setup
from srs_eval.runs.evaluation import evaluate
from srs_eval.runs.folder import Run, save
from srs_eval.runs.summary import Summary

NO_BAR = partial(tqdm, disable=True)
CONTENT = {
    **{key: {} for key in ("algo", "data", "protocol", "panel", "tags")},
    **{"seed": 2026, "curves_per_user": 200, "shard": None, "fit_timeout": None},
    "fail_fast": True,
}


def setup_of(algorithm, source, panel, protocol=None, *, compute=None, **settings):
    """Return the setup of a run made of objects."""
    objects = {"protocol": protocol or SrsBenchmark(), "panel": panel}
    objects["compute"] = compute or Serial()
    choices = {"algo": type(algorithm).__name__.lower(), "data": "logs"}
    content = {**CONTENT, **settings}
    about = {"content": content, "choices": choices, "label": choices["algo"]}
    return Setup(algorithm, source, **objects, tracking=None, **about)


def run_of(setup, folder):
    """Evaluate and save a run."""
    return save(evaluate(setup, folder, bar=NO_BAR), folder)


def load_predictions(folder):
    """Read the predictions of all users of a run."""
    return concatenate(list(Run.read(folder).every_prediction()))


def assert_same(found, expected):
    """Compare predictions or curves column by column: values, and their types."""
    for f in fields(expected):
        here, there = getattr(found, f.name), getattr(expected, f.name)
        if isinstance(there, Curves):
            assert_same(here, there)
        elif isinstance(there, np.ndarray):
            np.testing.assert_array_equal(here, there)
            assert here.dtype == there.dtype
        else:
            assert here == there


def entry_with(name, reviews, scores, **facts):
    """Return what is compared: scores by metric of users, each with a number of reviews."""
    table = pd.DataFrame({SIZE: [*reviews.values()], DIGEST: "rows"} | scores, index_of(reviews))
    return Entry(one_line(name), Path("nowhere"), table, Summary(name, **facts))
