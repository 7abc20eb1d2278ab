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
from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.places import has_secret
from srs_eval.runs.claim import claimed
from srs_eval.runs.config import option, resolved
from srs_eval.runs.console import complain, say
from srs_eval.runs.folder import JOB, is_run, job_number, write_json
from srs_eval.runs.settings import NUMBERS, PARENT
from srs_eval.runs.words import dotted

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
            folder = Path(config.hydra.sweep.dir)
            claims.enter_context(claimed(folder))
            file = folder / _FILE
            sweep: dict[str, Any] = {"sweep_id": uuid.uuid4().hex[:12], "parent": None}
            if file.is_file():
                sweep = json.loads(file.read_bytes())
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
    from srs_eval.comparison.sweep import compare_jobs  # not for one run
    from srs_eval.runs.job import published

    published()
    folder = Path(config.hydra.sweep.dir)
    files = sorted(folder.glob(f"*/{JOB}"), key=lambda file: job_number(file.parent))
    jobs = {file.parent: json.loads(file.read_bytes()) for file in files}
    jobs = {job: told for job, told in jobs.items() if told.get("sweep") == config.hydra.sweep.dir}
    has_failed = not jobs or any(told["status"] not in _WELL for told in jobs.values())
    finished = [job for job in jobs if is_run(job)]
    reports = compare_jobs(finished, folder, command="srs_eval -m")
    for each in reports:
        say(f"\n{each.text or each.problem}")
        has_failed |= bool(each.problem)
    best = _best(folder)
    if best:
        say(f"\n{best}")
    pages = [str(each.page) for each in reports if each.page] or [str(folder)]
    say("\n" + "\n".join(f"report   {page}" for page in pages))
    if parent := os.environ.get(PARENT):
        percents = {job: percent for each in reports for job, percent in each.against.items()}
        ids = {job: told["run_id"] for job, told in jobs.items() if told["run_id"]}
        against = {ids[job]: percent for job, percent in percents.items() if job in ids}
        pictures = sorted(folder.glob("optimization_*.png"))
        link = option("tracking", resolved(config.tracking)).log_comparison(
            reports, folder, parent, best=best, pictures=pictures, against=against
        )
        say(link)
    return has_failed


def _best(folder: Path) -> str:
    """Return what to say of the best trial of a search; nothing of a sweep that is none."""
    if not (folder / BEST).is_file():
        return ""
    best: Any = OmegaConf.to_container(OmegaConf.load(folder / BEST))
    value = f"{best['metric']} {best['best_evaluated_value']:.4f}"
    return f"best     trial {best['trial']}: validation {value}\nuse it   {best['command']}"


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
