"""Runs that are killed, that share a folder or a store, or whose surroundings fail."""

from __future__ import annotations

import resource
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Lock

from processes import Run, broken_store, different, start
from verdicts import Found, Verdict, right

AT_ONCE = 30
_LONGEST_LOCK = 45.0

# A store whose tables are all there has about so many.
_STORE_BYTES = 800_000
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_SMALL = ("data.size_scale=0.02", "data.max_reviews=600", "panel=quick", "figures=false")
SCENARIOS: tuple[tuple[str, ...], ...] = (
    ("algo=avg", "data.users=40", *_SMALL),
    ("algo=hlr", "data.users=8", *_SMALL),
    ("algo=moving_avg", "data.users=6", "protocol=prequential", *_SMALL),
    ("algo=avg", "data.users=20", "compute=processes", "compute.workers=2", *_SMALL),
)
_ONE_USER = ("algo=avg", "data.users=1", *_SMALL)
_QUIET = ("tracking=none", "hydra.run.dir=out")


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Results of an undisturbed run."""

    folder: Path
    seconds: float


@dataclass(slots=True)
class References:
    """Results of undisturbed runs, each made once."""

    folder: Path
    _seconds: dict[tuple[str, ...], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, words: tuple[str, ...]) -> Undisturbed:
        """Results of a run, and how long it took."""
        place = self.folder / sha256(" ".join(words).encode()).hexdigest()[:8]
        with self._lock:
            if words not in self._seconds:
                run = start(place, [*words, *_QUIET])
                if run.ended() != 0:
                    raise RuntimeError(f"an undisturbed run failed: {run.output[-2000:]}")
                self._seconds[words] = time.monotonic() - run.began
        return Undisturbed(place / "out", self._seconds[words])


def kill_while_users_are_evaluated(random: Random, folder: Path, references: References) -> Verdict:
    """Kill up to three times, anywhere between the start and the end."""
    words = random.choice(SCENARIOS)

    def moment(run: Run) -> None:
        if random.random() < 0.8:
            wait_for_users(random, run, words)
        else:
            time.sleep(random.uniform(0, references.of(words).seconds))

    return _killed_and_resumed(random, folder, words, references, moment, random.randint(1, 3))


def kill_in_clean_up(random: Random, folder: Path, references: References) -> Verdict:
    """Kill while the kept users are gathered and removed."""
    words = SCENARIOS[0]
    out = folder / "out"

    def moment(run: Run) -> None:
        last = random.choice(("predictions.parquet.partial", "predictions.parquet", "summary.json"))
        run.wait_until((out / last).exists)
        time.sleep(random.choice((0, random.uniform(0, 0.02), random.uniform(0, 0.3))))

    return _killed_and_resumed(random, folder, words, references, moment, 1)


def kill_while_the_store_is_created(
    random: Random, folder: Path, references: References
) -> Verdict:
    """Kill at a random moment of the creation of mlflow.db, then run again."""

    size = random.uniform(0, _STORE_BYTES)

    def moment(run: Run) -> None:
        # By its size: how long it takes depends on what else the machine does.
        run.wait_until(lambda: _bytes_of(folder.glob("mlflow.db*")) >= size)
        time.sleep(random.choice((0, random.uniform(0, 0.5))))

    return _killed_and_resumed(random, folder, _ONE_USER, references, moment, 1, tracked=True)


def wait_for_users(random: Random, run: Run, words: Sequence[str]) -> None:
    """Wait until some of the users, none or all, are finished."""
    (users,) = (int(word.removeprefix("data.users=")) for word in words if "data.users=" in word)
    kept, target = run.folder / "out" / "parts" / "users", random.randint(0, users)
    # Of a run before this one there may be users too: a job writes its outcome when it begins.
    outcome, now = run.folder / "out" / "job.json", time.time()
    run.wait_until(lambda: outcome.is_file() and outcome.stat().st_mtime >= now - 0.1)
    run.wait_until(lambda: kept.is_dir() and len(list(kept.glob("*.parquet"))) >= target)
    time.sleep(random.choice((0, random.uniform(0, 0.3))))


def _bytes_of(files: Iterable[Path]) -> int:
    """Size of files, some of which may vanish meanwhile."""
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _killed_and_resumed(
    random: Random,
    folder: Path,
    words: Sequence[str],
    references: References,
    moment: Callable[[Run], None],
    kills: int,
    *,
    tracked: bool | None = None,
) -> Verdict:
    """Kill a run, resume it to its end, and compare with the undisturbed one."""
    words = tuple(words)
    reference = references.of(words).folder
    tracked = random.random() < 0.5 if tracked is None else tracked
    full = [*words, "hydra.run.dir=out", *([] if tracked else ["tracking=none"])]
    landed = 0
    for number in range(kills):
        run = start(folder, [*full, *(["resume=true"] if number else [])])
        moment(run)
        sent = random.choice(SIGNALS)
        landed += run.send(sent, everyone=random.random() < 0.5)
        run.ended(may_show_traceback=sent == signal.SIGKILL)
        run.end()  # workers of a killed run that are still on their way out
    return resumed(
        folder, full, reference, 1 if tracked else 0, "recorded" if landed else "accepted"
    )


def resumed(
    folder: Path, words: Sequence[str], reference: Path, finished: int, outcome: str
) -> Verdict:
    """Resume a run to its end, and compare with the undisturbed one, and a store's runs."""
    last = start(folder, [*words, "resume=true"])
    if last.ended() != 0:
        raise Found("lost", f"resumed: exit {last.status}: {last.output[-400:]}")
    problems = different(folder / "out", reference)
    if finished:
        problems += broken_store(folder / "mlflow.db", finished=finished)
    return right(problems, outcome)


def many_on_a_fresh_store(
    _random: Random, folder: Path, _references: References, count: int = AT_ONCE
) -> Verdict:
    """Start many runs at once in a folder without a store."""
    runs = [
        start(folder, [*_ONE_USER, f"seed={number}", f"hydra.run.dir=out{number}"])
        for number in range(count)
    ]
    failed = [run for run in runs if run.ended(60.0 + 20 * count) != 0]
    if failed:
        raise Found("lost", f"{len(failed)} of {count} runs failed: {failed[0].output[-400:]}")
    problems = broken_store(folder / "mlflow.db", finished=count)
    with closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        names = connection.execute("select name from experiments").fetchall()
        if len(names) != len(set(names)):
            problems.append("experiments of one name")
    return right(problems)


def two_in_one_folder(random: Random, folder: Path, references: References) -> Verdict:
    """Start a run in the folder of one that is going on."""
    full = [*SCENARIOS[0], *_QUIET]
    reference = references.of(SCENARIOS[0]).folder
    first = start(folder, full)
    # Both are under way for most of the time: starting takes longer than this.
    time.sleep(random.uniform(0, 2))
    second = start(folder, [*full, *(["resume=true"] if random.random() < 0.3 else [])])
    statuses = [run.ended() for run in (first, second)]
    if 0 not in statuses:
        raise Found("lost", first.output[-300:], second.output[-300:])
    problems = different(folder / "out", reference)
    return right(problems, "accepted" if not any(statuses) else "clear error")


def the_folder_vanishes(random: Random, folder: Path, _references: References) -> Verdict:
    """Remove the output folder of a run that is going on: it must not end as a success."""
    run = start(folder, [*SCENARIOS[0], *_QUIET])
    wait_for_users(random, run, SCENARIOS[0])
    went_on = run.status is None
    shutil.rmtree(folder / "out", ignore_errors=True)
    status = run.ended()
    if went_on and status == 0 and not (folder / "out" / "summary.json").is_file():
        raise Found("wrong", f"exit 0 without results: {run.output[-300:]}")
    return Verdict("clear error" if status else "accepted")


def the_disk_is_full(random: Random, folder: Path, references: References) -> Verdict:
    """Limit the size of files, then resume without the limit."""
    words = random.choice(SCENARIOS[:2])
    reference, tracked = references.of(words).folder, random.random() < 0.5
    full = [*words, "hydra.run.dir=out", *([] if tracked else ["tracking=none"])]
    run = start(folder, full)
    size = random.choice((0, 100, 2_000, 10_000, 40_000, 120_000, 1_000_000))
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (size, size))
    outcome = "recorded" if run.ended() else "accepted"
    return resumed(folder, full, reference, int(tracked), outcome)


def the_database_is_locked(random: Random, folder: Path, references: References) -> Verdict:
    """Hold a lock on the store while a run begins or ends."""
    words = SCENARIOS[1]
    undisturbed = references.of(words)
    first = start(folder, [*words, "hydra.run.dir=first"])
    if first.ended() != 0:
        raise Found("lost", first.output[-300:])
    full = [*words, "hydra.run.dir=out"]
    held = random.uniform(1, _LONGEST_LOCK)
    run = start(folder, full)
    if random.random() < 0.5:
        run.wait_until((folder / "out" / "parts").is_dir)
    time.sleep(random.uniform(0, undisturbed.seconds))
    with closing(sqlite3.connect(folder / "mlflow.db", timeout=30)) as connection:
        connection.execute("begin immediate")
        until = time.monotonic() + held
        run.wait_until(lambda: time.monotonic() > until)
        connection.rollback()
    if run.ended() != 0:  # it gave up, and can be resumed
        return resumed(folder, full, undisturbed.folder, 2, "recorded")
    problems = different(folder / "out", undisturbed.folder)
    return right([*problems, *broken_store(folder / "mlflow.db", finished=2)])
