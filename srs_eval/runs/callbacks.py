"""What happens around jobs: refusals before anything is written, and the end of a sweep."""

from __future__ import annotations

import json
import os
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.runs.claim import claimed
from srs_eval.runs.console import complain, say
from srs_eval.runs.secrets import refuse_secrets
from srs_eval.runs.settings import NUMBERS, PARENT, SWEEP

_FILE = "sweep.json"
BEST = "optimization_results.yaml"  # Of a search
_WELL = ("ok", "skipped", "pruned")
claims = ExitStack()  # Until the command ends


class Jobs(Callback):
    """Refuse passwords and folders in use; compare the jobs of a sweep at its end.

    Hydra turns exceptions of callbacks into warnings, so these end the command themselves.
    """

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse the command before Hydra writes its configuration into the folder."""
        HydraConfig.instance().set_config(config)
        with _ending():
            refuse_secrets(config)
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
            refuse_secrets(config)
            protocol = get_object(config.protocol._target_)
            if "n_trials" in config.hydra.sweeper and not getattr(protocol, "is_validation", False):
                raise ConfigError(
                    f"protocol={config.hydra.runtime.choices.protocol} scores test rows, and a "
                    "search chooses by what it scores: protocol=validation has rows before them"
                )
            folder = Path(config.hydra.sweep.dir)
            claims.enter_context(claimed(folder))
            sweep = _read(folder / _FILE) or {"sweep_id": uuid.uuid4().hex[:12], "parent": None}
            tracking = _tracking(config)
            sweep["parent"] = tracking.parent(folder.name, sweep["sweep_id"], sweep["parent"])
            (folder / _FILE).write_text(json.dumps(sweep), encoding="utf-8")
            os.environ[SWEEP] = sweep["sweep_id"]
            if sweep["parent"]:
                os.environ[PARENT] = sweep["parent"]

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Compare the jobs that have finished, and exit with 1 if anything has failed."""
        with _ending():
            sys.exit(int(_compared(config)))


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
    from srs_eval.comparison.sweep import compare_jobs
    from srs_eval.runs.folder import JOB, is_run, job_number

    folder = Path(config.hydra.sweep.dir)
    files = sorted(folder.glob(f"*/{JOB}"), key=lambda file: job_number(file.parent))
    jobs = {file.parent: _read(file) for file in files}
    jobs = {job: told for job, told in jobs.items() if told.get("sweep_id") == os.environ[SWEEP]}
    has_failed = not jobs or any(told["status"] not in _WELL for told in jobs.values())
    finished = [job for job in jobs if is_run(job)]
    standings = compare_jobs(finished, folder, report=config.report, command="srs_eval -m")
    for each in standings:
        say(f"\n{each.text or each.problem}")
        has_failed |= each.failed
    best = _best(folder)
    tracking, parent = _tracking(config), os.environ.get(PARENT)
    say(f"\nresults  {folder}")
    if parent:
        percents = {job: percent for each in standings for job, percent in each.against.items()}
        ids = {job: told["run_id"] for job, told in jobs.items() if told["run_id"]}
        against = {ids[job]: percent for job, percent in percents.items() if job in ids}
        pictures = sorted(folder.glob("optimization_*.png"))
        links = tracking.log_comparison(
            standings, folder, parent, best=best, pictures=pictures, against=against
        )
        say("\n".join(links))
    if best:
        say(f"\n{best}")
    return has_failed


def _best(folder: Path) -> str:
    """Return what to say of the best trial of a search; nothing of a sweep that is none."""
    if not (folder / BEST).is_file():
        return ""
    best: Any = OmegaConf.to_container(OmegaConf.load(folder / BEST))
    value = f"{best['metric']} {best['best_evaluated_value']:.4f}"
    return f"best     trial {best['trial']}: validation {value}\nuse it   {best['command']}"


def _tracking(config: DictConfig) -> Any:
    options: Any = OmegaConf.to_container(config.tracking, resolve=True)
    return instantiate(options, _convert_="all")


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content


@contextmanager
def _ending() -> Iterator[None]:
    """End the command with a message where a callback fails."""
    try:
        yield
    except (SrsEvalError, OSError) as error:
        complain(str(error))
        sys.exit(1)
    except Exception:  # noqa: BLE001 - Hydra would go on with a warning
        complain(traceback.format_exc())
        sys.exit(1)
