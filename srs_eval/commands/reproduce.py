"""Evaluate the models of published results again, and compare the scores user by user.

  python -m srs_eval.reproduce data.path=../anki-revlogs-10k published=result first=100
  python -m srs_eval.reproduce data.path=DIR published=result published.models='fsrs6*,dash'

DIR has logs in the layout of anki-revlogs-10k, any part of them; published= names results of the
public srs-benchmark for each user, lines of JSON or parquet. Each result whose name stands for a
model and options that are here is made again, with its own trainer (fit=reference). A table has
users, numbers of scored reviews, equal scores, the mean difference in log loss and the largest one;
files have every user.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Gt

from srs_eval.api.evaluating import bar, compute_with
from srs_eval.api.inputs import algorithm, source
from srs_eval.commands.cli import Command, Key, Local, Options
from srs_eval.commands.overrides import values_of
from srs_eval.comparison.reproduction import (
    MARGIN,
    EvaluateAgain,
    Reproduction,
    UserScore,
    summary_table,
    users_table,
)
from srs_eval.compute import stopping
from srs_eval.engine.machine import target_cpu
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.evaluation.scoring import EvaluateAndScore
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.nouns import EvaluationProtocol, Source, User
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.files import write_text
from srs_eval.results.published import read_published
from srs_eval.results.run import Run
from srs_eval.run.experiment import SEED
from srs_eval.text.console import counted, facts, listed, say
from srs_eval.text.upstream import EQUALISED, SECONDS, WHOLE_DAYS, configuration

_SHOWN = 5  # unequal users of a result
_PROTOCOLS: Mapping[str, EvaluationProtocol] = {
    WHOLE_DAYS: SrsBenchmark(),
    SECONDS: SrsBenchmarkSecs(answer_time=True),
    EQUALISED: SrsBenchmarkEqualised(answer_time=True),
}
_CAPTION = f"""other sizes: users with another number of scored reviews
all equal: users with every published metric equal to six decimals
differences: log loss here less the published one, of users with the same number of reviews
within {MARGIN}: the interval of the mean difference is"""
_TOLD = ("first=", "published.models=", "data.users=", "data.first=", "data.sample=")
_LIBRARIES = ("numpy", "scipy", "llvmlite")
_WHERE = "https://github.com/srs-eval/srs_eval/issues"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduce(Options):
    """Options of the command."""

    data: Annotated[Mapping[str, str], Key("data.KEY")] = field(default_factory=dict)
    """the logs, as of data=revlogs_10k: data.path=DIR, data.users=[1-100]"""
    published: Path
    """file or folder of published scores"""
    models: Annotated[tuple[str, ...], Key("published.models")] = ()
    """only these of the published models, as in fsrs6,dash or 'fsrs*'"""
    first: Annotated[int | None, Gt(0)] = None
    """only the first users with logs and published scores"""
    workers: Annotated[int | None, Gt(0)] = None
    """processes that share the users (one per core)"""
    out: Local[Path | None] = None
    """folder of the files (outputs/DATE/TIME_reproduce)"""

    def problems(self) -> list[str]:
        """Return what is wrong with the options together."""
        return [] if "path" in self.data else ["data.path= is missing: the folder of the logs"]


def reproduce(options: Reproduce) -> int:
    """Evaluate, print the table, and write the files."""
    stamp = f"outputs/{datetime.now():%Y-%m-%d/%H-%M-%S}_reproduce"
    out = (options.out or Path(stamp)).resolve()
    if out.exists() and not out.is_dir():
        raise ConfigError(f"out={out}: there is a file of that name")
    runs = {run.name: run for run in read_published(options.published, options.models)}
    logs = source("revlogs_10k", **values_of("data", options.data))
    known = set().union(*(run.rows for run in runs.values()))
    with_logs = logs.users()
    users = [user for user in with_logs if user in known][: options.first]
    if not users:
        raise ConfigError(
            f"none of {counted(len(with_logs), 'user')} with logs ({listed(with_logs)}) has a "
            f"published score in {options.published} ({listed(sorted(known, key=str))})"
        )
    say(
        f"{counted(len(users), 'user')} with logs and published scores; "
        f"{len(known) - len(users):,} with published scores alone, and "
        f"{sum(user not in known for user in with_logs):,} with logs alone, are left out\n"
    )
    evaluations, left_out = _evaluations(runs, logs)
    published = {name: frozenset(run.rows) for name, run in runs.items()}
    found = _evaluate(EvaluateAgain(evaluations, published), users, options.workers)
    made = [
        Reproduction(runs[name], {user: each[name] for user, each in found if name in each})
        for name in evaluations
    ]
    text = _told(made, left_out)
    files = {"reproduce.md": _page(options, text), "reproduce.csv": users_table(made).csv()}
    for name, content in files.items():
        write_text(out / name, content)
    send = f"{' and '.join(files)}, to {_WHERE}\nThey have numbers and scores of users, no review"
    say(f"{text}\n\n{facts({'files': str(out), 'to send': send})}")
    return int(any(reason.startswith("failed") for each in made for reason in each.without))


def _evaluations(
    runs: Mapping[str, Run], logs: Source
) -> tuple[dict[str, EvaluateAndScore], dict[str, str]]:
    """Return how results are made again, and why others are not."""
    found, left_out = {}, {}
    for name, run in runs.items():
        known = configuration(name)
        why = "no model of srs-benchmark is called so" if known is None else known.why_not
        if known is not None and not why:
            try:
                model = algorithm(known.model.option, **known.arguments)
            except SrsEvalError as error:
                why = str(error)
            else:
                protocol = _PROTOCOLS[known.protocol]
                evaluate = EvaluateUser(logs, model, protocol, seed=SEED, curves=0)
                found[name] = EvaluateAndScore(evaluate, _panel(run))
        if why:
            left_out[name] = why
    return found, left_out


def _panel(run: Run) -> Panel:
    """Return the metrics that a result has."""
    needed = {"log_loss", *run.scores} | ({"brier"} if "rmse" in run.scores else set())
    return Panel([metric for metric in default_panel() if metric.name in needed], pooled=False)


def _evaluate(
    work: EvaluateAgain, users: Sequence[User], workers: int | None
) -> list[tuple[User, dict[str, UserScore]]]:
    """Evaluate users in their order, whatever the number of processes."""

    def crashed(user: User, reason: str) -> tuple[User, dict[str, UserScore]]:
        return user, {
            name: UserScore(0, {}, 0.0, f"failed: {reason}")
            for name in work.evaluations
            if user in work.users[name]
        }

    with bar("users", "user", on=True)(total=len(users)) as progress:

        def tick(*_: Any) -> None:
            stopping.check()
            progress.update()

        compute = compute_with(workers)
        found = dict(compute.map(work, users, on_crash=crashed, tick=tick))
    return [(user, found[user]) for user in users]


def _told(made: Sequence[Reproduction], left_out: Mapping[str, str]) -> str:
    """Format the table, the first values that differ, and what was not made again."""
    notes = []
    for each in made:
        notes += [
            f"{each.name}, user {one.user}: {one.metric} {_digits(one.here)} here, "
            f"{_digits(one.published)} published"
            for one in each.unequal[:_SHOWN]
        ]
        more = len(each.unequal) - _SHOWN
        notes += [f"{each.name}: {counted(more, 'more value')} that differ"] if more > 0 else []
        notes += [
            f"{each.name}: {counted(count, 'user')} without a score here: {reason}"
            for reason, count in each.without.items()
        ]
    notes += [f"not made again: {name}: {why}" for name, why in left_out.items()]
    table = [summary_table(made).write(), "", _CAPTION, ""] if made else []
    return "\n".join([*table, *notes]).rstrip()


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and value > 1 else f"{value:.6f}"


def _page(options: Reproduce, text: str) -> str:
    """Format the page that is sent: what ran, where, and the table."""
    about = {
        "srs_eval": version("srs-eval"),
        "Python": platform.python_version(),
        "processor": f"{target_cpu()}, {platform.system()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        # without places, which are no one's business
        "options": " ".join(word for word in options.words if word.startswith(_TOLD)) or "none",
    }
    return f"# Published results, evaluated again\n\n```text\n{facts(about)}\n\n{text}\n```\n"


command = Command("python -m srs_eval.reproduce", __doc__, Reproduce, reproduce)
