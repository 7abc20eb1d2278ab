"""A run whose users are shared among several commands, and its merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tqdm import tqdm

from srs_eval import results
from srs_eval.compute.shard import COMMAND, COMMAND_FILES, SHARDS, Shard, recorded_shards
from srs_eval.errors import ConfigError, FailedAlikeError, ShardsMissingError, SrsEvalError
from srs_eval.nouns import User
from srs_eval.place import Place
from srs_eval.results.claim import claim
from srs_eval.results.files import SUMMARY
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import USERS, chunk_size, cut
from srs_eval.results.result import Result
from srs_eval.results.user_rows import of_all_users
from srs_eval.run.evaluate import Evaluation
from srs_eval.run.jobs import JobOutcome
from srs_eval.run.plan import Job
from srs_eval.text.console import say, shell

# Shards that begin at the same time write to the folder of their run one after the other.
_SECONDS_TO_BEGIN = 60.0
_USERS_NAMED = 5


def evaluate_shard(
    job: Job,
    shard: Shard,
    kept: KeptParts,
    users: Sequence[User],
    progress: Callable[..., tqdm[Any]],
) -> JobOutcome:
    """Evaluate the share that a shard has of the users; nothing is summarised, drawn or logged.

    A shard that is started again goes on where it stopped. Fits that fail are counted, and make the
    merge fail. Where all fits of the first users fail alike, the parts of these users are removed,
    so that the shard can be started again.
    """
    folder, experiment = job.run_folder, job.experiment
    with claim(folder, wait=_SECONDS_TO_BEGIN):
        size = chunk_size(len(users), getattr(job.compute, "chunk", None))
        (folder / SUMMARY).unlink(missing_ok=True)
        kept.open(resume=True, chunk=size)
    if shared_at(job).is_remote:  # so that any machine can merge
        own = shared_at(job) / SHARDS / shard.folder / COMMAND
        for name in COMMAND_FILES:
            (own / name).write((job.folder / COMMAND / name).read_bytes())
    chunks = shard.take(cut(users, kept.chunk))
    try:
        before = Evaluation(
            experiment, chunks, kept, job.compute, progress, limits=job.limits
        ).run()
    except FailedAlikeError:
        kept.remove_failed(chunks)
        raise
    if before:
        say(f"{before} users of the shard were done before")
    _, found = of_all_users(
        (kept.read(chunk.name, USERS) for chunk in chunks), experiment.panel.names
    )
    count = sum(len(chunk.users) for chunk in chunks)
    message = f"shard {shard}: {count:,} of {len(users):,} users, fits failed: {found.failed:,}"
    command = shell(["python", "-m", "srs_eval.merge", str(shared_at(job))])
    say(f"{message}; when all shards are done: {command}")
    return JobOutcome(job.about.label, "ok", message)


def finished_before(job: Job) -> Result | None:
    """Return the result of this very job in its folder, if no fit of it has failed."""
    folder = job.run_folder
    if not (folder / SUMMARY).is_file():
        return None
    result = results.load(folder)
    if not job.about.is_of(result.facts.tags):
        raise ConfigError(
            f"resume=true: {folder} holds the results of other settings or other code; "
            "give the same, or another hydra.run.dir"
        )
    return result if result.facts.failed == 0 else None


def shared_at(job: Job) -> Place:
    """Return where all shards of a run record their commands."""
    at = job.parts
    return at if at is not None and at.is_remote else Place.of(job.run_folder)


def require_all(users: Sequence[User], kept: KeptParts, place: Place) -> None:
    """Raise an error with the shards and users that are missing, unless all users are evaluated."""
    if not kept.is_begun:
        raise SrsEvalError(f"{place}: no shard has evaluated anything there")
    chunks = cut(users, kept.chunk)
    at = [n for n, chunk in enumerate(chunks) if kept.users_if_whole(chunk) is None]
    if not at:
        return
    missing = [str(user) for n in at for user in chunks[n].users]
    named = ", ".join(missing[:_USERS_NAMED]) + (", …" if len(missing) > _USERS_NAMED else "")
    of = {int(each.parent.name.partition("_of_")[2]) for each in recorded_shards(place)}
    numbers = {n: sorted({i % n + 1 for i in at}) for n in sorted(of)}
    ways = [", ".join(f"shard={number}/{n}" for number in them) for n, them in numbers.items()]
    again = f"; run {' or '.join(ways)} again" if ways else ""
    if len(of) > 1:
        fit = " and ".join(f"of {n}" for n in numbers)
        again = f"; shards {fit} do not fit together: run {', or '.join(ways)}"
    raise ShardsMissingError(
        f"{place}: of {len(users):,} users {len(missing):,} are missing, or their parts are "
        f"damaged or of another run: {named}{again}"
    )
