"""Runs that are begun, killed, resumed, repeated with other settings and deleted, in any order."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from small_runs import before_changes, contents, small_plan

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.compute.shard import Shard
from srs_eval.errors import ConfigError
from srs_eval.experiment.job import run_job
from srs_eval.experiment.plan import Plan
from srs_eval.results import load
from srs_eval.results.files import SUMMARY
from srs_eval.results.parts import PARTS

ALGORITHMS = {"Average": Average(), "Constant": Constant(0.8)}
NAMES = st.sampled_from(list(ALGORITHMS))


def plan(folder: Path, name: str, **options: Any) -> Plan:
    return small_plan(folder, ALGORITHMS[name], users=("ann", "ben", "cat"), **options)


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
    left = iter(range(steps))

    def die() -> None:
        if next(left, None) is None:
            raise Killed

    before_changes(patch, folder, die)


class Runs(RuleBasedStateMachine):
    """A folder, and which settings may have left something in it."""

    @initialize(stays=st.booleans(), steps=st.integers(0, 25))
    def begin(self, steps: int, *, stays: bool) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "run"
        self.used: set[str] = set()
        self.run("Average", steps, resume=False, stays=stays)

    def begun(self) -> str:
        stamp = self.folder / PARTS / "stamp.json"
        return str(json.loads(stamp.read_text())["stamp"]) if stamp.exists() else ""

    def carried_out(self, name: str, steps: int, plans: Sequence[Plan]) -> bool:
        """Carry out plans, which may be killed, or refused because of other settings."""
        before = contents(self.folder)
        was_finished = (self.folder / SUMMARY).exists() and not self.begun()
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, self.folder, steps)
            try:
                for each in plans:
                    run_job(each)
            except Killed:
                self.used.add(name)
                return False
            except ConfigError:
                assert self.used - {name}
                assert contents(self.folder) == before
                return False
        self.used = {name}
        stays = plans[-1].options.parts_above == 0
        ways = [True, False] if was_finished else [stays]
        assert contents(self.folder) in [undisturbed(name, stays=way).files for way in ways]
        return True

    @rule(name=NAMES, steps=st.integers(0, 25), resume=st.booleans(), stays=st.booleans())
    def run(self, name: str, steps: int, *, resume: bool, stays: bool) -> None:
        self.carried_out(name, steps, [plan(self.folder, name, resume=resume, stays=stays)])

    @rule(name=NAMES, steps=st.integers(0, 50), order=st.permutations([1, 2]), stays=st.booleans())
    def run_in_shards(self, name: str, steps: int, order: Sequence[int], *, stays: bool) -> None:
        shards = [plan(self.folder, name, shard=Shard(n, 2), resume=True) for n in order]
        merge = plan(self.folder, name, is_merge=True, resume=True, stays=stays)
        self.carried_out(name, steps, [*shards, merge])

    @rule(name=NAMES, stays=st.booleans())
    def resume(self, name: str, *, stays: bool) -> None:
        """Resume a run, which is refused if, and only if, one of other settings is there."""
        again = plan(self.folder, name, resume=True, stays=stays)
        begun = self.begun()
        is_done = self.carried_out(name, 1000, [again])
        assert begun in ("", again.about.stamp) if is_done else begun != again.about.stamp

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
            expected = undisturbed(found.facts.algo, stays=False)
            assert found.by_user.values.tolist() == expected.scores
            assert sum(len(each) for each in found.predicted) == found.facts.reviews

    def teardown(self) -> None:
        shutil.rmtree(self.place)


TestRuns = Runs.TestCase
TestRuns.settings = settings(
    max_examples=10,
    stateful_step_count=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
)
