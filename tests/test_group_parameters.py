"""Fits of several groups: kept in full, built again, and handed over one by one."""

import json
from types import SimpleNamespace

import fsrs
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import QUIET
from commands import run_here as run_command
from invented import of_presets
from omegaconf import OmegaConf
from saved import load_predictions

from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.sessions.mixture import Mixture
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.nouns import Part
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.folder import Run
from srs_eval.runs.mlflow_model import CurvesOfCards, rebuilt_model
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


def test_the_model_built_again_predicts_what_the_run_has_predicted(run, task):
    kept = load_predictions(run.folder)
    model = rebuilt_model(run.options, (), run.fit.parts, whole_days=True)
    again = model.predict(task.reviews, task.folds[-1].test)
    np.testing.assert_array_equal(again, kept.p[kept.fold == run.fit.fold])
    for number in np.flatnonzero(kept.curves.fold == run.fit.fold)[:20]:
        (row,) = np.flatnonzero(task.log_row == kept.curves.row[number])
        elapsed = kept.curves.elapsed[[number]]
        curve = model.predict_at(task.reviews, np.array([row]), elapsed)
        np.testing.assert_allclose(curve, kept.curves.p[[number]], rtol=1e-6)


@pytest.mark.slow
def test_a_served_model_asks_for_the_preset_of_a_card(run):
    content = {"options": run.options, "parameters": [], "whole_days": True}
    curves = CurvesOfCards({**content, "parts": run.parts})
    history = pd.DataFrame({"card": [1, 2, 3], "elapsed_days": 0.0, "rating": 3})
    asked = curves(history.assign(preset=[0, 1, -1]), [3.0])["recall"].tolist()
    for recall, name in zip(asked, ("preset 0", "preset 1", "all"), strict=True):
        (part,) = [part for part in run.fit.parts if part.name == name]
        base = {"options": run.options["base"], "parameters": part.parameters, "whole_days": True}
        assert [recall] == CurvesOfCards(base)(history[:1], [3.0])["recall"].tolist()
    assert curves(history[:1], [3.0])["recall"].tolist() == asked[2:]


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


def options_for(kind, **options):
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **options}


@pytest.mark.slow
def test_groups_of_mixtures_are_built_again_and_a_filter_of_groups_is_not(task):
    def learned(algorithm):
        model = algorithm.fit(task.reviews, task.folds[-1].train, np.random.default_rng(0))
        return model, model.learned.parts, [part.name for part in model.learned.parts]

    mixture = Mixture(Fsrs6(), Hlr(), Fsrs6())
    model, parts, names = learned(PerGroup(mixture, fewest=150))
    assert names[:4] == ["all", "all/fsrs7", "all/logistic", "all/sbd"]
    assert {part.option for part in parts} == {"base", "base.fsrs7", "base.logistic", "base.sbd"}
    assert [part.name for part in parts if part.standalone] == ["all", "preset 0", "preset 1"]
    fsrs6 = options_for(Fsrs6)
    base = options_for(Mixture, fsrs7=fsrs6, logistic=options_for(Hlr), sbd=fsrs6)
    options = options_for(PerGroup, base=base, fewest=150)
    again, tested = rebuilt_model(options, (), parts, whole_days=True), task.folds[-1].test
    expected = model.predict(task.reviews, tested)
    np.testing.assert_array_equal(again.predict(task.reviews, tested), expected)
    model, parts, names = learned(SessionFilter(PerGroup(Hlr(), fewest=150)))
    assert names == ["base", "base/all", "base/preset 0", "base/preset 1"]
    assert not any(part.standalone for part in parts)
    with pytest.raises(ConfigError, match="no fit and parameters"):
        rebuilt_model(
            options_for(SessionFilter, base=options_for(Hlr)),
            model.parameters,
            parts,
            whole_days=True,
        )


def test_parts_that_do_not_fit_are_refused():
    per_group = options_for(PerGroup, base=options_for(Fsrs6))
    for options, *parts in (
        (per_group, Part("preset 0", "base", (0.1,))),
        (per_group, Part("all", "other", (0.1,))),
        ({**per_group, "base": {"_target_": "os.system"}}, Part("all", "base", (0.1,))),
        (options_for(Mixture, sbd=options_for(Dash)),),
    ):
        with pytest.raises(ConfigError):
            rebuilt_model(options, (), parts, whole_days=True)
