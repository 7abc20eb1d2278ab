"""Fits of several groups: kept in full, built again, and handed over one by one."""

import json
from types import SimpleNamespace

import fsrs
import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import QUIET
from commands import run_here as run_command
from invented import of_presets
from omegaconf import OmegaConf

from srs_eval.algorithms.combined import PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.sessions.session_filter import Mixture
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
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    words = ["algo=per_group", "algo.fewest=150", "panel=quick", *QUIET]
    words += ["data=csv", f"data.path={table}", f"hydra.run.dir={folder}"]
    words += [f"data.columns.{noun}={name}" for noun, name in COLUMNS.items()]
    assert run_command(words) == 0
    options = OmegaConf.to_container(OmegaConf.load(folder / ".hydra" / "config.yaml").algo)
    kept = pq.read_table(folder / "fits.parquet").to_pylist()[-1]["parts"]
    fit = list(Run.read(folder).fits())[-1]
    return SimpleNamespace(folder=folder, fit=fit, options=options, parts=kept)


@pytest.fixture(scope="module")
def task(table):
    return SrsBenchmark()(ReviewTable(table, columns=COLUMNS).read("two"), same_day=True)


def test_each_preset_has_the_parameters_of_a_fit_to_its_own_reviews(run, task):
    train, preset = task.folds[-1].train, task.reviews.preset
    assert run.fit.parameters == ()  # no reader can take the pooled fit for the model
    names = {"all": "every other preset", "preset 0": PRESETS[0], "preset 1": PRESETS[1]}
    assert {part.name: part.title for part in run.fit.parts} == names
    rows = [train, *(train[preset[train] == number] for number in (0, 1))]
    for part, own in zip(run.fit.parts, rows, strict=True):
        alone = Fsrs6().fit(task.reviews, own, np.random.default_rng(0))
        assert part.parameters == tuple(alone.parameters)
        assert part.standard_errors == pytest.approx(alone.learned.standard_errors, nan_ok=True)
        assert (part.n_train, part.option, part.standalone) == (len(own), "base", True)
    assert [tuple(p["parameters"]) for p in run.parts] == [p.parameters for p in run.fit.parts]


def test_every_form_of_export_has_the_parameters_of_each_preset(run, capsys):
    printed = {}
    for form in ("anki", "py_fsrs", "json"):
        assert status(*COMMANDS["export"], [str(run.folder), f"to={form}"]) == 0
        printed[form] = capsys.readouterr().out
    schedulers, content = json.loads(printed["py_fsrs"]), json.loads(printed["json"])
    assert (content["algorithm"], content["parameters"]) == ("per_group", [])
    blocks = printed["anki"].strip().split("\n\n")
    for block, own, part in zip(blocks, content["parts"], run.fit.parts, strict=True):
        heading, numbers = block.splitlines()
        assert heading.startswith(f"# {part.name} ({part.title})")
        assert f"{part.n_train:,}" in heading
        found = [float(number) for number in numbers.split(",")]
        assert found == pytest.approx(part.parameters, abs=5.1e-5)
        scheduler = fsrs.Scheduler.from_json(json.dumps(schedulers[part.name]))
        assert tuple(scheduler.parameters) == part.parameters == tuple(own["parameters"])
        assert (own["name"], own["version"]) == (part.name, "FSRS-6")


def test_parts_of_parts_are_named_after_both_and_are_not_the_whole_model(task):
    mixture = Mixture(PerGroup(Hlr(), fewest=150), Hlr(), Hlr())
    model = mixture.fit(task.reviews, task.folds[-1].train, np.random.default_rng(0))
    parts = {part.name: (part.option, part.standalone) for part in model.learned.parts}
    inner = {f"fsrs7/{name}": ("fsrs7.base", False) for name in ("all", "preset 0", "preset 1")}
    assert parts == {name: (name, False) for name in ("fsrs7", "logistic", "sbd")} | inner
