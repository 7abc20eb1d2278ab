"""Fits of several groups: kept in full, and handed over one by one."""

import json

import fsrs
import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import QUIET
from commands import run_here as run_command
from invented import of_presets

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.folder import Run
from srs_eval.runs.words import status

PRESETS = ("hard words", "easy words")
COLUMNS = {"day": "day", "elapsed_days": "elapsed_days", "preset": "preset"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """One learner with two presets, each of them the cards of another simulated user."""
    file = tmp_path_factory.mktemp("table") / "two.csv"
    source = SyntheticUsers(users=2, size_scale=0.05, max_reviews=1500)
    logs = dict(zip(PRESETS, map(source.read, source.users()), strict=True))
    of_presets(logs).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    words = ["algo=per_group", "algo.fewest=150", "panel=quick", *QUIET]
    words += ["data=csv", f"data.path={table}", f"hydra.run.dir={folder}"]
    words += [f"data.columns.{noun}={name}" for noun, name in COLUMNS.items()]
    assert run_command(words) == 0
    return folder


@pytest.fixture
def fit(folder):
    return list(Run.read(folder).fits())[-1]


def test_each_preset_has_the_parameters_of_a_fit_to_its_own_reviews(folder, fit, table):
    log = ReviewTable(table, columns=COLUMNS).read("two")
    task = SrsBenchmark()(log, same_day=True)
    train, preset = task.folds[-1].train, task.reviews.preset
    assert fit.parameters == ()  # no reader can take the fit of all reviews for the model
    names = {"all": "every other preset", "preset 0": PRESETS[0], "preset 1": PRESETS[1]}
    assert {part.name: part.title for part in fit.parts} == names
    rows = [train, *(train[preset[train] == number] for number in (0, 1))]
    for part, own in zip(fit.parts, rows, strict=True):
        alone = Fsrs6().fit(task.reviews, own, np.random.default_rng(0))
        assert part.parameters == tuple(alone.parameters)
        assert part.standard_errors == pytest.approx(alone.learned.standard_errors, nan_ok=True)
        assert (part.n_train, part.option, part.standalone) == (len(own), "base", True)
    stored = pq.read_table(folder / "fits.parquet").to_pylist()[-1]["parts"]
    assert [tuple(part["parameters"]) for part in stored] == [part.parameters for part in fit.parts]


def test_every_form_of_export_has_the_parameters_of_each_preset(folder, fit, capsys):
    printed = {}
    for form in ("anki", "py_fsrs", "json"):
        assert status(*COMMANDS["export"], [str(folder), f"to={form}"]) == 0
        printed[form] = capsys.readouterr().out
    schedulers, content = json.loads(printed["py_fsrs"]), json.loads(printed["json"])
    assert (content["algorithm"], content["parameters"]) == ("per_group", [])
    blocks = printed["anki"].strip().split("\n\n")
    for block, own, part in zip(blocks, content["parts"], fit.parts, strict=True):
        heading, numbers = block.splitlines()
        assert heading.startswith(f"# {part.name} ({part.title})")
        assert f"{part.n_train:,}" in heading
        weights = [float(number) for number in numbers.split(",")]
        assert weights == pytest.approx(part.parameters, abs=5.1e-5)
        scheduler = fsrs.Scheduler.from_json(json.dumps(schedulers[part.name]))
        assert tuple(scheduler.parameters) == part.parameters == tuple(own["parameters"])
        assert (own["name"], own["version"]) == (part.name, "FSRS-6")
