"""Boards with everything that pages must cope with."""

import math
from dataclasses import replace

import pytest
from leaderboard_site import made_up

from srs_eval.site.pages import write_site
from srs_eval.submit.submission import Accepted

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> ' \u202e =cmd|'/C'!A0 é"
TITLES = {1: "fsrs <b>6</b> & co", 2: HOSTILE}


@pytest.fixture(scope="session")
def boards(tmp_path_factory):
    """Two versions: hostile texts, a duplicate, an oracle, missing scores, and a published row.

    And another board of the second version: few users, and a hopeless model.
    """
    folder = tmp_path_factory.mktemp("leaderboard")
    first = made_up(folder / "1", 9, 60)
    odd = []
    for one in first.submissions:  # with a metric that is best at 0
        bias = one.run.scores["log_loss"] - 0.33
        odd.append(replace(one, run=replace(one.run, scores={**one.run.scores, "mbe": bias})))
    for number, title in TITLES.items():
        texts = dict.fromkeys(("description", "licence"), HOSTILE)
        prereg = {"decision": "kept", "digest": "0" * 64, "content": HOSTILE}
        code = {"url": "javascript:alert(1)", "commit": "x"}
        about = {**odd[number].about, **texts, "authors": [HOSTILE], "prereg": prereg, "code": code}
        note = Accepted("2026-02-01", "1" * 64, "verified", HOSTILE)
        run = replace(odd[number].run, name=title)
        odd[number] = replace(odd[number], about=about, run=run, history=(note,))
    odd[3] = replace(odd[3], run=replace(odd[0].run, name="again", place=odd[3].folder))
    scores = {name: values.copy() for name, values in odd[4].run.scores.items()}
    scores["auc"][5] = scores["smece"][:] = math.nan
    odd[4] = replace(odd[4], run=replace(odd[4].run, scores=scores))
    published = replace(odd[5].run, rows=dict.fromkeys(odd[5].run.rows, ""))
    mark = Accepted("2026-02-01", "2" * 64, "published")
    odd[5] = replace(odd[5], run=published, history=(mark,))
    few = dict(list(published.reviews.items())[:30])
    scores = {name: values[:30] for name, values in published.scores.items()}
    rows = dict.fromkeys(few, "")
    fewer = replace(published, name="of few users", rows=rows, reviews=few, scores=scores)
    odd[6] = replace(odd[6], run=fewer)
    third = made_up(folder / "3", 8, 12, version="10")
    third.submissions[3].run.scores["log_loss"][:] *= 30
    second = made_up(folder / "2", 4, 50, version="10")
    return [
        replace(first, submissions=tuple(odd)),
        second,
        replace(third, name=second.name.replace("01234567", "76543210")),
    ]


@pytest.fixture(scope="session")
def site(boards, tmp_path_factory):
    """Write the site of the boards."""
    out = tmp_path_factory.mktemp("site") / "out"
    write_site(boards, out)
    return out
