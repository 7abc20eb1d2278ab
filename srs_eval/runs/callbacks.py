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
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.runs.claim import claimed
from srs_eval.runs.console import complain, say
from srs_eval.runs.secrets import refuse_secrets
from srs_eval.runs.settings import NUMBERS, PARENT, SWEEP

_FILE = "sweep.json"
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
            if "n_trials" in config.hydra.sweeper:
                _refuse_test_rows(config)
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
    jobs = [(file.parent, told) for file in files if (told := _read(file))]
    jobs = [(job, told) for job, told in jobs if told.get("sweep_id") == os.environ[SWEEP]]
    has_failed = not jobs or any(told["status"] not in _WELL for _, told in jobs)
    finished = [job for job, _ in jobs if is_run(job)]
    standings = compare_jobs(finished, folder, report=config.report, command="srs_eval -m")
    for each in standings:
        say(f"\n{each.text or each.problem}")
        has_failed |= each.failed
    tracking, parent = _tracking(config), os.environ.get(PARENT)
    say(f"\nresults  {folder}")
    if parent:
        for link in tracking.log_comparison(standings, folder, parent):
            say(link)
    return has_failed


_WELL = ("ok", "skipped", "pruned")


def _refuse_test_rows(config: DictConfig) -> None:
    """Raise `ConfigError` if a search would choose by the rows that it is not to have seen."""
    from srs_eval.runs.config import option

    content: Any = OmegaConf.to_container(config.protocol, resolve=True)
    content.pop("user_folds", None)
    if not getattr(option("protocol", content), "is_validation", False):
        raise ConfigError(
            f"protocol={config.hydra.runtime.choices.protocol} scores test rows, and a search "
            "chooses by what it scores: protocol=validation has rows before them"
        )


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
