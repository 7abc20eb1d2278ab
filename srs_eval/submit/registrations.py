"""Pre-registrations of a leaderboard, judged by the scores on its boards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from srs_eval.comparison.judging import Judgement, judge
from srs_eval.comparison.prereg import TAG, Prereg, read_prereg
from srs_eval.errors import ConfigError
from srs_eval.results.run import Run
from srs_eval.submit.problems import Problem, shown
from srs_eval.submit.reading import PREREGISTRATIONS, boards_of
from srs_eval.submit.submission import ABOUT, Board, Submission


@dataclass(frozen=True, slots=True)
class Registration:
    """A file in ``leaderboard/prereg``, and its verdict."""

    file: str  # Name of the file
    prereg: Prereg | None = None  # Its content; None if it cannot be used
    judgement: Judgement | None = None  # The verdict by the scores of a board; None without one
    reason: str = ""  # Why there is no judgement; "" with one
    board: str = ""  # Name of the board that it is judged on; "" without a judgement
    model: str = ""  # Name of the submission that the hypothesis is about; "" without a judgement


def registrations(leaderboard: Path, boards: Sequence[Board]) -> list[Registration]:
    """Return all pre-registrations of a leaderboard with these boards, in the order of their names.

    Model and baseline are the submissions with the registered titles. What a submission itself says
    of a pre-registration counts as the digest of its file only.
    """
    folder = leaderboard / PREREGISTRATIONS
    files = [] if folder.is_symlink() else sorted(folder.glob("*.yaml"))
    read = [_read(file) for file in files if file.is_file() and not file.is_symlink()]
    digests = {each.prereg.digest for each in read if each.prereg}
    return [
        _judged(each.file, each.prereg, boards, digests) if each.prereg else each for each in read
    ]


def registration_problems(
    leaderboard: Path, submissions: Sequence[Submission]
) -> Iterator[Problem]:
    """Yield registrations that cannot be used, and statements that contradict them."""
    titles: dict[str, tuple[str, Registration]] = {}  # by digest
    for one in registrations(leaderboard, boards_of(submissions)):
        if one.prereg is None:
            file = leaderboard / PREREGISTRATIONS / one.file
            yield Problem("facts", file, "", one.reason, "correct it, or remove it")
        else:
            titles[one.prereg.digest] = one.prereg.model, one
    for each in (each for each in submissions if each.about.get("prereg")):
        stated, name, file = each.about["prereg"], each.run.name, each.folder / ABOUT
        decision = stated["decision"]
        title, found = titles.get(stated["digest"], ("", None))
        if found is None:
            if any(name == known for known, _ in titles.values()):
                advice = f"no file in {PREREGISTRATIONS} has this digest: restore it"
                yield Problem("facts", file, "prereg.digest", shown(stated["digest"]), advice)
        elif name != title:
            advice = f"{found.file} is about {title}: use its title"
            yield Problem("facts", file, "model", shown(name), advice)
        elif decision and found.judgement:
            judged = found.judgement.decision
            if decision.partition(",")[0] != judged:
                advice = f"the scores say {judged}"
                yield Problem("facts", file, "prereg", shown(decision), advice)


def _read(file: Path) -> Registration:
    try:
        return Registration(file.name, read_prereg(file))
    except ConfigError as error:
        return Registration(file.name, reason=str(error).replace(str(file), file.name))


def _judged(
    file: str, prereg: Prereg, boards: Sequence[Board], digests: Collection[str]
) -> Registration:
    """Judge a hypothesis by the board that fits; `digests` are of all files."""
    found, reasons = [], []
    others = {digest for digest in digests if digest != prereg.digest}
    for board in boards:
        if (board.data, board.protocol) != (prereg.data, prereg.protocol):
            continue
        try:
            runs = [_with_options(each, others) for each in board.submissions]
            judgement = judge(prereg, runs)
        except ConfigError as error:
            reasons.append(str(error))
            continue
        model = next(each for each in board.submissions if each.run.name == prereg.model)
        found.append(Registration(file, prereg, judgement, "", board.name, model.name))
    judged = [each for each in found if each.judgement and each.judgement.decision != "no verdict"]
    fitting = judged or found
    if len(fitting) == 1:
        return fitting[0]
    none = f"there is no board of {prereg.data} and {prereg.protocol}"
    several = f"it fits {len(fitting)} boards: options or a fingerprint choose one"
    reason = several if found else "; ".join(dict.fromkeys(reasons)) or none
    return Registration(file, prereg, reason=reason)


def _with_options(submission: Submission, others: Collection[str]) -> Run:
    """Return the run of a submission with its options and the digest that it states.

    A model has one digest, and several hypotheses can be about it: those of the `others` are
    left out, so that their model counts as one that was run without the file.
    """
    about = submission.about
    stated = (about.get("prereg") or {}).get("digest", "")
    options = {group: about[group]["options"] for group in ("data", "protocol")}
    facts = replace(submission.run.facts, tags={TAG: "" if stated in others else stated})
    return replace(submission.run, facts=facts, options={**options, "seed": about["seed"]})
