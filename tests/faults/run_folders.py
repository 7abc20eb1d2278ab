"""Folders of finished runs and files of weights, changed, then compared, exported and loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import command_lines
from logs import damaged
from verdicts import LONGEST_MESSAGE, Verdict, first_problem, right

from srs_eval.commands import compare, export, pretrain, run

_RUN = ("data.users=2", "data.size_scale=0.02", "panel=quick", "figures=false", "tracking=none")
_WEIGHTS = "lstm.safetensors"
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 1e308, "x", "=1+1", [], {}, [[]]),
    "\x1b]0;x\x07\r\\input{/etc/passwd}",
)
_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run.command,
    "compare": compare.command,
    "export": export.command,
    "pretrain": pretrain.command,
}


def prepare(folder: Path) -> None:
    """Make what is changed later, which takes longer than a case may."""
    for algo in ("hlr", "fsrs6"):
        _finished(folder, algo)
    _pretrained(folder)


def run_folder(random: Random, folder: Path) -> Verdict:
    """Change a file of a finished run, and compare or export."""
    made = _finished(folder.parent, "hlr")
    shutil.copytree(made, folder / "a")
    shutil.copytree(_finished(folder.parent, "fsrs6"), folder / "b")
    changed = folder / random.choice(("a", "b"))
    names = ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet")
    name = random.choice((*names, ".hydra/config.yaml"))
    _change(random, changed / name)
    words = {
        "compare": [str(folder / "a"), str(folder / "b"), f"out={folder / 'out'}", "tracking=none"],
        "export": [str(changed), f"to={random.choice(('anki', 'json', 'py_fsrs'))}", "user=1"],
    }
    command = random.choice(list(words))
    return judged_command(command, words[command])


def weights(random: Random, folder: Path) -> Verdict:
    """Change a file of weights or its card, and fit from it."""
    made = _pretrained(folder.parent)
    for file in made.iterdir():
        shutil.copy(file, folder / file.name)
    changed = random.choice(sorted(folder.iterdir()))
    _change(random, changed)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    words = ["algo=lstm", f"algo.weights={folder / _WEIGHTS}", "data.users=1", "data.seed=1"]
    words += ["algo.steps=2", *_RUN[1:], f"hydra.run.dir={folder / 'out'}"]
    verdict = judged_command("run", words)
    if any((folder / name).read_bytes() != content for name, content in before.items()):
        return Verdict("wrong", "the weights were changed")
    return verdict


def command_line(random: Random, folder: Path) -> Verdict:
    """Run a command line made of odd words, of which few fit together."""
    command_lines.prepare(folder)
    ended = command_lines.attempt(command_lines.command_line(random))
    shown = " ".join(ended.words)
    if ended.kind not in ("accepted", "clear error", "recorded"):
        return Verdict(ended.kind, first_problem([shown, ended.text[-400:]]))
    problems = ["code of an option ran"] if (folder / "PWNED").exists() else []
    # Words may be repeated, once: people know what they wrote.
    if ended.kind == "clear error" and len(ended.text) > LONGEST_MESSAGE + len(shown):
        problems.append(f"a message of {len(ended.text):,} characters")
    return right(problems and [shown, *problems], ended.kind)


def judged_command(name: str, words: Sequence[str]) -> Verdict:
    """Run a command here and judge what it says."""
    status, text = _run_here(name, words)
    shown = " ".join([name, *words])
    if "Traceback (most recent call last)" in text or status not in (0, 1, 2):
        return Verdict("traceback", first_problem([shown, f"exit {status}", text[-400:]]))
    if status == 0:
        return Verdict("accepted")
    problems = [] if text.strip() else ["no message"]
    if len(text) > LONGEST_MESSAGE:
        problems.append(f"a message of {len(text):,} characters")
    if any(control in text for control in ("\x1b]", "\r")):
        problems.append("control characters of a file were printed")
    # Of a run that began, each fit's failure is on record.
    outcome = "recorded" if "Rests on " in text else "clear error"
    return right(problems and [shown, *problems], outcome)


def _run_here(name: str, words: Sequence[str]) -> tuple[object, str]:
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            status: object = _COMMANDS[name](list(words))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    return status, said.getvalue()


def _finished(folder: Path, algo: str) -> Path:
    """Make a run, once."""
    place = folder / f"finished_{algo}"
    if not (place / "summary.json").is_file():
        _done("run", [f"algo={algo}", *_RUN, f"hydra.run.dir={place}"])
    return place


def _pretrained(folder: Path) -> Path:
    """Make weights, once: of a network that needs no PyTorch."""
    place = folder / "pretrained"
    if not (place / _WEIGHTS).is_file():
        place.mkdir(parents=True, exist_ok=True)
        _done("pretrain", ["algo=lstm", *_RUN[:2], f"weights={place / _WEIGHTS}"])
    return place


def _done(name: str, words: list[str]) -> None:
    status, text = _run_here(name, words)
    if status != 0:
        raise RuntimeError(f"{name} {' '.join(words)}: {text[-1000:]}")


def _change(random: Random, file: Path) -> None:
    """Change a file by its bytes or, of JSON, its values."""
    if file.suffix == ".json" and random.random() < 0.6:
        content = json.loads(file.read_text("utf-8"))
        if random.random() < 0.1:
            file.write_text('{"label": ' + "[" * 100_000, encoding="utf-8")
            return
        place = content
        while isinstance(place, dict) and place:
            key = random.choice(list(place))
            if not isinstance(place[key], dict) or random.random() < 0.4:
                place[key] = random.choice(_VALUES)
                break
            place = place[key]
        file.write_text(json.dumps(content), encoding="utf-8")
        return
    if random.random() < 0.1:
        file.unlink()
        return
    file.write_bytes(damaged(random, file.read_bytes()))
