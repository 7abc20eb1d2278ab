"""One job: from the configuration to a saved and tracked run."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from tqdm import tqdm

from srs_eval.errors import Pruned, SrsEvalError
from srs_eval.runs.claim import claimed
from srs_eval.runs.config import Setup, build, conf_folder

SWEEP = "SRS_EVAL_SWEEP"  # Environment: digest that the jobs of a sweep share

# Evaluation, files and tracking are imported by a job, and not by --help.

_LONGEST_VALUE = 60


@dataclass
class Record:
    """How a job goes on, in ``job.json`` of its folder."""

    folder: Path
    status: str = "running"  # Then ``ok``, ``failed``, ``skipped``, ``pruned`` or ``interrupted``
    label: str = ""
    message: str = ""
    stamp: str = ""
    run_id: str | None = None  # In MLflow
    sweep_id: str | None = None
    began: float = field(default_factory=time.perf_counter)

    def write(self) -> None:
        """Write the file; a folder that cannot be written to has stopped the job before."""
        from srs_eval.runs.folder import JOB, write_json

        names = ("status", "label", "message", "stamp", "run_id", "sweep_id")
        content = {name: getattr(self, name) for name in names}
        content["seconds"] = time.perf_counter() - self.began
        write_json(self.folder / JOB, content)


def main() -> None:
    """Run the command and exit: 0 if every fit succeeded or was skipped, else 1."""
    try:
        job()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


@hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name="config")
def job(cfg: DictConfig) -> float:
    """Run one job; return its log loss, for searches, and NaN if it has none."""
    from srs_eval.runs.compute import end_with_launcher
    from srs_eval.runs.report import complain

    end_with_launcher()
    info = HydraConfig.get()
    is_single = info.mode == RunMode.RUN
    record = Record(Path(info.runtime.output_dir), sweep_id=os.environ.get(SWEEP))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    loss = math.nan
    try:
        with claimed(record.folder, cfg.shard):
            words = info.overrides.task
            setup = build(cfg, dict(info.runtime.choices), arguments_of(words))
            loss = _run(setup, record, words, is_single=is_single)
    except (KeyboardInterrupt, SystemExit):
        record.status = "interrupted"
        complain(f"interrupted; the same command with hydra.run.dir={record.folder} goes on")
        record.write()
        raise
    except Pruned:
        record.status = "pruned"
    except SrsEvalError as error:
        record.status, record.message = "failed", str(error)
        complain(str(error))
    except OSError as error:
        record.status, record.message = "failed", f"{type(error).__name__}: {error}"
        complain(record.message)
    except Exception as error:  # noqa: BLE001 - the other jobs of a sweep go on
        record.status, record.message = "failed", f"{type(error).__name__}: {error}"
        complain(traceback.format_exc())
    if cfg.shard is None and record.folder.is_dir():
        record.write()
    if is_single and record.status == "failed":
        sys.exit(1)
    return loss


def arguments_of(words: Sequence[str]) -> list[str]:
    """Return the arguments of the algorithm in the words of a command: ``algo.fit=default``.

    >>> arguments_of(["algo=per_group", "algo@algo.base=hlr", "algo.group=deck", "seed=1"])
    ['base=hlr', 'group=deck']
    """
    plain = [word.lstrip("+").removeprefix("algo@") for word in words]
    typed = [word.removeprefix("algo.") for word in plain if word.startswith("algo.")]
    return [word[:_LONGEST_VALUE] + "…" * (len(word) > _LONGEST_VALUE) for word in typed]


def _run(setup: Setup, record: Record, words: Sequence[str], *, is_single: bool) -> float:
    """Evaluate, save, draw and log; return the log loss."""
    from srs_eval.runs import report
    from srs_eval.runs.checkpoint import Checkpoint
    from srs_eval.runs.compute import Processes, Serial
    from srs_eval.runs.evaluation import checked_users, evaluate, refuse_lookahead

    folder, content = record.folder, setup.content
    if not is_single and isinstance(setup.compute, Serial):
        # a fit that ends its process must not end the jobs beside it
        setup = replace(setup, compute=Processes(1))
    record.label, record.stamp = setup.label, setup.stamp
    checkpoint = Checkpoint(folder, setup.stamp)
    run = _finished(setup, folder)
    if run is None and content["check_lookahead"]:
        refuse_lookahead(setup)
    bar = partial(tqdm, desc=setup.label, unit="fit", leave=False, disable=None)
    if content["shard"] is not None:
        if run is None:
            shard = evaluate(setup, folder, bar=bar)
            report.say(report.shard_text(content["shard"], shard, folder))
            record.status = "failed" if shard.summary.failed else "ok"
        return math.nan
    record.run_id = _run_id(folder, setup.stamp)
    if run is not None and (record.run_id is None or setup.tracking.has(record.run_id)):
        checkpoint.remove()  # what a kill has left of its removal
        report.say(f"{setup.label} was finished before, and nothing is fitted: {folder}")
        return _ended(record, run)
    if run is None:
        report.announce(setup, checkpoint, checked_users(setup.source))
    with setup.tracking.run(setup, folder, record.run_id) as tracked:
        record.run_id = tracked.run_id if tracked else None
        record.write()
        if run is None:
            run = _evaluated(setup, folder, bar)
        with _drawn(setup, run, aside=tracked is not None and not is_single) as figures:
            against = _against(setup, run, record)
            text = report.run_text(run, setup.panel, time.perf_counter() - record.began)
            if tracked:
                tracked.log(run, text, figures, against)
    checkpoint.remove()
    if is_single:
        links = tracked.links if tracked else []
        report.say("\n".join([text, *report.where(run, links, words, setup)]))
    else:
        report.say(report.line(run, time.perf_counter() - record.began))
    return _ended(record, run)


def _evaluated(setup: Setup, folder: Path, bar: Any) -> Any:
    from srs_eval.runs.evaluation import evaluate
    from srs_eval.runs.folder import save
    from srs_eval.runs.report import say

    evaluation = evaluate(setup, folder, bar=bar)
    if evaluation.was_done:
        say(f"{evaluation.was_done:,} of {len(evaluation.users):,} users were done before")
    return save(evaluation, folder)


def _finished(setup: Setup, folder: Path) -> Any:
    """Return the run in a folder if it has the same settings, code and logs; else None."""
    from srs_eval.runs.evaluation import data_fingerprint
    from srs_eval.runs.folder import Run, is_run

    if not is_run(folder):
        return None
    run = Run.read(folder)
    same = all(run.facts.tags.get(k) == setup.tags[k] for k in ("config_hash", "code_hash"))
    is_same = same and run.facts.data_fingerprint == data_fingerprint(setup.source)
    return run if is_same else None


def _run_id(folder: Path, stamp: str) -> str | None:
    """Return the id in MLflow of the run that an interrupted command has begun in a folder."""
    from srs_eval.runs.folder import JOB

    try:
        content: dict[str, Any] = json.loads((folder / JOB).read_bytes())
    except (OSError, ValueError):
        return None
    return content.get("run_id") if content.get("stamp") == stamp else None


def _drawn(setup: Setup, run: Any, *, aside: bool) -> Any:
    """Return a context that draws the figures, in processes beside this one where that is faster.

    The files are there when the context has been left; `aside` says whether something else is done
    in it.
    """
    from srs_eval.runs.drawing import drawn

    return drawn(run, setup.panel, setup.source.name, on=setup.content["figures"], aside=aside)


def _against(setup: Setup, run: Any, record: Record) -> dict[str, float]:
    """Compare with the baseline, in percent."""
    if setup.content["baseline"] is None:
        return {}
    from srs_eval.comparison.baseline import in_percent
    from srs_eval.runs.folder import Run

    other = in_percent(run, Run.read(Path(setup.content["baseline"])))
    return {percent.metric: percent.difference for percent in other.percents}


def _ended(record: Record, run: Any) -> float:
    facts = run.facts
    record.status = "failed" if facts.failed else "ok" if facts.users else "skipped"
    if facts.coverage.left_out and record.status != "ok":
        record.message = facts.coverage.left_out[0].reason
    loss = facts.metrics.get("log_loss")
    return math.nan if loss is None else float(loss.mean_users)
