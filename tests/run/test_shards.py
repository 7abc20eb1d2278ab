"""A run whose users are shared among several commands ends as one that is not shared.

That their files are the same bytes, killed or not, `results/test_killed_runs.py` holds.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import outcome_of, summary_of, write
from object_store import object_store

from srs_eval.commands import run
from srs_eval.commands.merge import command as merge
from srs_eval.compute.shard import COMMAND, COMMAND_FILES, Shard
from srs_eval.errors import ConfigError
from srs_eval.place import Place
from srs_eval.results.files import CURVES, PREDICTIONS, SCORES
from srs_eval.results.parts import Chunk
from srs_eval.run.shards import require_all

SLURM = Path(__file__).parents[2] / "examples" / "slurm"
SBATCH = Path(__file__).parents[1] / "golden" / "sbatch.sh"
RUN = (
    *("algo=fsrs6", "algo.fit=default", "data.users=4", "data.size_scale=0.02", "panel=quick"),
    *("data.max_reviews=600", "figures=false", "tracking=none"),
)


def assert_same_run(folder, expected):
    for name in (PREDICTIONS, CURVES, SCORES):
        assert (folder / name).read_bytes() == (expected / name).read_bytes(), name
    assert summary_of(folder) == summary_of(expected)
    assert not (folder / "parts").exists()


@pytest.mark.slow
def test_shards_are_merged_to_the_files_of_one_run(here):
    assert here(*RUN, "hydra.run.dir=one").status == 0
    out = here.folder / "out"

    def shard(number, *words):
        return here(*RUN, "hydra.run.dir=out", f"shard={number}/3", *words).status

    assert [shard(3), shard(1)] == [0, 0]
    assert shard(2, "seed=7") == 2  # another run
    damaged = out / "parts" / "predictions" / f"part-{Chunk((1,)).name}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert merge(["out"]) == 1
    assert "shard=1/3, shard=2/3" in outcome_of(out)["message"]
    assert [shard(1), shard(2)] == [0, 0]
    assert merge(["out"]) == 0
    assert_same_run(out, here.folder / "one")
    assert shard(1) == 0  # which says that it was finished before


def test_shards_take_each_item_once_and_what_is_none_is_refused(here, monkeypatch):
    items = list(range(11))
    taken = [item for k in range(1, 5) for item in Shard.parse(f"{k}/4").take(items)]
    assert sorted(taken) == items
    for text in ("0/3", "4/3", "1", "-1/2", "a/b", ""):
        with pytest.raises(ConfigError):
            Shard.parse(text)
    assert here(*RUN, "shard=1/2").status == 2  # in a folder of its own, nothing can be merged
    assert not (here.folder / "out").exists()
    with object_store(monkeypatch, "bucket"):  # the command is where any machine can merge
        words = (*RUN, "data.users=2", "parts=s3://bucket/run", "shard=1/2", "hydra.run.dir=1")
        assert here(*words).status == 0
        recorded = Place.of("s3://bucket/run") / "shards" / "1_of_2" / COMMAND
        own = here.folder / "1" / "shards" / "1_of_2" / COMMAND
        for name in COMMAND_FILES:
            assert (recorded / name).read() == (own / name).read_bytes()


class Begun:
    """Parts of a run whose first and third user are there."""

    is_begun, chunk = True, 1

    def users_if_whole(self, chunk):
        return True if chunk.users in {("a",), ("c",)} else None


def test_the_shards_that_are_missing_are_named(tmp_path, refusals):
    calls = {}
    for recorded in (["1_of_2"], ["1_of_3", "3_of_3"], ["1_of_2", "2_of_3"]):
        place = tmp_path / "".join(recorded)
        for shard in recorded:
            write(place / "shards" / shard, {".hydra/overrides.yaml": ""})
        calls[place.name] = lambda place=place: require_all(tuple("abcd"), Begun(), Place.of(place))
    refusals("missing_shards", calls)


def test_several_runs_are_merged_in_the_order_given_and_the_worst_status_is_returned(
    here, monkeypatch
):
    (here.folder / "empty").mkdir()
    assert merge(["empty"]) == merge([]) == 2
    order = ("b", "a", "c=d's")
    for name in order:
        for shard in ("1_of_2", "2_of_2"):
            given = f"hydra: {{runtime: {{cwd: {here.folder / name}, config_sources: []}}"
            given += ", overrides: {hydra: []}}"
            words = f"[algo={name}, shard={shard[0]}/2, hydra.run.dir={name}, figures=true]"
            files = {".hydra/hydra.yaml": given, ".hydra/overrides.yaml": words}
            write(here.folder / name / "shards" / shard, files)
    carried_out = []

    def carry_out(words):
        carried_out.append((Path.cwd().name, words))
        return int("algo=a" in words)

    monkeypatch.setattr(run, "command", carry_out)
    assert merge([*order, "figures=false"]) == 1
    last = ["figures=false", "resume=true", "shard=all"]
    folders = [str(here.folder.resolve() / name).replace("'", "\\'") for name in order]
    assert carried_out == [
        (name, [f"algo={name}", *last, f"hydra.run.dir='{folder}'"])
        for name, folder in zip(order, folders, strict=True)
    ]
    assert Path.cwd() == here.folder


@pytest.mark.slow
def test_the_scripts_for_slurm_run_an_array_and_merge_it(here):
    assert here(*RUN, "hydra.run.dir=one").status == 0
    programs = here.folder / "bin"
    programs.mkdir()
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    for name, text in (("sbatch", SBATCH.read_text("utf-8")), ("python", python)):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    words = ["sh", SLURM / "run.sh", "2", "out", *RUN]
    subprocess.run(words, cwd=here.folder, env=environment, check=True)
    assert_same_run(here.folder / "out", here.folder / "one")


@pytest.mark.slow
def test_a_bucket_that_cannot_be_used_is_told_before_a_user_is_evaluated(here, monkeypatch):
    monkeypatch.setattr("srs_eval.run.job.Evaluation", None)
    for bucket, failure, what in (
        ("nobody", "", "no such bucket"),
        ("bucket", "403 Access Denied", "permission is denied"),
    ):
        with object_store(monkeypatch, "bucket") as store:
            store.failing = lambda number, failure=failure: failure
            done = here(*RUN, f"parts=s3://{bucket}/run")
        assert (done.status, "Traceback" in done.err) == (1, False)
        assert f"s3://{bucket}/run" in done.err
        assert what in done.err
