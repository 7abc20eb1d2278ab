"""Odd command lines from a seed, and how each of them ends.

For tests and for campaigns: `prepare` a folder, then `attempt(command_line(rng))` in it.
"""

from __future__ import annotations

import contextlib
import io
import signal
import time
import traceback
from dataclasses import dataclass

from srs_eval.commands.run import command

QUICK = (
    *("algo=avg", "data.users=1", "data.size_scale=0.02", "panel=quick", "tracking=none"),
    *("figures=false", "curves_per_user=0", "hydra.run.dir=out"),
)
# Odd in itself, whatever it is given to.
VALUES = (
    *("", " ", "null", "~", "true", "no", "0", "1", "2", "-1", "1.0", "1.5", "1e3", "1e400"),
    *("nan", "inf", "-inf", "9" * 30, "9" * 5000, "0x10", "1_000", "[]", "[a]", "[1,2]", "[[1]]"),
    *("{}", "{a:1}", "{_target_:os.system}", "'", '"', "''", "[", "{", ")", "a b", "é", "\x00"),
    *("\x1b[31m", "\ud800", "a\nb", "a,b", "1-3", "3-1", "1-999999999", "*", "?", "???", "/", "."),
    *("..", "/dev/null", "/dev/zero", "s3://b/k", "file:///tmp/x", "C:\\x", "~nobody/x", "ok.csv"),
    *("ok.csv/", "nothing.csv", "${seed}", "${nope}", "${oc.env:NOPE}", "${oc.env:HOME}", "${"),
    *("${now:%Y}", "${hydra:job.num}", "${oc.decode:'['}", "\\", "x" * 5000, "[" * 2000, "%s"),
    *("$(x)", "../../x", "import os", "avg", "mlflow", "serial", "range(1,3)", "choice(1,2)"),
    *("glob(*)", "interval(0,1)", "tag(a,1)", "sort(2,1)", "int(x)", "@file", "a=b", "--x"),
    *("#", "yes", "1:2"),
)
KEYS = """
    algo data protocol panel tracking compute sweep experiment name seed curves_per_user figures
    resume baseline notes tags +tags.a data.path data.users data.seed data.size_scale
    data.max_reviews data.columns.card data.columns.time data.time_zone data.day_start_hour
    data.time_unit data.duplicates data.invalid_times algo.fit algo.parameters algo.p algo.base
    algo.members algo.recency algo.half_life algo.prior_weight algo._target_ +algo._target_
    +algo._partial_ +algo.x compute.workers tracking.uri tracking.experiment tracking.file
    tracking.view panel.metrics panel.pooled +panel.metrics.x panel.metrics.log_loss
    ~panel.metrics.log_loss protocol.base protocol.share protocol.refits hydra.run.dir
    hydra.sweep.dir hydra.sweep.subdir hydra.job.name hydra.job.chdir hydra.mode hydra.verbose
    hydra.output_subdir hydra.searchpath hydra/launcher hydra/sweeper hydra/job_logging
    hydra.help +hydra.callbacks.x hydra.callbacks +hydra.job.env_set.A hydra.job.env_copy
    hydra.sweeper.params hydra.sweeper.max_batch_size hydra = . ~algo + _ ~seed ++seed +seed @x
    a.b.c algo@x data@algo é
"""
OPTIONS = """
    algo=hlr algo=constant algo=mixture algo=per_group algo=fsrs6 data=csv data=anki
    data=revlogs_10k compute=processes tracking=jsonl protocol=validation
    protocol=srs_benchmark_refit panel=default data.path=ok.csv sweep=lstm_size
    hydra/sweeper=srs_eval_optuna hydra.sweeper.n_trials=1 -m --config-dir=options
    --config-dir=bombs algo=bomb algo=latin algo=deep algo=loop algo=scalar algo=evil algo=list
    experiment=bomb experiment=recursive algo=? experiment=? sweep=? --cfg=job --cfg=all
    --resolve --info --info=defaults --package=algo --help --hydra-help --run
    --shell-completion=x --config-dir --config-dir=ok.csv --config-dir=nowhere --config-path=/
    --config-name=x --experimental-rerun=ok.csv -x -- - --multi
"""
_BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)
_FILES = {
    "bomb": f"_target_: srs_eval.algorithms.baselines.Constant\np: 0.9\n{_BOMB}\n",
    "latin": "_target_: srs_eval.algorithms.baselines.Constant # \xe9\n",
    "deep": "a: " + "[" * 3000 + "]" * 3000 + "\n",
    "loop": "defaults: [loop, _self_]\np: 1\n",
    "scalar": "3\n",
    "list": "[1, 2]\n",
    "evil": "_target_: distutils.spawn.spawn\ncmd: [touch, PWNED]\n",
    "recursive": "# @package _global_\na: &a [*a]\n",
}


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    words: tuple[str, ...]
    kind: str  # accepted, clear error, traceback or hang
    status: int
    seconds: float
    text: str


class _Hang(BaseException):
    """A command took longer than it may."""


def prepare(folder):
    """Write the files that command lines refer to."""
    rows = "".join(f"{n % 5},{3 - 2 * (n % 7 == 3)},{n // 2}\n" for n in range(60))
    (folder / "ok.csv").write_text("card,rating,day\n" + rows, encoding="utf-8")
    for group in ("algo", "experiment"):
        for name, text in _FILES.items():
            place = folder / ("bombs" if name in ("bomb", "recursive") else "options") / group
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name}.yaml").write_bytes(text.encode("latin-1"))


def command_line(rng):
    """Draw a quick run with up to three words that are odd."""
    words = list(QUICK)
    for _ in range(rng.randint(1, 3)):
        odd = rng.choice((_assignment, _assignment, _option, _mutation))(rng, words)
        words.insert(rng.randrange(len(words) + 1), odd)
    return words


def attempt(words, *, seconds=30):
    """Run a command line in this process, for so many seconds of work at most."""
    text, began, status = io.StringIO(), time.perf_counter(), 1
    kind = ""
    try:
        with _limit(seconds), contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = command(list(words))
    except SystemExit as end:  # of the parser of flags
        status = end.code if isinstance(end.code, int) else 1
    except _Hang:
        kind = "hang"
    except Exception:  # noqa: BLE001 - that is what is looked for
        kind = "traceback"
        text.write(traceback.format_exc())
    if not kind and "Traceback" in text.getvalue():
        kind = "traceback"
    kind = kind or ("accepted" if status == 0 else "clear error")
    return Ended(tuple(words), kind, status, time.perf_counter() - began, text.getvalue())


def _assignment(rng, _):
    return f"{rng.choice([*KEYS.split(), ''])}={rng.choice(VALUES)}"


def _option(rng, _):
    return rng.choice(OPTIONS.split())


def _mutation(rng, words):
    word = rng.choice(words)
    at = rng.randrange(len(word) + 1)
    odd = rng.choice("=.,[]{}()'\"\\$~+@:/ ?*\t")
    changed = [word[:at] + word[at + 1 :], word[:at] + odd + word[at:], word[:at] * 2]
    return rng.choice([*changed, word.partition("=")[0] + "=" + rng.choice(VALUES)])


@contextlib.contextmanager
def _limit(seconds):
    """Stop after so many seconds of work, or ten times as many of waiting."""

    def stop(*_):
        raise _Hang

    before = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)
