"""One night of a watch: read, judge, promote, draw, log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srs_eval.api.inputs import source
from srs_eval.commands.overrides import values_of
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.data.times import day_numbers
from srs_eval.errors import ConfigError
from srs_eval.nouns import Source
from srs_eval.plots.evidence_plot import evidence_figure
from srs_eval.plots.style import save_figure
from srs_eval.results.files import CONFIG, SUMMARY
from srs_eval.results.folder import read_config
from srs_eval.text.console import counted, number
from srs_eval.text.table import Table
from srs_eval.tracking.items import ArtifactFile, Description, FigureFiles, Item, Param, Tag, Value
from srs_eval.watch.days import Question, Watched, watched_days
from srs_eval.watch.judge import ANSWERS, BETTER, Evidence, Judgement, judge
from srs_eval.watch.record import FILE, Record, continued, read_record, write_record

if TYPE_CHECKING:
    from srs_eval.watch.command import Watch

_EPOCH = date(1970, 1, 1)
_FIGURE = "evidence"
_MOST = math.log(1e6)  # evidence that is printed in digits


@dataclass(frozen=True, slots=True)
class Found:
    """What a night found."""

    lines: Sequence[str]  # To print
    facts: Mapping[str, Any]  # The same for programs


def night_of(options: Watch, question: Question) -> Found:
    """Look at the days that are new, and do what they say."""
    log = opened(options, question)
    record = read_record(options.out, question)
    watched = watched_days(log, question)
    record, new, changed = continued(record, watched, _until(options, log))
    found = judge(record.days, question)
    record, move = _promoted(options, record, found)
    facts = _facts(record, found, watched, new=new, changed=changed) | {"promotion": move}
    lines = list(_lines(question, record, found, facts))
    if options.dry_run:
        return Found([*lines, "dry_run=true: nothing was written"], facts)
    curves = {name: (test.day, test.log_e) for name, test in found.tests.items()}
    figure = evidence_figure(curves, level=question.level, title=_title(question))
    save_figure(figure, options.out, _FIGURE)
    write_record(options.out, record)
    if options.tracking == "mlflow":
        record, link = _logged(options, record, found, facts, lines)
        write_record(options.out, record)
        lines += [link] if link else []
    return Found(lines, facts)


def opened(options: Watch, question: Question) -> Source:
    """Open the log: a file, a named kind of log, or what a run has read."""
    run = Path(options.log)
    if (run / SUMMARY).is_file() and (run / CONFIG).is_file():
        if options.data:
            raise ConfigError(f"{run} is a run, which says itself how its log is read: no data.…=")
        return rebuilt_source(read_config(run)["data"])
    given = {"columns.p": list(question.columns)} | values_of("data", options.data)
    if "predictions" in given:  # a file beside the log
        del given["columns.p"]
    return source(options.log, **given)


def _until(options: Watch, log: Source) -> int | None:
    """Return the first day that is not over, since 1970; None where the log does not know dates."""
    if options.until is not None:
        return (options.until - _EPOCH).days
    reading = getattr(log, "reading", None)
    if reading is None:
        return None
    zone, hour = reading.time_zone, reading.day_start_hour
    now = np.array([time.time_ns() // 1000])
    return int(day_numbers(now, time_zone=zone, day_start_hour=hour)[0])


def _promoted(
    options: Watch, record: Record, found: Judgement
) -> tuple[Record, Mapping[str, Any] | None]:
    """Move the alias if that is asked for, shown, and not done yet; return what was done."""
    if options.promote is None or record.promoted:
        return record, record.promoted or None
    # Imported here, because MLflow takes a second.
    from srs_eval.tracking.watch_run import promote, promotion

    move = promotion(options.uri, options.promote)  # also before it is needed: it may be misspelt
    if BETTER not in found.alarms:
        return record, None
    reason = _reason(record.question, found.tests[BETTER])
    if move.before == move.after:
        return record, None
    facts = {**asdict(move), "reason": reason, "done": not options.dry_run}
    if options.dry_run:
        return record, facts
    promote(options.uri, move, reason)
    record = replace(record, promoted=facts)
    write_record(options.out, record)  # whatever happens next, it moves once
    return record, facts


def _reason(question: Question, test: Evidence) -> str:
    assert test.reached is not None
    return (
        f"{question.challenger} predicts better than {question.champion}: evidence reached "
        f"{1 / question.level:g} on {_date(test.reached)} (level {question.level:g}); log loss is "
        f"{number(test.mean, 5)} lower over {test.reviews:,} reviews on {len(test.day)} days"
    )


def _facts(
    record: Record, found: Judgement, watched: Watched, *, new: int, changed: int
) -> dict[str, Any]:
    """Return what the night found as JSON has it."""
    days = record.days["day"].tolist() if len(record.days) else []
    return {
        "watch": _title(record.question),
        "last_day": _date(max(days)) if days else None,
        "days": len(days),
        "new_days": new,
        "changed_days": changed,
        "users": watched.users,
        "left_out": watched.left_out,
        "alarms": list(found.alarms),
        "tests": {
            name: {
                "log10_evidence": _finite(_last(test) / math.log(10)),
                "reached": None if test.reached is None else _date(test.reached),
                "mean": _finite(test.mean),
                "reviews": test.reviews,
                "days": len(test.day),
            }
            for name, test in found.tests.items()
        },
    }


def _lines(
    question: Question, record: Record, found: Judgement, facts: Mapping[str, Any]
) -> Iterator[str]:
    """Format what the night found."""
    yield f"{facts['watch']}: {counted(facts['days'], 'day')}, {facts['new_days']} of them new"
    for name in found.alarms:
        yield f"{name}: {ANSWERS[name]} (level {question.level:g})"
    if not found.alarms:
        yield f"No test has reached its level ({question.level:g})"
    rows = [
        [
            name,
            f"{math.exp(_last(test)):.3g}" if _last(test) < _MOST else f">{math.exp(_MOST):.0g}",
            f"{1 / question.level:g}",
            "-" if test.reached is None else _date(test.reached),
            f"{test.mean:+.4f}",
            f"{test.reviews:,}",
            str(len(test.day)),
        ]
        for name, test in found.tests.items()
    ]
    columns = ["test", "evidence", "alarm at", "reached on", "mean", "reviews", "days"]
    yield Table(columns, rows, "").write()
    yield "mean: recall less prediction; of a challenger, what it gains in log loss"
    left = ", ".join(f"{n:,} {reason}" for reason, n in facts["left_out"].items() if n)
    yield f"Reviews in no day: {left or 'none'}"
    if facts["changed_days"]:
        yield (
            f"Of days seen before, {facts['changed_days']} are different in the log now; "
            "what was seen counts"
        )
    if facts["promotion"]:
        move = facts["promotion"]
        verb = "moved" if move["done"] else "would move"
        yield (
            f"{move['model']}: the alias champion {verb} from version {move['before']} to "
            f"{move['after']}: {move['reason']}"
        )
        if record.promoted:
            yield "Begin another watch with out=FOLDER for the new champion"


def _logged(
    options: Watch,
    record: Record,
    found: Judgement,
    facts: Mapping[str, Any],
    lines: Sequence[str],
) -> tuple[Record, str]:
    """Log the night; return the record with its parent, and a link."""
    from srs_eval.tracking.watch_run import Night, log_night

    question, values = record.question, list[Item]()
    for name, test in facts["tests"].items():
        given = {"log10_evidence": test["log10_evidence"], "mean": test["mean"]}
        values += [
            Value(f"{name}/{key}", value) for key, value in given.items() if value is not None
        ]
        values.append(Value(f"{name}/reviews", test["reviews"]))
    about: list[Item] = [
        Tag("alarms", ", ".join(found.alarms) or "none"),
        Description("```text\n" + "\n".join(lines) + "\n```"),
    ]
    figures: Item = FigureFiles(
        _FIGURE, options.out / f"{_FIGURE}.png", options.out / f"{_FIGURE}.svg"
    )
    asked: list[Item] = [Param(name, value) for name, value in asdict(question).items()]
    limit = math.log10(1 / question.level)
    curves = {
        f"evidence/{name}": list(
            zip(test.day.tolist(), (test.log_e / math.log(10)).tolist(), strict=True)
        )
        for name, test in found.tests.items()
    }
    days = sorted({day for points in curves.values() for day, _ in points})
    curves["evidence/alarm_at"] = [(day, limit) for day in days]
    files = ArtifactFile(options.out / FILE, "watch")
    night = Night(
        facts["watch"],
        facts["last_day"] or "no day",
        [*asked, *values, *about],
        [*asked, *about, figures, files],
        curves,
    )
    links, parent = log_night(
        night,
        record.parent,
        uri=options.uri,
        experiment=options.experiment,
        artifacts=options.artifacts,
    )
    link = f"MLflow UI  {links.ui_command or ''}\nnight      {links.run_url or ''}"
    return replace(record, parent=parent), link


def _title(question: Question) -> str:
    against = "" if question.challenger is None else f" against {question.challenger}"
    at = "" if question.retention is None else f" at {question.retention:g}"
    return f"{question.champion}{against}{at}"


def _last(test: Evidence) -> float:
    return float(test.log_e[-1]) if len(test.log_e) else 0.0


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _date(day: int) -> str:
    return (_EPOCH + timedelta(days=int(day))).isoformat()
