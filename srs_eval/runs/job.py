"""One job: from the configuration to a saved and tracked run."""

from __future__ import annotations

import json
import math
import multiprocessing
import re
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from hydra.types import RunMode
from omegaconf import DictConfig
from tqdm import tqdm

from srs_eval.errors import Pruned, SrsEvalError, TrackingError
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.runs import report
from srs_eval.runs.checkpoint import Checkpoint
from srs_eval.runs.claim import claimed
from srs_eval.runs.compute import Processes, Serial
from srs_eval.runs.config import Setup, build
from srs_eval.runs.console import complain, say
from srs_eval.runs.drawing import drawn
from srs_eval.runs.evaluation import checked_users, data_fingerprint, evaluate, refuse_lookahead
from srs_eval.runs.folder import JOB, Run, is_run, save, write_json
from srs_eval.runs.tracking import Tracked

_LONGEST_VALUE = 60
_publishing = list[Future[float]]()
_BAR = partial(tqdm, unit="fit", leave=False, disable=None)  # only on a terminal


class Job:
    """A job, and how it goes on: in ``job.json`` of its folder. `hydra` is what Hydra says of it.

    Its status is ``running``, then ``ok``, ``failed``, ``skipped``, ``pruned`` or ``interrupted``.
    """

    def __init__(self, cfg: DictConfig, hydra: Any) -> None:
        self.cfg, self.hydra, self.folder = cfg, hydra, Path(hydra.runtime.output_dir)
        self.is_single = hydra.mode == RunMode.RUN
        self.status = "running"
        self.label = self.message = self.stamp = ""
        self.run_id: str | None = None  # In MLflow
        self._later: Callable[[], float] | None = None  # What is left to do beside the next job
        self.began = time.perf_counter()

    def run(self) -> float:
        """Run the job, and tell what is wrong; return its log loss, NaN if it has none."""
        loss = self._told(self._run)
        if self._later is not None:
            later = _beside().submit(self._told, self._later)
            published()
            _publishing.append(later)
        return loss

    def _told(self, part: Callable[[], float]) -> float:
        """Do a part of the job, note how it ended, and tell what is wrong."""
        loss = math.nan
        try:
            loss = part()
        except (KeyboardInterrupt, SystemExit):
            self.status = "interrupted"
            mine = (
                f"run.dir={self.folder}" if self.is_single else f"sweep.dir={self.hydra.sweep.dir}"
            )
            complain(f"interrupted; the same command with hydra.{mine} goes on")
            self._write()
            raise
        except Pruned:
            self.status = "pruned"
        except (SrsEvalError, OSError) as error:
            self.status, self.message = "failed", str(error)
            if isinstance(error, TrackingError) and is_run(self.folder):
                self.message += (
                    f"\n  results are in {self.folder}: repeat the command there to send them"
                )
            complain(self.message)
        except Exception as error:  # noqa: BLE001 - the other jobs of a sweep go on
            self.status, self.message = "failed", f"{type(error).__name__}: {error}"
            complain(traceback.format_exc())
        self._write()
        return loss

    def _run(self) -> float:
        with claimed(self.folder, self.cfg.shard):
            arguments = arguments_of(self.hydra.overrides.task)
            return self._evaluate(build(self.cfg, dict(self.hydra.runtime.choices), arguments))

    def _evaluate(self, setup: Setup) -> float:
        """Evaluate and save; draw and log, in a sweep beside the next job; return the log loss."""
        if not self.is_single and isinstance(setup.compute, Serial):
            # a fit that ends its process must not end the jobs beside it
            setup = replace(setup, compute=Processes(1))
        self.label, self.stamp = setup.label, setup.stamp
        run = self._finished(setup)
        if run is None and setup.content["check_lookahead"]:
            refuse_lookahead(setup)
        if shard := setup.content["shard"]:
            if run is None:
                evaluation = evaluate(setup, self.folder, bar=_BAR, begin=report.begin)
                say(report.shard_text(shard, evaluation, self.folder))
                self.status = "failed" if evaluation.summary.failed else "ok"
            return math.nan
        checkpoint = Checkpoint(self.folder, setup.stamp)
        self.run_id = self._begun_run()
        if run is not None and setup.tracking.has(self.run_id):
            checkpoint.remove()  # what a kill has left of its removal
            say(f"{setup.label} was finished before, and nothing is fitted: {self.folder}")
            return self._ended(run)
        with ExitStack() as stack:
            try:
                begun = setup.tracking.run(setup, self.folder, self.run_id)
                tracked = stack.enter_context(begun)
            except TrackingError:
                if run is None:  # what can be sent later is evaluated now
                    self._evaluated(setup, checkpoint)
                raise
            self.run_id = tracked.run_id if tracked else None
            self._write()
            run = run or self._evaluated(setup, checkpoint)
            publish = partial(self._publish, setup, run, tracked, stack.pop_all())
        if not self.is_single:
            say(report.line(run, self._seconds))
        if self.is_single or multiprocessing.parent_process() is not None:  # of joblib
            return publish()
        self._later = publish
        return self._ended(run)

    def _publish(
        self, setup: Setup, run: Run, tracked: Tracked | None, tracking: ExitStack
    ) -> float:
        """Draw the figures, log all to MLflow, and print what a single run prints."""
        with tracking:
            figures = drawn(run, setup)
            text = report.run_text(run, setup.panel, self._seconds)
            if tracked:
                tracked.log(run, text, figures)
        if self.is_single:
            where = [f"results  {run.folder}", *([tracked.link] if tracked else [])]
            say("\n".join([*report.advice(run, setup), text, *where]))
        return self._ended(run)

    def _evaluated(self, setup: Setup, checkpoint: Checkpoint) -> Run:
        """Evaluate all users, and write the results."""
        watch = self._watch(setup)
        evaluation = evaluate(setup, self.folder, bar=_BAR, begin=report.begin, watch=watch)
        run = save(evaluation, self.folder)
        checkpoint.remove()
        return run

    def _watch(self, setup: Setup) -> Callable[[ScoredUser], None]:
        """Return what tells a search of each user who is done, where it can end trials early."""
        if self.is_single or not self.hydra.sweeper.get("pruner"):
            return lambda _: None
        from srs_eval.runs.search import Watch  # with Optuna, which other jobs do without

        return Watch(self.hydra, checked_users(setup.source), setup.panel.names)

    def _finished(self, setup: Setup) -> Run | None:
        """Return the run in the folder if it has the same settings, code and logs."""
        if not is_run(self.folder):
            return None
        run = Run.read(self.folder)
        same = all(run.facts.tags.get(k) == setup.tags[k] for k in ("config_hash", "code_hash"))
        is_same = same and run.facts.data_fingerprint == data_fingerprint(setup.source)
        return run if is_same else None

    def _begun_run(self) -> str | None:
        """Return the id in MLflow of the run that an interrupted command has begun here."""
        file = self.folder / JOB
        content = json.loads(file.read_bytes()) if file.is_file() else {}
        return content.get("run_id") if content.get("stamp") == self.stamp else None

    def _ended(self, run: Run) -> float:
        """Note how the job ended, and return the log loss."""
        facts = run.facts
        self.status = "failed" if facts.failed else "ok" if facts.users else "skipped"
        if facts.coverage.left_out and self.status != "ok":
            self.message = facts.coverage.left_out[0].reason
        loss = facts.metrics.get("log_loss")
        return math.nan if loss is None else loss.mean_users

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self.began

    def _write(self) -> None:
        """Write the file if there is room; shards, which share a folder, have none."""
        if self.cfg.shard is None and self.folder.is_dir():
            names = ("status", "label", "message", "stamp", "run_id")
            content = {name: getattr(self, name) for name in names}
            sweep = None if self.is_single else self.hydra.sweep.dir
            content |= {"sweep": sweep, "seconds": self._seconds}
            with suppress(OSError):
                write_json(self.folder / JOB, content)


@cache
def _beside() -> ThreadPoolExecutor:
    """Return a thread that has the time of this one, which waits for the fits of a worker."""
    return ThreadPoolExecutor(1)


def published() -> None:
    """Wait until the job before has been drawn and logged."""
    while _publishing:
        _publishing.pop().result()


def arguments_of(words: Sequence[str]) -> list[str]:
    """Return the arguments of the algorithm in the words of a command: ``algo.fit=default``.

    >>> arguments_of(["algo=per_group", "algo@algo.base=hlr", "algo.group=deck", "seed=1"])
    ['base=hlr', 'group=deck']
    >>> arguments_of(["algo.prior_weight=4.009909998"])  # as a search proposes it
    ['prior_weight=4.0099']
    """
    plain = [word.lstrip("+").removeprefix("algo@") for word in words]
    typed = [word.removeprefix("algo.") for word in plain if word.startswith("algo.")]
    typed = [re.sub(r"\d+\.\d{6,}\b", lambda long: f"{float(long[0]):.5g}", word) for word in typed]
    return [word[:_LONGEST_VALUE] + "…" * (len(word) > _LONGEST_VALUE) for word in typed]
