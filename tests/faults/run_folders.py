"""Folders of finished runs, changed, then compared and exported."""

import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from commands import run_here
from judging import Found, right, too_long
from logs import damaged

from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status as status_of

_ALGORITHMS = ("hlr", "fsrs6")
_RUN = ("data.users=2", "data.size_scale=0.02", "panel=quick", "figures=false", "tracking=none")
_VALUES = (
    *(None, True, -1, 1e308, "x", "=1+1", [], {}, [[]]),
    "\x1b]0;x\x07\r\\input{/etc/passwd}",
)


def prepare(_, folder):
    """Make what is changed later."""
    for algo in _ALGORITHMS:
        ended = judged_command("run", f"algo={algo}", *_RUN, f"hydra.run.dir={folder / algo}")
        if ended != "accepted":
            return ended
    return "accepted"


def run_folder(random, folder):
    """Change a file of a finished run, and compare or export."""
    for algo in _ALGORITHMS:
        shutil.copytree(folder.parent / algo, folder / algo)
    changed = folder / random.choice(_ALGORITHMS)
    names = ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet")
    _change(random, changed / random.choice((*names, ".hydra/config.yaml")))
    runs = [str(folder / algo) for algo in _ALGORITHMS]
    if random.random() < 0.5:
        return judged_command("compare", *runs, f"out={folder / 'out'}", "tracking=none")
    to = random.choice(("anki", "json", "py_fsrs"))
    return judged_command("export", str(changed), f"to={to}", "user=1")


def judged_command(command, *words):
    """Run a command here and judge what it says."""
    said, shown = StringIO(), " ".join(words)
    with redirect_stdout(said), redirect_stderr(said):
        status = run_here(words) if command == "run" else status_of(*COMMANDS[command], words)
    text = said.getvalue()
    if "Traceback (most recent call last)" in text or status not in (0, 1):
        raise Found("traceback", shown, f"exit {status}", text[-400:])
    if status == 0:
        return "accepted"
    # Words may be repeated, once: people know what they wrote.
    problems = too_long(text.replace(shown, "", 1)) if text.strip() else ["no message"]
    if any(control in text for control in ("\x1b]", "\r")):
        problems.append("control characters of a file were printed")
    return right(problems and [shown, *problems], "clear error")


def _change(random, file):
    """Change a file by its bytes or, of JSON, its values."""
    way = random.random()
    if file.suffix == ".json" and way < 0.06:
        file.write_text('{"label": ' + "[" * 100_000, encoding="utf-8")
    elif file.suffix == ".json" and way < 0.6:
        content = place = json.loads(file.read_text("utf-8"))
        while isinstance(place, dict) and place:
            key = random.choice(list(place))
            if not isinstance(place[key], dict) or random.random() < 0.4:
                place[key] = random.choice(_VALUES)
                break
            place = place[key]
        file.write_text(json.dumps(content), encoding="utf-8")
    elif way > 0.95:
        file.unlink()
    else:
        file.write_bytes(damaged(random, file.read_bytes()))
