"""Runs that are killed, that share a folder or a store, or whose surroundings fail."""

import resource
import shutil
import signal
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from judging import Found, right
from processes import Run, broken_store, different

AT_ONCE = 30
# A store whose tables are all there has about so many.
_STORE_BYTES = 800_000
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_SMALL = ("data.size_scale=0.02", "data.max_reviews=600", "panel=quick", "figures=false")
SCENARIOS = (
    ("algo=avg", "data.users=40", *_SMALL),
    ("algo=hlr", "data.users=8", *_SMALL),
    ("algo=moving_avg", "data.users=6", "protocol=prequential", *_SMALL),
    ("algo=avg", "data.users=20", "compute=processes", "compute.workers=2", *_SMALL),
)
_ONE_USER = ("algo=avg", "data.users=1", *_SMALL)
_UNTRACKED = ("tracking=none",)


@cache
def undisturbed(words):
    """Results of an undisturbed run, and how long it took."""
    place = Path(tempfile.mkdtemp())
    run = Run(place, [*words, *_UNTRACKED, "hydra.run.dir=out"])
    if run.ended() != 0:
        raise RuntimeError(f"an undisturbed run failed: {run.output[-2000:]}")
    return place / "out", time.monotonic() - run.began


@dataclass(frozen=True, slots=True)
class Scene:
    """One case: its generator, and a folder of its own."""

    random: Random
    folder: Path

    @property
    def out(self):
        """Folder of the run."""
        return self.folder / "out"

    def start(self, *words):
        """Start a run in the folder of this case."""
        return Run(self.folder, [*words, "hydra.run.dir=out"])

    def pause(self, *longest):
        """Wait no time, or up to one of these."""
        time.sleep(self.random.choice((0, *(self.random.uniform(0, each) for each in longest))))

    def tracking(self):
        """Draw whether runs are tracked."""
        return () if self.random.random() < 0.5 else _UNTRACKED

    def kill_while_users_are_evaluated(self):
        """Kill up to three times, anywhere between the start and the end."""
        words = self.random.choice(SCENARIOS)

        def moment(run):
            if self.random.random() < 0.8:
                self.wait_for_users(run, words)
            else:
                time.sleep(self.random.uniform(0, undisturbed(words)[1]))

        return self.killed_and_resumed(
            words, self.tracking(), moment, kills=self.random.randint(1, 3)
        )

    def kill_in_clean_up(self):
        """Kill while the kept users are gathered and removed."""

        def moment(run):
            names = (".predictions.parquet.partial", "predictions.parquet", "summary.json")
            run.wait_until((self.out / self.random.choice(names)).exists)
            self.pause(0.02, 0.3)

        return self.killed_and_resumed(SCENARIOS[0], self.tracking(), moment)

    def kill_while_the_store_is_created(self):
        """Kill at a random moment of the creation of mlflow.db, then run again."""
        size = self.random.uniform(0, _STORE_BYTES)

        def written():
            total = 0
            for file in self.folder.glob("mlflow.db*"):
                with suppress(OSError):  # it may vanish meanwhile
                    total += file.stat().st_size
            return total

        def moment(run):
            # By its size: how long it takes depends on what else the machine does.
            run.wait_until(lambda: written() >= size)
            self.pause(0.5)

        return self.killed_and_resumed(_ONE_USER, (), moment)

    def wait_for_users(self, run, words):
        """Wait until some of the users, none or all, are finished."""
        (users,) = (int(word.partition("=")[2]) for word in words if "data.users=" in word)
        kept, target = self.out / "checkpoint", self.random.randint(0, users)
        # Of a run before this one there may be users too: a job writes its outcome when it begins.
        outcome, now = self.out / "job.json", time.time()
        run.wait_until(lambda: outcome.is_file() and outcome.stat().st_mtime >= now - 0.1)
        run.wait_until(lambda: kept.is_dir() and len(list(kept.glob("*/*.pkl"))) >= target)
        self.pause(0.3)

    def killed_and_resumed(self, words, tracking, moment, kills=1):
        """Kill a run, resume it to its end, and compare with the undisturbed one."""
        undisturbed(words)
        landed = 0
        for _ in range(kills):
            run = self.start(*words, *tracking)
            moment(run)
            sent = self.random.choice(SIGNALS)
            landed += run.signalled(sent, everyone=self.random.random() < 0.5)
            run.ended(may_show_traceback=sent == signal.SIGKILL)
        return self.resumed(words, tracking, "recorded" if landed else "accepted")

    def resumed(self, words, tracking, outcome, finished=1):
        """Resume a run to its end, and compare with the undisturbed one, and a store's runs."""
        last = self.start(*words, *tracking)
        if last.ended() != 0:
            raise Found("lost", f"resumed: exit {last.returncode}: {last.output[-400:]}")
        problems = different(self.out, undisturbed(words)[0])
        if not tracking:
            problems += broken_store(self.folder / "mlflow.db", finished=finished)
        return right(problems, outcome)

    def many_on_a_fresh_store(self):
        """Start many runs at once in a folder without a store."""
        own = [(f"seed={number}", f"hydra.run.dir=out{number}") for number in range(AT_ONCE)]
        runs = [Run(self.folder, [*_ONE_USER, *words]) for words in own]
        failed = [run for run in runs if run.ended(60.0 + 20 * AT_ONCE) != 0]
        if failed:
            told = f"{len(failed)} of {AT_ONCE} runs failed: {failed[0].output[-400:]}"
            raise Found("lost", told)
        return right(broken_store(self.folder / "mlflow.db", finished=AT_ONCE))

    def two_in_one_folder(self):
        """Start a run in the folder of one that is going on."""
        words = (*SCENARIOS[0], *_UNTRACKED)
        reference, _ = undisturbed(SCENARIOS[0])
        first = self.start(*words)
        # Both are under way for most of the time: starting takes longer than this.
        time.sleep(self.random.uniform(0, 2))
        second = self.start(*words)
        statuses = [run.ended() for run in (first, second)]
        if 0 not in statuses:
            raise Found("lost", first.output[-300:], second.output[-300:])
        return right(different(self.out, reference), "clear error" if any(statuses) else "accepted")

    def the_folder_vanishes(self):
        """Remove the output folder of a run that is going on: it must not end as a success."""
        run = self.start(*SCENARIOS[0], *_UNTRACKED)
        self.wait_for_users(run, SCENARIOS[0])
        went_on = run.poll() is None
        shutil.rmtree(self.out, ignore_errors=True)
        status = run.ended()
        if went_on and status == 0 and not (self.out / "summary.json").is_file():
            raise Found("wrong", f"exit 0 without results: {run.output[-300:]}")
        return "clear error" if status else "accepted"

    def the_disk_is_full(self):
        """Limit the size of files, then resume without the limit."""
        words, tracking = self.random.choice(SCENARIOS[:2]), self.tracking()
        undisturbed(words)
        run = self.start(*words, *tracking)
        size = self.random.choice((0, 100, 2_000, 10_000, 40_000, 120_000, 1_000_000))
        resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (size, size))
        return self.resumed(words, tracking, "recorded" if run.ended() else "accepted")

    def the_database_is_locked(self):
        """Hold a lock on the store, for up to 45 seconds, while a run begins or ends."""
        words, database = SCENARIOS[1], self.folder / "mlflow.db"
        reference, seconds = undisturbed(words)
        first = Run(self.folder, [*words, "hydra.run.dir=first"])
        if first.ended() != 0:
            raise Found("lost", first.output[-300:])
        held = self.random.uniform(1, 45)
        run = self.start(*words)
        if self.random.random() < 0.5:
            run.wait_until((self.out / "checkpoint").is_dir)
        time.sleep(self.random.uniform(0, seconds))
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            connection.execute("begin immediate")
            until = time.monotonic() + held
            run.wait_until(lambda: time.monotonic() > until)
            connection.rollback()
        if run.ended() != 0:  # it gave up, and can be resumed
            return self.resumed(words, (), "recorded", finished=2)
        return right([*different(self.out, reference), *broken_store(database, finished=2)])
