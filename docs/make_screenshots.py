"""Make pictures of what the MLflow UI shows of an experiment, and of a comparison's report.

    python docs/make_screenshots.py sqlite:///mlflow.db srs_eval pictures [verdict/report.html]

starts the UI on a free port, opens its pages in a headless Chromium, writes the pictures of
docs/mlflow.md into the folder, and ends both programs. Needs a Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from srs_eval.runs.mlflow_store import view_link

REPORT = "compare_report"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Chromium reads commands from its descriptor 3 and answers on 4.
LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# What a visitor has clicked away: the assistant's panel, and the tool bars of the charts.
TIDY = """
localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true');
localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false');
document.addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = '.modebar-container { display: none }';
  document.head.append(style);
});
"""


class Browser:
    """A headless Chromium, spoken to through a pipe in the DevTools protocol."""

    def __init__(self, *, width: int = 1400, height: int = 900) -> None:
        program = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
        if program is None:
            raise SystemExit(f"None of {', '.join(CHROMIUM_NAMES)} is on the PATH.")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_end, self._write = os.pipe()
        self._read, answer_end = os.pipe()
        # Away from 3 and 4, which the launcher overwrites.
        command_end, answer_end = _moved_up(command_end), _moved_up(answer_end)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCHER, str(command_end), str(answer_end), program),
                *CHROMIUM_OPTIONS,
                f"--user-data-dir={self._profile.name}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            pass_fds=(command_end, answer_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_end)
        os.close(answer_end)
        self._buffer = b""
        self._number = 0
        self._page: str | None = None
        target = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._page = attached["sessionId"]
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=TIDY)
        page = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **page)

    def __enter__(self) -> Self:
        """Return the connection to the browser."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the browser and remove its profile."""
        self._page = None
        self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Send one command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._page is not None:
            message["sessionId"] = self._page
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, expression: str) -> Any:
        """Evaluate JavaScript in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)[
            "result"
        ].get("value")

    def open(self, url: str, *texts: str, seconds: float = 40) -> None:
        """Open a page and wait until it shows each of `texts` and has come to rest."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait_for(*texts, seconds=seconds)

    def wait_for(self, *texts: str, seconds: float = 40) -> None:
        """Wait until the page shows each of `texts`, then a moment for its pictures."""
        end = time.monotonic() + seconds
        missing = list(texts)
        while missing:
            if time.monotonic() > end:
                raise SystemExit(f"The page does not show {missing} after {seconds:.0f} s.")
            time.sleep(0.3)
            shown = self.evaluate("document.body ? document.body.innerText : ''") or ""
            missing = [text for text in missing if text not in shown]
        time.sleep(3)

    def scroll_to_section(self, name: str) -> None:
        """Scroll the charts to a section, and give its pictures a moment to load."""
        self.evaluate(
            "[...document.querySelectorAll('div')].find(e => !e.children.length"
            f" && e.textContent == '{name}' && /^{name}\\(/.test(e.parentElement.textContent)"
            ")?.scrollIntoView()"
        )
        time.sleep(4)

    def picture(self, path: Path) -> None:
        """Write a PNG of the window."""
        picture = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(picture["data"]))

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended.")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


def _moved_up(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved


@contextmanager
def mlflow_ui(uri: str, *, seconds: float = 180) -> Iterator[str]:
    """Run the MLflow UI over a store on a free port; give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "mlflow", "ui", "--workers", "1"),
            *("--backend-store-uri", uri, "--port", str(port)),
        ],
        env={**os.environ, **quiet},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + seconds
        while not _answers(address):
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"The MLflow UI did not start over {uri}.")
            time.sleep(0.3)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)


def take_pictures(uri: str, experiment: str, folder: Path) -> None:
    """Write the pictures of one experiment into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with mlflow_ui(uri) as address, Browser() as browser:
        experiment_id, runs = _runs_by_log_loss(address, experiment)
        _of_experiment(browser, address, experiment_id, runs, folder)


def take_picture_of_report(report: Path, folder: Path) -> None:
    """Write a picture of the beginning of a report into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        browser.open(report.resolve().as_uri(), "to best")
        browser.picture(folder / f"{REPORT}.png")


def _of_experiment(
    browser: Browser, address: str, experiment_id: str, runs: list[dict[str, Any]], folder: Path
) -> None:
    """Save screenshots of many runs: a list, and charts."""
    names = [run["info"]["run_name"] for run in runs]
    for file, mode in (("mlflow_run_list", "TABLE"), ("mlflow_charts", "CHART")):
        browser.open(f"{address}/{view_link(experiment_id, mode=mode)}", *names[:3])
        browser.picture(folder / f"{file}.png")
    browser.scroll_to_section("figures")
    browser.picture(folder / "mlflow_figures.png")


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _runs_by_log_loss(address: str, experiment: str) -> tuple[str, list[dict[str, Any]]]:
    found = _api(address, "experiments/get-by-name", experiment_name=experiment)
    experiment_id = found["experiment"]["experiment_id"]
    body = json.dumps(
        {"experiment_ids": [experiment_id], "order_by": ["metrics.`test/log_loss` ASC"]}
    )
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{address}/api/2.0/mlflow/runs/search", body.encode(), headers
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        runs = json.load(answer).get("runs", [])
    scored = [run for run in runs if run["data"].get("metrics")]  # Not those of sweeps
    if not scored:
        raise SystemExit(f"The experiment {experiment} has no runs.")
    return experiment_id, scored


def _api(address: str, path: str, **query: str) -> dict[str, Any]:
    url = f"{address}/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}: {error}") from error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make pictures of the MLflow UI.")
    parser.add_argument("uri", help="tracking URI, such as sqlite:///mlflow.db")
    parser.add_argument("experiment", help="name of the experiment")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("report", type=Path, nargs="?", help="report.html of a comparison")
    arguments = parser.parse_args()
    take_pictures(arguments.uri, arguments.experiment, arguments.folder)
    if arguments.report is not None:
        take_picture_of_report(arguments.report, arguments.folder)
