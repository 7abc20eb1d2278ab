"""All users of a job: named, evaluated wherever the work is done, and kept as they finish."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
from tqdm import tqdm

from srs_eval.compute import stopping
from srs_eval.errors import ReviewLogError, SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation, Watch
from srs_eval.evaluation.scoring import EvaluateAndScore, ScoredUser, score_user
from srs_eval.experiment.plan import Plan
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Fit, Predictions, Source, User
from srs_eval.nouns.predictions import reviews_fingerprint
from srs_eval.results.partial import FinishedUsers
from srs_eval.text.console import say


def checked_users(source: Source) -> list[User]:
    """Name the users of a source, as Python's own numbers or texts, each once.

    Raises
    ------
    ReviewLogError
        If there are none, or listing every name that is of another type or comes again.
    """
    users: list[User] = []
    known: set[User] = set()
    problems = []
    for user in source.users():
        name = user.item() if isinstance(user, np.generic) else user
        if not isinstance(name, int | str) or isinstance(name, bool):
            problems.append(f"user {user!r} is {type(user).__name__}, expected a number or a text")
        elif name in known:
            problems.append(f"user {user!r} is named more than once")
        else:
            users.append(name)
            known.add(name)
    if not users and not problems:
        problems.append("no users")
    if problems:
        raise ReviewLogError(source.location, problems)
    return users


def evaluate_users(plan: Plan, users: Sequence[User], kept: FinishedUsers) -> list[ScoredUser]:
    """Evaluate every user that is not yet done; what was predicted is kept in files alone.

    Raises
    ------
    Pruned
        If the search the job is part of does not want its end.
    """
    number = {user: position for position, user in enumerate(users)}
    done = _done_before(plan, kept, users) if plan.resume else {}
    if done:
        say(f"{len(done)} of {len(users)} users were done before")
    watch = _watch(plan, users)
    told = _report_progress(plan, users, done, 0) if watch is None else 0
    work = EvaluateAndScore(
        EvaluateUser(
            plan.source,
            plan.algorithm,
            plan.protocol,
            seed=plan.seed,
            curves=plan.curves_per_user,
        ),
        plan.panel,
        watched=watch is not None,
    )
    folds = plan.protocol.folds
    with tqdm(
        total=len(users) * folds,
        initial=len(done) * folds,
        desc="fits",
        unit="fit",
        leave=False,
        disable=None,  # no bar where nobody watches it grow
    ) as bar:
        todo = [user for user in users if user not in done]

        def tick(*step: Any) -> None:
            stopping.check()
            if step and watch is not None:
                watch(*step)
            else:
                bar.update()

        crashed = partial(_crashed, plan.panel)
        for scored in plan.compute.map(work, todo, on_crash=crashed, tick=tick):
            stopping.check()
            kept.save(number[scored.user], scored)
            done[scored.user] = scored.put_away()
            bar.update(max(len(done) * folds - bar.n, 0))
            if watch is None:
                told = _report_progress(plan, users, done, told)
    return [done[user] for user in users]


def _done_before(plan: Plan, kept: FinishedUsers, users: Sequence[User]) -> dict[User, ScoredUser]:
    """Find the users that are finished and whose log is still what it was."""
    done = {}
    for number, user in enumerate(users):
        scored = kept.load(number, user)
        if scored is not None and scored.log.fingerprint:
            with suppress(SrsEvalError):  # what cannot be read now is evaluated, and fails, now
                if reviews_fingerprint(plan.source.read(user)) == scored.log.fingerprint:
                    done[user] = scored
    return done


def _watch(plan: Plan, users: Sequence[User]) -> Watch | None:
    """Tell a search what each step of the only fit would score; None if there is no such fit."""
    if plan.trial is None or plan.trial.report is None:
        return None
    has_steps = hasattr(plan.algorithm, "fit_in_steps")
    if not has_steps or len(users) > 1 or plan.protocol.folds > 1:
        return None
    name, report = plan.trial.metric, plan.trial.report
    panel = Panel([metric for metric in plan.panel if metric.name == name], pooled=False)

    def watch(step: int, predictions: Predictions) -> None:
        report(step, panel.score(predictions)[name])

    return watch


def _report_progress(
    plan: Plan, users: Sequence[User], done: Mapping[User, ScoredUser], told: int
) -> int:
    """Tell a search the mean over the first user, the first two, …, once all of them are done.

    Every step is told, in order, also where users end in another order or were done before, so
    that what is pruned depends on neither.

    Parameters
    ----------
    told : int
        Steps that were told before.

    Returns
    -------
    int
        Steps that are told now.
    """
    if plan.trial is None or plan.trial.report is None:
        return told
    column = plan.panel.names.index(plan.trial.metric)
    first = [done[user].values[column] for user in takewhile(done.__contains__, users)]
    for step in range(told + 1, len(first) + 1):
        defined = [value for value in first[:step] if math.isfinite(value)]
        if defined:
            plan.trial.report(step, sum(defined) / len(defined))
    return len(first)


def _crashed(panel: Panel, user: User, reason: str) -> ScoredUser:
    fit = Fit(user, -1, "failed", f"user {user}: {reason}")
    return score_user(UserEvaluation(user, (fit,), None, ReviewLog()), panel)
