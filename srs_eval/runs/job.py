"""Jobs: from the configuration to a saved and tracked run, and what happens around them."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import shlex
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from srs_eval.errors import ConfigError, Pruned, SrsEvalError, TrackingError
from srs_eval.places import has_secret
from srs_eval.runs import report
from srs_eval.runs.cli import NUMBERS, PARENT
from srs_eval.runs.compute import Processes, Serial, begin_loading
from srs_eval.runs.config import Setup, build, option, resolved
from srs_eval.runs.evaluation import (
    Checkpoint,
    checked_users,
    data_fingerprint,
    evaluate,
    refuse_lookahead,
)
from srs_eval.runs.folder import JOB, Run, claimed, is_run, job_number, save, write_json
from srs_eval.runs.tracking import Tracked
from srs_eval.runs.words import complain, dotted, say

_FILE = "sweep.json"
BEST = "optimization_results.yaml"  # Of a search
_WELL = ("ok", "skipped", "pruned")
claims = ExitStack()  # Until the command ends
_LONGEST_VALUE = 60
_beside = ThreadPoolExecutor(1)  # It has the time of this thread, which waits for a worker
_publishing = list[Future[None]]()
_complaints = set[str]()  # Of the jobs before
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
        self.loss = math.nan
        self.began = time.perf_counter()

    def run(self) -> float:
        """Run the job, and tell what is wrong; return its log loss, NaN if it has none.

        Jobs of a sweep are drawn and logged beside the next one.
        """
        publish = self._told(self._evaluate)
        if publish is None:
            return self.loss
        if self.is_single or multiprocessing.parent_process() is not None:  # of joblib
            self._told(publish)
        else:
            later = _beside.submit(self._told, publish)
            published()
            _publishing.append(later)
        return self.loss

    def _told(self, part: Callable[[], Any]) -> Any:
        """Do a part of the job, note how it ended, and tell what is wrong."""
        left = None
        try:
            with claimed(self.folder, self.cfg.shard):
                left = part()
        except (KeyboardInterrupt, SystemExit):
            self.status = "interrupted"
            hydra = self.hydra
            mine = f"run.dir={self.folder}" if self.is_single else f"sweep.dir={hydra.sweep.dir}"
            complain(f"interrupted; the same command with hydra.{mine} goes on")
            self._write()
            raise
        except Pruned:
            self.status = "pruned"
        except Exception as error:  # noqa: BLE001 - the other jobs of a sweep go on
            is_clear = isinstance(error, SrsEvalError | OSError)
            self.status = "failed"
            self.message = str(error) if is_clear else f"{type(error).__name__}: {error}"
            if isinstance(error, TrackingError) and is_run(self.folder):
                again = "repeat the command there to send them"
                self.message += f"\n  results are in {self.folder}: {again}"
            text = self.message if is_clear else traceback.format_exc()
            is_known = not self.is_single and text in _complaints
            complain(f"{self.folder.name}: the same" if is_known else text)
            _complaints.add(text)
        self._write()
        return left

    def _evaluate(self) -> Callable[[], None] | None:
        """Evaluate and save; return what draws and logs the run, None if nothing is left to do."""
        words = self.hydra.overrides.task
        setup = build(self.cfg, dict(self.hydra.runtime.choices), arguments_of(words))
        setup = replace(setup, words=words)
        if not self.is_single and isinstance(setup.compute, Serial):
            # a fit that ends its process must not end the jobs beside it
            setup = replace(setup, compute=Processes(1))
        self.label, self.stamp = setup.label, setup.stamp
        run = self._finished(setup)
        if run is None and setup.content["check_lookahead"]:
            refuse_lookahead(setup)
        if shard := setup.content["shard"]:
            if run is None:
                evaluation = evaluate(setup, self.folder, bar=_BAR, begin=_begin)
                say(f"shard {shard}: {len(evaluation.users):,} users are done in {self.folder}")
                say(evaluation.summary.exceptions or "no fit failed")
                say("the same command without shard= adds up all shards")
                self.status = "failed" if evaluation.summary.failed else "ok"
            return None
        file = self.folder / JOB
        before = json.loads(file.read_bytes()) if file.is_file() else {}
        if before.get("stamp") == self.stamp:
            self.run_id = before["run_id"]
        if run is not None:  # what a kill has left of its removal
            Checkpoint(self.folder, setup.stamp).remove()
        if run is not None and setup.tracking.has(self.run_id):
            say(f"{setup.label} was finished before, and nothing is fitted: {self.folder}")
            self._ended(run)
            return None
        with ExitStack() as stack:
            try:
                begun = setup.tracking.run(setup, self.folder, self.run_id)
                tracked = stack.enter_context(begun)
            except TrackingError:
                if run is None:  # what can be sent later is evaluated now
                    self._evaluated(setup)
                raise
            self.run_id = tracked.run_id if tracked else None
            self._write()
            run = run or self._evaluated(setup)
            publish = partial(self._publish, setup, run, tracked, stack.pop_all())
        if not self.is_single:
            say(report.line(run, time.perf_counter() - self.began))
            for advice in report.advice(run, setup) if self.hydra.job.num == 0 else ():
                say(advice)
        self._ended(run)
        return publish

    def _publish(
        self, setup: Setup, run: Run, tracked: Tracked | None, tracking: ExitStack
    ) -> None:
        """Draw the figures, log all to MLflow, and print what a single run prints."""
        with tracking:
            figures = report.drawn(run, setup)
            text = report.run_text(run, setup.panel, time.perf_counter() - self.began)
            if tracked:
                tracked.log(run, text, figures)
        if self.is_single:
            where = [f"results  {run.folder}", *([tracked.store.link()] if tracked else [])]
            say("\n".join([*report.advice(run, setup), text, *where]))
        self._ended(run)

    def _evaluated(self, setup: Setup) -> Run:
        """Evaluate all users, and write the results; a search can end its trials early."""
        options: dict[str, Any] = {"bar": _BAR, "begin": _begin}
        if not self.is_single and self.hydra.sweeper.get("pruner"):
            from srs_eval.runs.search import Watch  # with Optuna, which other jobs do without

            options["watch"] = Watch(self.hydra, checked_users(setup.source), setup.panel.names)
        evaluation = evaluate(setup, self.folder, **options)
        run = save(evaluation, self.folder)
        evaluation.checkpoint.remove()
        return run

    def _finished(self, setup: Setup) -> Run | None:
        """Return the run in the folder if it has the same settings, code and logs."""
        run = Run.read(self.folder) if is_run(self.folder) else None
        digests = ("config_hash", "code_hash")
        if run is None or any(run.facts.tags.get(name) != setup.tags[name] for name in digests):
            return None
        return run if run.facts.data_fingerprint == data_fingerprint(setup.source) else None

    def _ended(self, run: Run) -> None:
        """Note how the job ended."""
        facts = run.facts
        self.status = "failed" if facts.failed else "ok" if facts.users else "skipped"
        if facts.coverage.left_out and self.status != "ok":
            self.message = facts.coverage.left_out[0].reason
        if "log_loss" in facts.metrics:
            self.loss = facts.metrics["log_loss"].mean_users

    def _write(self) -> None:
        """Write the file if there is room; shards, which share a folder, have none."""
        if self.cfg.shard is None and self.folder.is_dir():
            names = ("status", "label", "message", "stamp", "run_id")
            content = {name: getattr(self, name) for name in names}
            content["sweep"] = None if self.is_single else self.hydra.sweep.dir
            content["seconds"] = time.perf_counter() - self.began
            with suppress(OSError):
                write_json(self.folder / JOB, content)


def _begin(todo: int, users: int) -> None:
    """Say how many users an interrupted run or its shards have left to do."""
    if todo < users:
        tqdm.write(f"evaluates {todo:,} of {users:,} users: the others were done before")


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


class Jobs(Callback):
    """Refuse passwords and folders in use; compare the jobs of a sweep at its end.

    Hydra turns exceptions of callbacks into warnings, so these end the command themselves.
    """

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse the command before Hydra writes its configuration into the folder."""
        HydraConfig.instance().set_config(config)
        with _ending():
            _refuse_secrets(config)
            folder = Path(config.hydra.run.dir)
            claims.enter_context(claimed(folder, config.shard))
            if (folder.parent / _FILE).is_file():  # it is of a job of a sweep
                claims.enter_context(claimed(folder.parent))
            if config.shard is not None:
                _refuse_other_settings(config, folder)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse the command, or begin the run that those of the jobs are nested in."""
        HydraConfig.instance().set_config(config)
        with _ending():
            _refuse_secrets(config)
            _complaints.clear()
            begin_loading()
            folder = Path(config.hydra.sweep.dir)
            claims.enter_context(claimed(folder))
            file = folder / _FILE
            new = {"sweep_id": uuid.uuid4().hex[:12], "parent": None}
            sweep: Any = json.loads(file.read_bytes()) if file.is_file() else new
            tracking = option("tracking", resolved(config.tracking))
            sweep["parent"] = tracking.parent(folder.name, sweep["sweep_id"], sweep["parent"])
            write_json(file, sweep)
            if sweep["parent"]:
                os.environ[PARENT] = sweep["parent"]

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Compare the jobs that have finished, and exit with 1 if anything has failed."""
        with _ending():
            sys.exit(int(_compared(config)))


def _refuse_secrets(config: DictConfig) -> None:
    """Raise `ConfigError` if an option holds a password: Hydra and MLflow would save it."""
    content: Any = OmegaConf.to_container(config, resolve=False)
    overrides = content.pop("hydra", {}).get("overrides", {}).values()
    typed = [word.lstrip("+").partition("=")[::2] for words in overrides for word in words]
    keys = sorted({key for key, value in [*dotted(content), *typed] if has_secret(str(value))})
    if keys:
        raise ConfigError(
            f"{', '.join(keys)}: the address has a password, which would be saved; leave it to "
            "the environment (MLFLOW_TRACKING_URI, PGPASSWORD, ~/.pgpass)"
        )


def _refuse_other_settings(config: DictConfig, folder: Path) -> None:
    """Raise `ConfigError` if a folder has shards of a run with other settings."""
    saved = folder / ".hydra" / "config.yaml"
    if not ((folder / "checkpoint").is_dir() and saved.is_file()):
        return
    before: Any = OmegaConf.load(saved)
    different = [key for key in NUMBERS if before.get(key) != config.get(key)]
    if different:
        raise ConfigError(
            f"{folder} has shards of a run with other settings of {', '.join(different)}; choose "
            "another hydra.run.dir"
        )


def _compared(config: DictConfig) -> bool:
    """Compare the jobs of a sweep; return whether anything has failed."""
    from srs_eval.comparison.compare import compare_jobs  # not for one run

    published()
    folder = Path(config.hydra.sweep.dir)
    files = sorted(folder.glob(f"*/{JOB}"), key=lambda file: job_number(file.parent))
    jobs = {file.parent: json.loads(file.read_bytes()) for file in files}
    jobs = {job: told for job, told in jobs.items() if told.get("sweep") == config.hydra.sweep.dir}
    has_failed = not jobs or any(told["status"] not in _WELL for told in jobs.values())
    command = shlex.join(["srs_eval", *sys.argv[1:]])
    reports = compare_jobs([*filter(is_run, jobs)], folder, command=command)
    for each in reports:
        say(f"\n{each.problem or each.standings}")
        has_failed |= bool(each.problem)
    best = ""
    if (folder / BEST).is_file():  # of a search
        one: Any = OmegaConf.to_container(OmegaConf.load(folder / BEST))
        value = f"{one['metric']} {one['best_evaluated_value']:.4f}"
        best = f"best     trial {one['trial']}: validation {value}\nuse it   {one['command']}"
        say(f"\n{best}")
    pages = [f"report   {each.files[-1]}" for each in reports if each.files]
    say("\n" + "\n".join(pages or [f"results  {folder}"]))
    if parent := os.environ.get(PARENT):
        runs = {job: told["run_id"] for job, told in jobs.items()}
        pictures = sorted(folder.glob("optimization_*.png"))
        link = option("tracking", resolved(config.tracking)).log_comparison(
            reports, folder, parent, best=best, pictures=pictures, jobs=runs
        )
        say(link)
    return has_failed


@contextmanager
def _ending() -> Iterator[None]:
    """End the command with a message where a callback fails."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - Hydra would go on with a warning
        is_clear = isinstance(error, SrsEvalError | OSError)
        complain(str(error) if is_clear else traceback.format_exc())
        sys.exit(1)
