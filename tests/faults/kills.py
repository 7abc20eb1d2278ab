"""Runs that are killed at random moments, and resumed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Lock

from processes import TIME_LIMIT, Run, broken_store, different, finish, start
from verdicts import Verdict, first_problem

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
                run = finish(place, [*words, *_QUIET])
                if run.status != 0:
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
    problems, landed = [], 0
    for number in range(kills):
        run = start(folder, [*full, *(["resume=true"] if number else [])])
        moment(run)
        sent = random.choice(SIGNALS)
        landed += run.send(sent, everyone=random.random() < 0.5)
        if not run.wait():
            return Verdict("hang", f"{sent.name} did not end {' '.join(full)}")
        run.end()  # workers of a killed run that are still on their way out
        if run.has_traceback and sent != signal.SIGKILL:
            problems.append(f"traceback after {sent.name}: {run.output[-300:]}")
    if problems:
        return Verdict("traceback", first_problem(problems))
    last = start(folder, [*full, "resume=true"])
    if not last.wait(TIME_LIMIT):
        return Verdict("hang", f"the resumed run of {' '.join(full)}")
    if last.status != 0:
        return Verdict("lost", f"resumed: exit {last.status}: {last.output[-400:]}")
    problems = different(folder / "out", reference)
    if tracked:
        problems += broken_store(folder / "mlflow.db", finished=1)
    if problems:
        return Verdict("wrong", first_problem(problems))
    return Verdict("recorded" if landed else "accepted")
