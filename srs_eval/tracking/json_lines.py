"""The tracker that writes all items to one file, as JSON lines."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.text.local_paths import uri_problem
from srs_eval.text.plain import json_values
from srs_eval.tracking.items import Item
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks

_ENDING = ".jsonl"


class JsonLines:
    """Keep a run as lines of JSON in its output folder.

    The first line says ``{"item": "RunInfo", "name": …, "tags": {…}, "time": …}``, each further
    one what was logged, such as ``{"item": "Value", "name": "test/log_loss", "value": 0.32}``,
    and the last ``{"item": "RunEnd", "status": …}``. A line is written at once or not at all, so
    that what a killed run has left can be read; a resumed run goes on in the same file, after a
    further first line. Numbers that JSON does not have are null.

    Parameters
    ----------
    file : str
        Name of the file in the run's folder, which ends in ``.jsonl``.

    Raises
    ------
    ConfigError
        If the file is elsewhere, or has another ending: it may hold text of any option file.
    """

    def __init__(self, *, file: str = "items.jsonl") -> None:
        if uri_problem(file):
            raise ConfigError(f"tracking.file={file}: {uri_problem(file)}")
        if Path(file).name != file or not file.endswith(_ENDING):
            raise ConfigError(f"tracking.file={file}: expected a name, such as items{_ENDING}")
        self.file = file
        self._path: Path | None = None

    def start(self, run: RunInfo) -> None:
        self._path = (run.folder or Path()) / self.file
        first = {"item": "RunInfo", "time": time.time(), **_content(run)}
        self._write([first], mode="ab" if run.resumes else "wb")

    def log(self, items: Iterable[Item]) -> None:
        self._write({"item": type(item).__name__, **_content(item)} for item in items)

    def finish(self, status: RunEnd) -> RunLinks:
        self._write([{"item": "RunEnd", "status": status, "time": time.time()}])
        return RunLinks(run_id=str(self._path))

    def _write(
        self, lines: Iterable[Mapping[str, object]], mode: Literal["ab", "wb"] = "ab"
    ) -> None:
        if self._path is None:
            raise RuntimeError("start() a run before log() and finish()")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode, buffering=0) as file:
                for line in lines:
                    file.write((json.dumps(line, allow_nan=False) + "\n").encode())
        except OSError as error:
            raise TrackingError(f"cannot write {self._path}: {error.strerror}") from error


def _content(value: Any) -> dict[str, object]:
    return {
        field.name: json_values(getattr(value, field.name)) for field in dataclasses.fields(value)
    }
