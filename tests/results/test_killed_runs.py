"""Runs that are killed before any change of a file, in any order of runs, and by power cuts."""

import json
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from commands import to_end
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from invented import Logs, invented_log

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.compute.serial import Serial
from srs_eval.compute.shard import Shard
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import load
from srs_eval.results.files import CURVES, FITS, PREDICTIONS, SCORES, SUMMARY
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS
from srs_eval.run.description import RunDescription
from srs_eval.run.experiment import Experiment
from srs_eval.run.job import run_job
from srs_eval.run.plan import Job
from srs_eval.tracking.tracker import NoTracker

LOGS = {user: invented_log(user=user) for user in ("ann", "ben", "cat")}
ALGORITHMS = {"Average": Average(), "Constant": Constant(0.8), "Fsrs6": Fsrs6(fit="default")}


def plan(folder, name="Fsrs6", *, users=2, stays=False, shard=None, at=None, **options):
    """Plan a run with a part for each user; `at` is where its parts are, beside its folder."""
    logs = Logs({user: LOGS[user] for user in [*LOGS][:users]})
    return Job(
        Experiment(ALGORITHMS[name], logs, SrsBenchmark(), Panel([LogLoss()])),
        RunDescription(name, "logs", name, tags={"config_hash": name, "code_hash": "code"}),
        folder / "shards" / shard.folder if shard else folder,
        Serial(chunk=1),
        NoTracker(),
        figures=False,
        check_lookahead=False,
        parts=Place.of(folder.parent / at) if at else None,
        parts_above=0 if stays else 1000,
        shard=shard,
        **options,
    )


def contents(folder):
    """Return the files in a folder, without how long fits took and where the folder is."""
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if name.endswith(FITS) or "fits/" in name:
            found[name] = repr(pq.read_table(file).drop_columns(["seconds"]).to_pylist())
        elif file.is_file() and file.name != ".lock":
            found[name] = file.read_bytes().replace(str(folder).encode(), b"")
    return found


def before_changes(patch, folder, watch):
    """Call a function before each rename and removal of a file or folder in a folder."""

    def watched(change):
        def changing(path, *others, **options):
            is_inside = Path(path).is_relative_to(folder) and os.path.lexists(path)
            if is_inside or "dir_fd" in options:
                watch()
            return change(path, *others, **options)

        return changing

    for name in ("replace", "unlink", "rmdir"):
        patch.setattr(os, name, watched(getattr(os, name)))
    patch.setattr(Place, "remove", removed_by_file)


def removed_by_file(place):
    """Remove a folder file by file, as the system does."""
    if place.local.is_dir():
        shutil.rmtree(place.local)
    else:
        place.local.unlink(missing_ok=True)


def check_predictions(folder):
    found = load(folder)
    assert sum(len(each) for each in found.predicted) == found.facts.reviews


@pytest.mark.parametrize("stays", [False, True])
def test_what_is_a_result_is_on_the_disk_before_it_is_called_one(tmp_path, monkeypatch, *, stays):
    events = []
    sync, rename, unlink = os.fsync, os.replace, os.unlink

    def synced(descriptor):
        events.append(("on disk", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def renamed(path, target):
        events.append(("renamed", Path(path).stat().st_ino, Path(target)))
        rename(path, target)

    def unlinked(path, **options):
        is_there = "dir_fd" in options or os.path.lexists(path)
        events.extend([("gone", Path(path).name)] if is_there else [])
        unlink(path, **options)

    def renames(name):
        return [n for n, e in enumerate(events) if e[0] == "renamed" and e[2].name == name]

    with monkeypatch.context() as patch:
        for name, change in (("fsync", synced), ("replace", renamed), ("unlink", unlinked)):
            patch.setattr(os, name, change)
        patch.setattr(Place, "remove", removed_by_file)
        to_end(run_job(plan(tmp_path / "run", stays=stays)))
    on_disk, parts = set(), set()
    for kind, inode, *target in events:
        if kind == "on disk":
            on_disk.add(inode)
        elif target and target[0].parent.parent.name == PARTS:
            parts.add(inode)
        elif target:
            assert inode in on_disk, target
            assert not stays or target[0].name != "parts.json" or parts <= on_disk
    (summary,) = renames(SUMMARY)
    folder = ("on disk", (tmp_path / "run").stat().st_ino)
    made = [SCORES] if stays else [PREDICTIONS, CURVES, FITS, SCORES]
    assert all(max(renames(name)) < summary for name in made)
    after = events[summary:]
    assert folder in after
    gone = [n for n, event in enumerate(events) if event[0] == "gone"]
    if stays:
        begun, listed, ended = renames("parts.json")
        assert begun < listed < summary < ended
        assert ("gone", "parts.json") not in events
    else:
        assert summary + after.index(folder) < min(gone)


SHARES = 3  # of the moments, so that no test takes long
BEFORE = {"": None, "gathered": {}, "in parts": {"stays": True}}
CASES = [
    ({}, "in parts"),
    ({"stays": True}, "gathered"),
    ({}, ""),
    ({"stays": True}, ""),
    ({"at": "elsewhere"}, ""),
    ({"at": "elsewhere", "stays": True}, ""),
]


@pytest.mark.parametrize(
    ("options", "before", "share"),
    rest_nightly([(*case, share) for case in CASES for share in range(SHARES)], 2 * SHARES),
    ids=str,
)
def test_a_run_may_be_killed_before_any_change_of_a_file(
    tmp_path, monkeypatch, options, before, share
):
    folder, copies = tmp_path / "whole", tmp_path / "killed"
    run = folder / "run"
    copies.mkdir()
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    scores = {}
    former = BEFORE[before]
    if former is not None:
        to_end(run_job(plan(run, "Average", **former)))
        scores["Average"] = load(run).by_user.values.tolist()
    with monkeypatch.context() as patch:
        named = (copies / f"{number:03}" for number in count())
        before_changes(patch, folder, lambda: shutil.copytree(folder, next(named)))
        to_end(run_job(plan(run, **options)))
    expected = contents(folder)
    scores["Fsrs6"] = load(run).by_user.values.tolist()
    left = sorted(copies.iterdir())
    assert len(left) > 10
    for copy in left[share::SHARES]:
        shutil.rmtree(folder)
        copy.rename(folder)
        again = plan(run, resume=True, **options)
        if (run / SUMMARY).exists():  # of this run, or of the one before
            facts = load(run).facts
            assert load(run).by_user.values.tolist() == scores[facts.algo]
            check_predictions(run)
            kept = KeptParts(run / PARTS, again.about.stamp, at=again.parts)
            if not again.about.is_of(facts.tags) and not kept.is_begun:
                with pytest.raises(ConfigError, match="other settings or other code"):
                    to_end(run_job(again))
                again = plan(run, **options)
        to_end(run_job(again))
        assert contents(folder) == expected, copy.name


NAMES = st.sampled_from(["Average", "Constant"])


@cache
def undisturbed(name, *, stays):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        to_end(run_job(plan(folder, name, users=3, stays=stays)))
        assert load(folder).complete == ("ann", "ben", "cat")
        scores = load(folder).by_user.values.tolist()
        return SimpleNamespace(files=contents(folder), scores=scores)


class Killed(BaseException):
    """Stands for the end of the process: from then on it changes no file."""


class Runs(RuleBasedStateMachine):
    """A folder, and which settings may have left something in it."""

    @initialize(stays=st.booleans(), steps=st.integers(0, 25))
    def begin(self, steps, *, stays):
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "run"
        self.used = set()
        self.run("Average", steps, resume=False, stays=stays)

    def begun(self):
        file = self.folder / PARTS / "parts.json"
        state = json.loads(file.read_text()) if file.exists() else {"state": ""}
        return str(state["stamp"]) if state["state"] == "begun" else ""

    def plan(self, name, **options):
        return plan(self.folder, name, users=3, **options)

    def carried_out(self, name, steps, plans):
        """Carry out plans, which may be killed, or refused because of other settings."""
        before, left = contents(self.folder), iter(range(steps))
        was_finished = (self.folder / SUMMARY).exists() and not self.begun()

        def die():
            if next(left, None) is None:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            before_changes(patch, self.folder, die)
            try:
                for each in plans:
                    to_end(run_job(each))
            except Killed:
                self.used.add(name)
                return False
            except ConfigError:
                assert self.used - {name}
                assert contents(self.folder) == before
                return False
        self.used = {name}
        stays = plans[-1].parts_above == 0
        ways = [True, False] if was_finished else [stays]
        assert contents(self.folder) in [undisturbed(name, stays=way).files for way in ways]
        return True

    @rule(name=NAMES, steps=st.integers(0, 25), resume=st.booleans(), stays=st.booleans())
    def run(self, name, steps, *, resume, stays):
        self.carried_out(name, steps, [self.plan(name, resume=resume, stays=stays)])

    @rule(name=NAMES, steps=st.integers(0, 50), order=st.permutations([1, 2]), stays=st.booleans())
    def run_in_shards(self, name, steps, order, *, stays):
        shards = [self.plan(name, shard=Shard(n, 2), resume=True) for n in order]
        merge = self.plan(name, is_merge=True, resume=True, stays=stays)
        self.carried_out(name, steps, [*shards, merge])

    @rule(name=NAMES, stays=st.booleans())
    def resume(self, name, *, stays):
        """Resume a run, which is refused if, and only if, one of other settings is there."""
        again, begun = self.plan(name, resume=True, stays=stays), self.begun()
        is_done = self.carried_out(name, 1000, [again])
        assert begun in ("", again.about.stamp) if is_done else begun != again.about.stamp

    @precondition(lambda self: self.folder.exists())
    @rule()
    def delete(self):
        shutil.rmtree(self.folder)
        self.used = set()

    @invariant()
    def what_looks_finished_is_whole(self):
        if (self.folder / SUMMARY).exists():
            found = load(self.folder)
            assert found.facts.algo in self.used
            expected = undisturbed(found.facts.algo, stays=False)
            assert found.by_user.values.tolist() == expected.scores
            check_predictions(self.folder)

    def teardown(self):
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
