"""Odd command lines end with a clear error or a run, soon, and leave nothing elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cases import rest_nightly
from command_lines import QUICK, attempt, command_line, prepare

NO_DATA = tuple(word for word in QUICK if not word.startswith("data."))
# Arguments that once ended in a traceback, a hang or an unwanted run, and part of the error now.
ONCE = {
    ("seed=${seed}",): "seed cannot be resolved",
    ("seed=${nope}",): "nope",
    ("name=${oc.env:NOPE}",): "NOPE",
    ("seed=" + "9" * 5000,): "5,005 characters",
    ("seed=" + "[" * 2000,): "2,005 characters",
    ("--config-dir=options", "algo=latin"): "latin.yaml: cannot be read: it is not UTF-8",
    ("--config-dir=options", "algo=deep"): "deep.yaml: cannot be read: it is nested too deeply",
    ("--config-dir=options", "algo=scalar"): "scalar.yaml: cannot be read",
    ("--config-dir=options", "algo=loop"): "scalar.yaml: cannot be read",
    ("--config-dir=bombs", "algo=bomb"): "bomb.yaml: more than 100,000 values",
    ("--config-dir=bombs", "experiment=recursive"): "recursive.yaml: more than 100,000 values",
    ("data=revlogs_10k", "data.path=.", "data.users=1-999999999"): "at most 1,000,000",
    ("figures=2",): "figures=2",
    ("figures=-1",): "figures=-1",
    ("resume=-1",): "resume=-1",
    ("hydra.sweeper=3",): "hydra.sweeper=3",
    ("hydra.sweeper=null",): "hydra.sweeper=None",
    ("hydra.run.dir=",): "hydra.run.dir=",
    ("hydra.run.dir=/",): "hydra.run.dir=/",
    ("hydra.run.dir=s3://bucket/x",): "local folders only",
    ("tracking=mlflow", "tracking.uri=s3://bucket"): "keeps no runs there",
    ("tracking=jsonl", "tracking.file=gs://x/items.jsonl"): "local folders only",
    ("panel.metrics.log_loss=x",): "panel.metrics: 'x'",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("words", ONCE, ids=lambda words: " ".join(words)[-40:])
def test_what_was_once_not_understood_is_told(place: Path, words: tuple[str, ...]) -> None:
    before = {path.name for path in place.iterdir()}
    ended = attempt([*NO_DATA, *words])
    assert (ended.kind, ended.status) == ("clear error", 2), ended.text
    assert ONCE[words] in ended.text
    assert {path.name for path in place.iterdir()} <= before | {"out"}


@pytest.mark.slow
def test_options_that_cannot_be_read_do_not_keep_others_from_being_listed(place: Path) -> None:
    ended = attempt(["--config-dir=options", "algo=?"])
    assert ended.kind == "accepted", ended.text
    assert "latin" in ended.text


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_nightly(range(25), 5))
def test_a_random_command_line_ends_well(place: Path, seed: int) -> None:
    ended = attempt(command_line(random.Random(seed)))
    assert ended.kind in ("accepted", "clear error"), (ended.words, ended.text)
    assert not (place / "PWNED").exists()
    assert not any(path.name.endswith(":") for path in place.iterdir())
