"""Fits of several groups: kept in full, built again, and handed over one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsrs
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import QUIET
from commands import run_here as run_command
from omegaconf import OmegaConf
from saved import load_predictions

from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.combined.ensemble import Ensemble
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.commands.export import command
from srs_eval.config.rebuild import rebuilt_model
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.mlflow_plugins.curves_of_cards import CurvesOfCards
from srs_eval.nouns import Fit, Part, Reviews
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import load
from srs_eval.results.files import FITS, read_table, write_table
from srs_eval.results.tables import fits_table, read_fits

PRESETS = ("hard words", "easy words")
COLUMNS = {"day": "day", "elapsed_days": "elapsed_days", "preset": "preset"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One learner with two presets, each of them the cards of another simulated user."""
    file = tmp_path_factory.mktemp("table") / "two.csv"
    source = SyntheticUsers(users=2, size_scale=0.05, max_reviews=1500)
    frames = [
        pd.DataFrame(
            {name: getattr(log, name) for name in ("day", "rating", "elapsed_days")}
        ).assign(card=log.card + 1_000_000 * number, preset=PRESETS[number])
        for number, log in enumerate(map(source.read, source.users()))
    ]
    pd.concat(frames).sort_values("day", kind="stable").to_csv(file, index=False)
    return file


def words(table: Path) -> list[str]:
    columns = [f"data.columns.{noun}={name}" for noun, name in COLUMNS.items()]
    return [
        *("algo=per_group", "algo.pooling=none", "algo.fewest=150"),
        *("data=csv", f"data.path={table}"),
        *columns,
    ]


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert run_command([*words(table), "panel=quick", *QUIET, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.fixture(scope="module")
def log(table: Path) -> Reviews:
    return ReviewTable(table, columns=COLUMNS).read("two")


def last_fit(run: Path) -> Fit:
    return max(load(run).fitted, key=lambda fit: fit.fold)


def options_of(run: Path) -> Any:
    config = OmegaConf.load(run / ".hydra" / "config.yaml")
    return OmegaConf.to_container(config.algo)


def test_each_preset_has_the_parameters_of_a_fit_to_its_own_reviews(
    run: Path, log: Reviews
) -> None:
    fit, task = last_fit(run), SrsBenchmark()(log, same_day=True)
    train, rng = task.folds[-1].train, np.random.default_rng(0)
    preset = task.reviews.preset
    assert preset is not None
    assert fit.parameters == ()  # no reader can take the pooled fit for the model
    assert [part.name for part in fit.parts] == ["all", "preset 0", "preset 1"]
    assert [part.title for part in fit.parts] == ["every other preset", *PRESETS]
    rows = [train, *(train[preset[train] == number] for number in (0, 1))]
    for part, own in zip(fit.parts, rows, strict=True):
        alone: Any = Fsrs6().fit(task.reviews, own, rng)
        assert part.parameters == tuple(alone.parameters)
        assert part.standard_errors == pytest.approx(alone.learned.standard_errors, nan_ok=True)
        assert (part.n_train, part.option, part.standalone) == (len(own), "base", True)
    assert len({part.parameters for part in fit.parts}) == 3
    row = pq.read_table(run / "fits.parquet").to_pylist()[-1]
    assert [part["parameters"] for part in row["parts"]] == [list(p.parameters) for p in fit.parts]


def test_the_model_built_again_predicts_what_the_run_has_predicted(run: Path, log: Reviews) -> None:
    fit, kept = last_fit(run), load_predictions(run)
    model: Any = rebuilt_model(options_of(run), (), fit.parts, whole_days=True)
    task = SrsBenchmark()(log, same_day=True)
    is_last = kept.fold == fit.fold
    again = model.predict(task.reviews, task.folds[-1].test)
    np.testing.assert_array_equal(again, kept.p[is_last])
    assert kept.curves is not None
    for number in np.flatnonzero(kept.curves.fold == fit.fold)[:20]:
        (row,) = np.flatnonzero(task.log_row == kept.curves.row[number])
        elapsed = kept.curves.elapsed[[number]]
        curve = model.predict_at(task.reviews, np.array([row]), elapsed)
        np.testing.assert_allclose(curve, kept.curves.p[[number]], rtol=1e-6)


@pytest.mark.slow
def test_a_served_model_asks_for_the_preset_of_a_card(run: Path) -> None:
    fit, options = last_fit(run), options_of(run)
    content = {"options": options, "parameters": [], "whole_days": True}
    parts = pq.read_table(run / "fits.parquet").to_pylist()[-1]["parts"]
    curves = CurvesOfCards({**content, "parts": parts})
    history = pd.DataFrame({"card": [1, 2, 3], "elapsed_days": 0.0, "rating": 3})
    asked = curves(history.assign(preset=[0, 1, -1]), [3.0])["recall"].tolist()
    for recall, name in zip(asked, ("preset 0", "preset 1", "all"), strict=True):
        (part,) = [part for part in fit.parts if part.name == name]
        base = {"options": options["base"], "parameters": part.parameters, "whole_days": True}
        alone = CurvesOfCards(base)(history[:1], [3.0])["recall"].tolist()
        assert [recall] == alone
    assert curves(history[:1], [3.0])["recall"].tolist() == asked[2:]


def exported(run: Path, to: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert command([str(run), f"to={to}"]) == 0
    return capsys.readouterr().out


def test_every_form_of_export_has_the_parameters_of_each_preset(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = last_fit(run).parts
    blocks = [block.splitlines() for block in exported(run, "anki", capsys).strip().split("\n\n")]
    for (heading, numbers), part in zip(blocks, parts, strict=True):
        assert heading.startswith(f"# {part.name} ({part.title})")
        assert f"{part.n_train:,}" in heading
        found = [float(number) for number in numbers.split(",")]
        assert found == pytest.approx(part.parameters, abs=5.1e-5)
    content = json.loads(exported(run, "py_fsrs", capsys))
    for part in parts:
        scheduler = fsrs.Scheduler.from_json(json.dumps(content[part.name]))
        assert tuple(scheduler.parameters) == part.parameters
    content = json.loads(exported(run, "json", capsys))
    assert (content["algorithm"], content["parameters"]) == ("per_group", [])
    found = [(p["name"], tuple(p["parameters"]), p["version"]) for p in content["parts"]]
    assert found == [(part.name, part.parameters, "FSRS-6") for part in parts]


def learned(algorithm: Any, log: Reviews) -> tuple[Any, Any, Any]:
    task = SrsBenchmark()(log, same_day=True)
    fold = task.folds[-1]
    return algorithm.fit(task.reviews, fold.train, np.random.default_rng(0)), task.reviews, fold


def options_for(kind: type, **options: Any) -> dict[str, Any]:
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **options}


@pytest.mark.slow
def test_an_ensemble_keeps_the_parameters_of_its_members_and_is_built_again(log: Reviews) -> None:
    members = {"hlr": options_for(Hlr), "fsrs6": options_for(Fsrs6)}
    algorithm = PerGroup(Ensemble({"hlr": Hlr(), "fsrs6": Fsrs6()}), pooling="none", fewest=150)
    base = options_for(Ensemble, members=members, weights="fitted")
    options = options_for(PerGroup, base=base, pooling="none", fewest=150)
    model, reviews, fold = learned(algorithm, log)
    parts = model.learned.parts
    names = [part.name for part in parts]
    assert names[:4] == ["all", "all/hlr", "all/fsrs6", "preset 0"]
    assert {part.option for part in parts} == {"base", "base.members.hlr", "base.members.fsrs6"}
    assert {part.name for part in parts if part.standalone} == {"all", "preset 0", "preset 1"}
    again = rebuilt_model(options, (), parts, whole_days=True)
    np.testing.assert_array_equal(
        again.predict(reviews, fold.test), model.predict(reviews, fold.test)
    )


@pytest.mark.slow
def test_a_blend_keeps_the_parameters_of_each_group_and_is_not_built_again(log: Reviews) -> None:
    model, _, _ = learned(Blend(PerGroup(Hlr(), pooling="none", fewest=150)), log)
    names = [part.name for part in model.learned.parts]
    assert names == ["base/all", "base/preset 0", "base/preset 1"]
    assert not any(part.standalone for part in model.learned.parts)
    options = options_for(Blend, base=options_for(Hlr))
    with pytest.raises(ConfigError, match="no fit and parameters"):
        rebuilt_model(options, model.parameters, model.learned.parts, whole_days=True)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (options_for(PerGroup, base=options_for(Fsrs6)), [Part("preset 0", "base", (0.1,))]),
        (options_for(PerGroup, base=options_for(Fsrs6)), [Part("all", "other", (0.1,))]),
        (options_for(PerGroup, base={"_target_": "os.system"}), [Part("all", "base", (0.1,))]),
        (options_for(Ensemble, members={"dash": options_for(Dash)}), []),
    ],
)
def test_parts_that_do_not_fit_are_refused(options: dict[str, Any], parts: list[Part]) -> None:
    with pytest.raises(ConfigError):
        rebuilt_model(options, (), parts, whole_days=True)


def test_fits_without_parts_are_read_as_before(tmp_path: Path) -> None:
    fits = (Fit(1, 0, "ok", parameters=(0.5,)), Fit(2, 0, "failed", reason="no"))
    write_table(tmp_path / FITS, fits_table(fits))
    table = pq.read_table(tmp_path / "fits.parquet")
    pq.write_table(table.drop_columns(["parts"]), tmp_path / "fits.parquet")
    assert read_fits(read_table(tmp_path / FITS)) == fits
