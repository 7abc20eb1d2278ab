"""``submission.yaml``: what is said of a submission, and its checks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.config.targets import TARGET
from srs_eval.nouns.when import UNKNOWN, WHEN
from srs_eval.submit.problems import Kind, Problem, shown
from srs_eval.text.plain import cleaned, printable
from srs_eval.text.suggestion import suggestion
from srs_eval.text.yaml_files import LARGEST, Parsed, RepeatedKeyError, YamlError, parsed

# What its author has to write, and how.
GAPS = {
    "description": "describe the model in a paragraph",
    "authors": "write a list of names, as in [A. Author]",
    "licence": "name the licence of the code, as in MIT",
    "tuned_on": "name the data by which constants were chosen, or write none",
}
# What a submission need not have.
_OPTIONAL = ("prereg", "curves_per_user", "read")
# A digest of the first reviews of a user, see `fingerprint_of`.
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_COMMIT = re.compile(r"[A-Za-z0-9._/-]{1,100}")
# Of ASCII, and with nothing before an @ that would look like the name of the host.
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}(?:[/?#][!#-&(-;=?-\[\]-_a-~]{0,300})?")
# Characters that show nothing, besides those of the category Cf, from Default_Ignorable_Code_Point
# of Unicode; the empty braille pattern is none of these.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
_DECISION = re.compile("(kept|refuted|undecided|no verdict)(, [0-9]+ deviations?)?")
_TITLE, _LINE, _PARAGRAPH = 120, 300, 5_000
LONGEST_TITLE = _TITLE
# Of values, and of levels of keys inside others.
_MOST_VALUES, _DEEPEST = 30_000, 20
_MOST_AUTHORS, _MOST_USERS, _MOST_CURVES, _LARGEST = 50, 25_000, 10_000, 1e15
# The beginning of an HTML tag, as browsers see it.
TAG = re.compile(r"<[a-zA-Z/!?]")

Found = tuple[Kind, str, object, str]  # kind, key, value, advice
Check = Callable[[str, Any], Iterator[Found]]


def read_about(file: Path) -> Parsed | Problem:
    """Read a file that holds a mapping; return the problem if it cannot be used."""
    if (size := file.stat().st_size) > LARGEST:
        return Problem("file", file, "", f"{size:,} bytes", f"{LARGEST:,} at most")
    try:
        about = parsed(file.read_bytes(), strict=True, values=_MOST_VALUES, depth=_DEEPEST)
    except RepeatedKeyError as error:
        return Problem("form", file, str(error), "is there twice", "leave one of them out")
    except YamlError as error:
        advice = "write plain YAML in UTF-8, without &, * and !"
        return Problem("file", file, "", str(error), advice)
    if not isinstance(about.content, Mapping):
        return Problem("form", file, "", "no keys and values", "write one KEY: VALUE a line")
    return about


def about_problems(file: Path, about: Parsed) -> Iterator[Problem]:
    """Yield every problem of a ``submission.yaml``."""
    for kind, key, value, advice in _ABOUT("", about.content):
        place, line = key, None
        while line is None and place:
            line = about.lines.get(place)
            place = place.rpartition(".")[0]
        where = f"line {line}: {key}" if line else key
        value = value if isinstance(value, _Words) else shown(value)
        yield Problem(kind, file, where, str(value), advice)


def visible(text: str) -> str:
    """Return a text without characters that show nothing, and marks of the direction of text."""
    shown = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return _INVISIBLE.sub("", shown)


class _Words(str):
    """A message in place of a value."""


def _text(longest: int, *, lines: bool = False, gap: str = "") -> Check:
    def check(key: str, value: Any) -> Iterator[Found]:
        if not isinstance(value, str):
            empty = value is None and bool(gap)
            found = _Words("is empty") if empty else value
            advice = gap or "write text"
            yield "gap" if empty else "form", key, found, advice + ", in quotes" * (not empty)
        elif not visible(value).strip():
            yield "gap" if gap else "form", key, _Words("is empty"), gap or "write it"
        elif len(value) > longest:
            yield "form", key, value, f"at most {longest:,} characters, not {len(value):,}"
        elif value != (printable(value) if lines else cleaned(value)):
            yield "form", key, value, "remove line breaks and control characters"
        elif TAG.search(value):
            yield "form", key, value, "remove HTML; a space after < makes it a sign"

    return check


def _number(kind: type, lowest: float = 0, most: float = _LARGEST) -> Check:
    def check(key: str, value: Any) -> Iterator[Found]:
        whole = kind is int
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            yield "form", key, value, f"write a {'whole ' * whole}number"
        elif not lowest <= value <= most:  # NaN is not
            yield "range", key, value, f"from {lowest:g} to {most:g}"

    return check


def _optional(check: Check) -> Check:
    def either(key: str, value: Any) -> Iterator[Found]:
        if value is not None:
            yield from check(key, value)

    return either


def _one_of(*known: str) -> Check:
    def check(key: str, value: Any) -> Iterator[Found]:
        if value not in known:
            otherwise = f"; write {', '.join(known)}"
            yield "form", key, value, suggestion(str(value), known, otherwise=otherwise)[2:]

    return check


def _matching(pattern: re.Pattern[str], advice: str) -> Check:
    def check(key: str, value: Any) -> Iterator[Found]:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield "form", key, value, advice

    return check


def _boolean(key: str, value: Any) -> Iterator[Found]:
    if not isinstance(value, bool):
        yield "form", key, value, "write true or false"


def _listed(check: Check, most: int, gap: str = "") -> Check:
    def each(key: str, value: Any) -> Iterator[Found]:
        if gap and not value:
            yield "gap", key, _Words("is empty"), gap
        elif not isinstance(value, list):
            yield "form", key, value, "write a list in brackets"
        elif len(value) > most:
            yield "form", key, _Words(f"{len(value):,} entries"), f"at most {most:,}"
        else:
            for number, item in enumerate(value):
                yield from check(f"{key}[{number}]", item)

    return each


def _options(key: str, value: Any) -> Iterator[Found]:
    """Check options: a mapping of plain values, kept and shown as data."""
    if not isinstance(value, Mapping):
        yield "form", key, value, "write KEY: VALUE"
        return
    if value and not isinstance(value.get(TARGET), str):
        yield "form", f"{key}.{TARGET}", value.get(TARGET), "name the class, as the run has it"
    yield from _plain(key, value)


def _plain(key: str, value: Any) -> Iterator[Found]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _text(_LINE)(key, name)
            yield from _plain(f"{key}.{name}", inner)
    elif isinstance(value, list):
        for item in value:
            yield from _plain(key, item)
    elif isinstance(value, str) and value:
        yield from _text(_LINE)(key, value)
    elif isinstance(value, int | float):
        if not abs(value) <= _LARGEST:
            yield "range", key, value, f"write a number up to {_LARGEST:g}, or null"
    elif value is not None and not isinstance(value, str):
        yield "form", key, value, "write text, numbers, true, false, null, lists and mappings"


@dataclass(frozen=True, slots=True)
class _Keys:
    """Checks a mapping with these keys, all of them needed."""

    keys: Mapping[str, Check]

    def __call__(self, key: str, value: Any) -> Iterator[Found]:
        if not isinstance(value, Mapping):
            yield "form", key, value, f"write {', '.join(f'{name}: …' for name in self.keys)}"
            return
        for name in value:
            if name not in self.keys:
                listed = f"; there are {', '.join(self.keys)}"
                meant = suggestion(str(name), self.keys, otherwise=listed)
                yield "form", _inside(key, name), _Words("no such key"), meant[2:]
        for name, check in self.keys.items():
            if name in value:
                yield from check(_inside(key, name), value[name])
            elif name in _OPTIONAL:
                continue
            elif name in GAPS:
                yield "gap", _inside(key, name), _Words("is missing"), GAPS[name]
            else:
                yield "form", _inside(key, name), _Words("is missing"), "write it"


def _inside(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _title(key: str, value: Any) -> Iterator[Found]:
    yield from _text(_TITLE)(key, value)
    if isinstance(value, str) and value != visible(value):
        yield "form", key, value, "remove characters that are not visible"


_NAMED = {"name": _title, "version": _text(_TITLE), "options": _options}
_ABOUT = _Keys(
    {
        "model": _title,
        "description": _text(_PARAGRAPH, lines=True, gap=GAPS["description"]),
        "authors": _listed(_text(_LINE), _MOST_AUTHORS, GAPS["authors"]),
        "code": _optional(
            _Keys(
                {
                    "url": _matching(
                        _URL,
                        "write an address as in https://example.org/model, without names before @",
                    ),
                    "commit": _matching(_COMMIT, "write a commit, or a version, in quotes"),
                }
            )
        ),
        "licence": _text(_LINE, gap=GAPS["licence"]),
        "algorithm": _optional(_options),
        "parameters": _optional(_number(int)),
        "protocol": _Keys(_NAMED),
        "when": _one_of(*WHEN, UNKNOWN),
        "data": _Keys(
            {
                **_NAMED,
                "fingerprint": _matching(
                    re.compile(f"(?:{FINGERPRINT.pattern})?"), "write it as the run has it"
                ),
                "users": _number(int, 1),
                "reviews": _number(int, 1),
                "read": _optional(_Keys({"users": _number(int, 1), "reviews": _number(int, 1)})),
            }
        ),
        "pretrained_on": _optional(
            _Keys(
                {
                    "description": _text(_PARAGRAPH, lines=True, gap="name the data"),
                    "users": _listed(
                        _matching(FINGERPRINT, "write a fingerprint: 16 digits from 0 to f"),
                        _MOST_USERS,
                    ),
                }
            )
        ),
        "sees_truth": _boolean,
        "seed": _optional(_number(int, -_LARGEST)),
        "curves_per_user": _number(int, 0, _MOST_CURVES),
        "hardware": _optional(_Keys({"cpu": _text(_LINE), "cores": _number(int, 1)})),
        "seconds_per_user": _optional(_number(float)),
        "tuned_on": _text(_PARAGRAPH, lines=True, gap=GAPS["tuned_on"]),
        "srs_eval": _optional(_text(_TITLE)),
        "prereg": _optional(
            _Keys(
                {
                    "digest": _matching(re.compile("[0-9a-f]{64}"), "write it as the run has it"),
                    "decision": _optional(_matching(_DECISION, "write it as srs_eval.submit does")),
                    "verdict": _listed(_text(_PARAGRAPH), _MOST_AUTHORS),
                    "content": _plain,
                }
            )
        ),
    }
)
