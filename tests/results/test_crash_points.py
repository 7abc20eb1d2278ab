"""A run that dies before any rename or removal of a file, and is then resumed; and power cuts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from invented import Logs, invented_log

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
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
from srs_eval.results.files import CURVES, FITS, PREDICTIONS, SCORES, SUMMARY
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS
from srs_eval.tracking.nothing import NoTracker

LOGS = Logs({user: invented_log(user=user) for user in ("ann", "ben")})
STEPS = ("replace", "unlink", "rmdir")


class Watched:
    """Copies a folder before each rename and removal of a file in it: what a kill would leave."""

    def __init__(self, patch, folder, copies):
        self.folder, self.copies = folder, copies
        for name in ("replace", "unlink", "rmdir"):
            patch.setattr(os, name, self.watched(getattr(os, name)))
        patch.setattr(Place, "remove", removed_by_file)

    def watched(self, change):
        def watching(path, *others, **options):
            is_inside = Path(path).is_relative_to(self.folder) and os.path.lexists(path)
            if is_inside or "dir_fd" in options:
                shutil.copytree(self.folder, self.copies / str(len(list(self.copies.iterdir()))))
            return change(path, *others, **options)

        return watching


def removed_by_file(place):
    """Remove a folder file by file, as the system does."""
    if place.local.is_dir():
        shutil.rmtree(place.local)
    else:
        place.local.unlink(missing_ok=True)


def plan(folder, *, resume=False, algorithm=None, stays=False, at=None):
    """Plan a run of two users, with a part for each."""
    algorithm = algorithm or Fsrs6(fit="default")
    experiment = Experiment(algorithm, LOGS, SrsBenchmark(), Panel([LogLoss()]))
    name = type(algorithm).__name__
    about = RunDescription(name, "logs", name, tags={"config_hash": name, "code_hash": "code"})
    options = RunOptions(
        folder / "run",
        Serial(chunk=1),
        NoTracker(),
        resume=resume,
        figures=False,
        check_lookahead=False,
        parts=at and Place.of(folder / at),
        parts_above=0 if stays else 1000,
    )
    return Plan(experiment, about, options)


def contents(folder):
    """Return the files of a folder, without how long fits took and without addresses."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        name = file.relative_to(folder).as_posix()
        if name.endswith(FITS) or "/fits/" in name:
            found[name] = repr(pq.read_table(file).drop_columns(["seconds"]).to_pylist())
        else:
            found[name] = file.read_bytes().replace(str(folder).encode(), b"")
    return found


def resumed(folder, **options):
    """Resume a run, or repeat it where nothing of it has begun."""
    again = plan(folder, resume=True, **options)
    summary = folder / "run" / SUMMARY
    of_another = summary.exists() and not again.about.is_of(load(summary.parent).facts.tags)
    has_begun = KeptParts(
        folder / "run" / PARTS, again.about.stamp, at=again.options.parts
    ).is_begun
    if of_another and not has_begun:
        with pytest.raises(ConfigError, match="other settings or other code"):
            run_job(again)
        again = plan(folder, **options)
    run_job(again)


BEFORE = {
    "": None,
    "gathered": {"algorithm": Average()},
    "in parts": {"algorithm": Average(), "stays": True},
}


class LooksForASummary(Average):
    """Finds out whether the folder looks like that of a finished run while it is fitted."""

    def __init__(self, folder):
        object.__setattr__(self, "seen", [])
        object.__setattr__(self, "folder", folder)

    def fit(self, reviews, rows, rng):
        self.seen.append((self.folder / "run" / SUMMARY).exists())
        return super().fit(reviews, rows, rng)


def test_a_run_that_goes_on_has_no_summary_of_the_one_before(tmp_path):
    run_job(plan(tmp_path))
    algorithm = LooksForASummary(tmp_path)
    run_job(plan(tmp_path, algorithm=algorithm))
    assert algorithm.seen == [False] * 10
    assert (tmp_path / "run" / SUMMARY).exists()


class Disk:
    """Notes in which order files are put on the disk, get their names, and go."""

    def __init__(self, patch):
        self.events = []
        sync, rename, unlink = os.fsync, os.replace, os.unlink

        def synced(descriptor):
            self.events.append(("on disk", os.fstat(descriptor).st_ino))
            sync(descriptor)

        def renamed(path, target):
            self.events.append(("renamed", Path(path).stat().st_ino, Path(target)))
            rename(path, target)

        def unlinked(path, **options):
            is_there = "dir_fd" in options or os.path.lexists(path)
            self.events += [("gone", Path(path).name)] if is_there else []
            unlink(path, **options)

        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "replace", renamed)
        patch.setattr(os, "unlink", unlinked)
        patch.setattr(Place, "remove", removed_by_file)

    def renames(self, name):
        """Positions at which a file of that name got it."""
        named = [n for n, event in enumerate(self.events) if event[0] == "renamed"]
        return [n for n in named if self.events[n][2].name == name]


@pytest.mark.parametrize("stays", [False, True])
def test_what_is_a_result_is_on_the_disk_before_it_is_called_one(tmp_path, monkeypatch, stays):
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        run_job(plan(tmp_path, stays=stays))
    on_disk, parts = set(), set()
    for kind, inode, *target in disk.events:
        if kind == "on disk":
            on_disk.add(inode)
        elif target and target[0].parent.parent.name == PARTS:
            parts.add(inode)
        elif target:
            assert inode in on_disk, target
            if target[0].name == "parts.json":
                assert parts <= on_disk
    (summary,) = disk.renames(SUMMARY)
    folder = ("on disk", (tmp_path / "run").stat().st_ino)
    made = [SCORES] if stays else [PREDICTIONS, CURVES, FITS, SCORES]
    assert all(max(disk.renames(name)) < summary for name in made)
    after = disk.events[summary:]
    assert folder in after
    if stays:
        (listed,) = disk.renames("parts.json")
        assert summary < listed
        assert ("gone", "stamp.json") in disk.events[listed:]
        assert ("gone", "stamp.json") not in disk.events[:listed]
    else:
        removed = [n for n, event in enumerate(after) if event[0] == "gone"]
        assert after.index(folder) < min(removed)
        assert not any(event[0] == "gone" for event in disk.events[:summary])


SHARES = 3  # of the moments, so that no test takes long
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
    copies.mkdir()
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    scores = {}
    if BEFORE[before]:
        run_job(plan(folder, **BEFORE[before]))
        scores[Average.__name__] = load(folder / "run").by_user.values.tolist()
    with monkeypatch.context() as patch:
        Watched(patch, folder, copies)
        run_job(plan(folder, **options))
    expected = contents(folder)
    scores[Fsrs6.__name__] = load(folder / "run").by_user.values.tolist()
    left = sorted(copies.iterdir(), key=lambda copy: int(copy.name))
    assert len(left) > 10
    for copy in left[share::SHARES]:
        shutil.rmtree(folder)
        copy.rename(folder)
        if (folder / "run" / SUMMARY).exists():  # of this run, or of the one before
            found = load(folder / "run")
            assert found.by_user.values.tolist() == scores[found.facts.algo]
        resumed(folder, **options)
        assert contents(folder) == expected, copy.name
