"""Runs that are begun, killed, resumed, repeated with other settings and deleted, in any order."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from invented import Logs, invented_log

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.compute.serial import Serial
from srs_eval.errors import ConfigError
from srs_eval.experiment.description import RunDescription
from srs_eval.experiment.experiment import Experiment
from srs_eval.experiment.job import run_job
from srs_eval.experiment.plan import Plan, RunOptions
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import load
from srs_eval.results.files import FITS, SUMMARY
from srs_eval.results.parts import PARTS
from srs_eval.tracking.nothing import NoTracker

LOGS = Logs({user: invented_log(user=user) for user in ("ann", "ben", "cat")})
ALGORITHMS = {"Average": Average(), "Constant": Constant(0.8)}
CHANGES = ("replace", "unlink", "rmdir")


def plan(folder: Path, name: str, *, resume: bool, stays: bool) -> Plan:
    """Plan a run of three users, with a part for each."""
    experiment = Experiment(ALGORITHMS[name], LOGS, SrsBenchmark(), Panel([LogLoss()]))
    about = RunDescription(name, "logs", name, tags={"config_hash": name, "code_hash": "code"})
    options = RunOptions(
        folder,
        Serial(chunk=1),
        NoTracker(),
        resume=resume,
        figures=False,
        check_lookahead=False,
        parts_above=0 if stays else 1000,
    )
    return Plan(experiment, about, options)


def contents(folder: Path) -> dict[str, object]:
    """Return the files of a run, without how long fits took and where the folder is."""
    found: dict[str, object] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if name.endswith(FITS) or name.startswith("parts/fits/"):
            found[name] = repr(pq.read_table(file).drop_columns(["seconds"]).to_pylist())
        elif file.is_file():
            found[name] = file.read_bytes().replace(str(folder).encode(), b"")
    return found


@cache
def undisturbed(name: str, *, stays: bool) -> SimpleNamespace:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        run_job(plan(folder, name, resume=False, stays=stays))
        assert load(folder).complete == ("ann", "ben", "cat")
        scores = load(folder).by_user.values.tolist()
        return SimpleNamespace(files=contents(folder), scores=scores)


class Killed(BaseException):
    """Stands for the end of the process: from then on it changes no file."""


def dying(patch: pytest.MonkeyPatch, folder: Path, steps: int) -> None:
    """Let so many renames and removals of files happen, and none after them."""
    left = [steps]

    def mortal(change: Any) -> Any:
        def changing(path: Any, *others: Any, **options: Any) -> Any:
            is_inside = "dir_fd" in options or Path(path).is_relative_to(folder)
            if is_inside and os.path.lexists(path):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            return change(path, *others, **options)

        return changing

    def removed(place: Place) -> None:
        if place.local.is_dir():
            shutil.rmtree(place.local)
        else:
            place.local.unlink(missing_ok=True)

    for name in CHANGES:
        patch.setattr(os, name, mortal(getattr(os, name)))
    patch.setattr(Place, "remove", removed)


class Runs(RuleBasedStateMachine):
    """A folder, and which settings may have left something in it."""

    @initialize(stays=st.booleans(), steps=st.integers(0, 25))
    def begin(self, steps: int, *, stays: bool) -> None:
        self.place, self.stays = Path(tempfile.mkdtemp()), stays
        self.folder = self.place / "run"
        self.used: set[str] = set()
        self.run("Average", steps, resume=False)

    def expected(self, name: str) -> SimpleNamespace:
        return undisturbed(name, stays=self.stays)

    @rule(name=st.sampled_from(list(ALGORITHMS)), steps=st.integers(0, 25), resume=st.booleans())
    def run(self, name: str, steps: int, *, resume: bool) -> None:
        """Begin or resume a run, which may be killed."""
        expected = self.expected(name).files
        before = contents(self.folder)
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, self.folder, steps)
            try:
                run_job(plan(self.folder, name, resume=resume, stays=self.stays))
            except Killed:
                self.used.add(name)
                return
            except ConfigError:
                assert self.used - {name}
                assert contents(self.folder) == before
                return
        self.used = {name}
        assert contents(self.folder) == expected

    @rule(name=st.sampled_from(list(ALGORITHMS)))
    def resume(self, name: str) -> None:
        before, again = (
            contents(self.folder),
            plan(self.folder, name, resume=True, stays=self.stays),
        )
        stamp = self.folder / PARTS / "stamp.json"
        begun = json.loads(stamp.read_text())["stamp"] if stamp.exists() else ""
        try:
            run_job(again)
        except ConfigError:
            assert self.used - {name}
            assert begun != again.about.stamp
            assert contents(self.folder) == before
        else:
            assert begun in ("", again.about.stamp)
            self.used = {name}
            assert contents(self.folder) == self.expected(name).files

    @precondition(lambda self: self.folder.exists())
    @rule()
    def delete(self) -> None:
        shutil.rmtree(self.folder)
        self.used = set()

    @invariant()
    def what_looks_finished_is_whole(self) -> None:
        if (self.folder / SUMMARY).exists():
            found = load(self.folder)
            assert found.facts.algo in self.used
            assert found.by_user.values.tolist() == self.expected(found.facts.algo).scores

    def teardown(self) -> None:
        shutil.rmtree(self.place)


TestRuns = Runs.TestCase
TestRuns.settings = settings(
    max_examples=6,
    stateful_step_count=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
)
