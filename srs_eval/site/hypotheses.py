"""Pre-registered hypotheses with their verdicts, which are computed from the scores of a board."""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.comparison.prereg import Prereg
from srs_eval.site.frame import link, path_of
from srs_eval.site.view import View
from srs_eval.submit.registrations import Registration
from srs_eval.text.console import interval
from srs_eval.text.escapes import for_html, html_table
from srs_eval.text.plain import one_line

_CAPTION = (
    "Hypotheses that were registered in files of the leaderboard. Verdicts are computed from the "
    "scores of the board, whatever authors state. Intervals are not adjusted: each file registers "
    "one comparison."
)
_HEADERS = ("hypothesis", "verdict", "deviations", "model", "baseline", "claim", "SHA-256")


def hypotheses(registered: Sequence[Registration], shown: View, models: str = "models") -> str:
    """Format a section with some registrations; nothing without any.

    `models` is the address of the folder of models, from the page.
    """
    if not registered:
        return ""
    rows = [_row(one, one.prereg, shown, models) for one in registered if one.prereg]
    listed = html_table(_HEADERS, rows, text=len(_HEADERS))
    return (
        f'<section id="prereg" class="prereg"><h2>Pre-registered hypotheses</h2>'
        f'<p class="caption">{for_html(_CAPTION)}</p>{listed}</section>'
    )


def elsewhere(registered: Sequence[Registration]) -> str:
    """Format a section with the registrations that belong to no board; nothing without any."""
    if not registered:
        return ""
    rows = [[for_html(one.file), for_html(one_line(one.reason))] for one in registered]
    listed = html_table(("file", "why it is on no board"), rows, text=2)
    return f'<section class="prereg"><h2>Other pre-registrations</h2>{listed}</section>'


def _row(one: Registration, prereg: Prereg, shown: View, models: str) -> list[str]:
    judged = one.judgement
    source = ", ".join(filter(None, (one.file, str(prereg.date), *prereg.authors)))
    found = judged.deviations if judged else ()
    deviations = "".join(f"<li>{for_html(text)}</li>" for text in found)
    return [
        f"{for_html(prereg.hypothesis)}<small>{for_html(source)}</small>",
        _verdict(one, prereg, shown),
        f"<ul>{deviations}</ul>" if deviations else "none" if judged else "",
        _model(prereg.model, shown, models),
        _model(prereg.baseline, shown, models),
        for_html(f"{prereg.metric}: advantage {prereg.claim}"),
        f"<code>{for_html(prereg.digest[:16])}</code>",
    ]


def _model(title: str, shown: View, models: str) -> str:
    """Format the title of a model, with a link where the board has it."""
    for model in shown.models:
        if model.submission.run.name == title:
            return link(title, f"{models}/{path_of(model.submission.name)}.html")
    return f"{for_html(title)}<small>not on this board</small>"


def _verdict(one: Registration, prereg: Prereg, shown: View) -> str:
    judged = one.judgement
    if judged is None:
        titles = {each.run.name for each in shown.board.submissions}
        missing = [title for title in (prereg.model, prereg.baseline) if title not in titles]
        why = f"no submission to this board has the title {' or '.join(missing)}"
        return f"not judged<small>{for_html(why if missing else one_line(one.reason))}</small>"
    found = (
        f"advantage {judged.advantage.mean:+.4f} {interval(judged.lo, judged.hi)} at "
        f"{100 * prereg.level:g} %, {judged.users:,} of {prereg.users:,} users"
    )
    return f"{for_html(judged.in_short)}<small>{for_html(found)}</small>"
