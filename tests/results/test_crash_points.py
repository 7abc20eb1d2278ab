"""A run that dies before any rename or removal of a file, and is then resumed; and power cuts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cases import rest_nightly
from small_runs import before_changes, contents, removed_by_file, small_plan

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.errors import ConfigError, TrackingError
from srs_eval.experiment.job import run_job
from srs_eval.place import Place
from srs_eval.results import load
from srs_eval.results.files import CURVES, FITS, PREDICTIONS, SCORES, SUMMARY
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS
from srs_eval.tracking.nothing import NoTracker


def plan(folder, *, algorithm=None, at=None, **options):
    parts = at and Place.of(folder / at)
    return small_plan(folder / "run", algorithm or Fsrs6(fit="default"), parts=parts, **options)


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
        listed, ended = disk.renames("parts.json")
        assert listed < summary < ended
        assert ("gone", "stamp.json") in disk.events[ended:]
        assert ("gone", "stamp.json") not in disk.events[:ended]
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
        before_changes(
            patch,
            folder,
            lambda: shutil.copytree(folder, copies / f"{len(list(copies.iterdir())):03}"),
        )
        run_job(plan(folder, **options))
    expected = contents(folder)
    scores[Fsrs6.__name__] = load(folder / "run").by_user.values.tolist()
    left = sorted(copies.iterdir())
    assert len(left) > 10
    for copy in left[share::SHARES]:
        shutil.rmtree(folder)
        copy.rename(folder)
        if (folder / "run" / SUMMARY).exists():  # of this run, or of the one before
            found = load(folder / "run")
            assert found.by_user.values.tolist() == scores[found.facts.algo]
            assert sum(len(each) for each in found.predicted) == found.facts.reviews
        resumed(folder, **options)
        assert contents(folder) == expected, copy.name


@pytest.mark.parametrize("at", [None, "elsewhere"])
@pytest.mark.parametrize("stays_then", [True, False])
def test_a_large_run_whose_tracker_fails_has_its_results_and_can_be_resumed(
    tmp_path, monkeypatch, at, stays_then
):
    def fail(*_):
        raise TrackingError("gone")

    folder, whole = tmp_path / "failed", tmp_path / "whole"
    with monkeypatch.context() as patch:
        patch.setattr(NoTracker, "finish", fail)
        with pytest.raises(TrackingError):
            run_job(plan(folder, at=at, stays=True))
    found = load(folder / "run")
    assert sum(len(each) for each in found.predicted) == found.facts.reviews
    assert {fit.user for fit in found.fitted} == set(found.complete)
    resumed(folder, at=at, stays=stays_then)
    run_job(plan(whole, at=at, stays=stays_then))
    assert contents(folder) == contents(whole)
