"""The words of the repository: standard terms instead of the phrases that are easiest to get wrong.

``python tests/test_wording.py`` lists every place, those in exempt folders too. The glossary in
CONTRIBUTING.md has the terms to use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What is wrong, and what to write instead.
PHRASES = {
    r"what (?:came|comes|has come) of": "result",
    r"what (?:became|becomes|has become) of": "outcome, result",
    r"(?:is|are|was|were|been) told of": "receives, is called with",
    r"(?:told|tells?|telling) (?:\w+ )?apart": "distinguish; not significantly different",
    r"(?:of|to|from|with|by) whom": "name the noun again",
    r"whoever|whomever": "anyone who, the program that",
    r"(?:nobody|somebody)(?:'s| (?=[a-z]))": "no one, no user; someone, another program",
    r"(?:gone|goes|going|went|go) on from": "resumed from, continued from",
    r"deaf to": "ignores",
    r"play(?:s|ed)? by the same rules": "eligible",
    r"a person's own": "the user's",
    r"no news": "not reported",
    r"by which (?:it is|they are) known": "its name",
    r"put(?:s|ting)? away": "save, store",
}
OPENERS = r'"""(?:Say|Tell|Name(?! (?:of|that))|Give|Put|Take)\b'
# Folders and files that are not swept yet: to be emptied.
EXEMPT: tuple[str, ...] = ()
_TEXTS = {".py", ".md", ".yaml", ".toml", ".txt", ".cff", ""}
_FOLDERS = [
    "benchmarks",
    "conf",
    "docs",
    "examples",
    "experiments",
    "hydra_plugins",
    "scripts",
    "srs_eval",
    "tests",
]
_GLOSSARY = re.compile(r"<!-- glossary -->.*?<!-- /glossary -->", re.S)
_WRONG = re.compile(
    rf"\b(?:{'|'.join(PHRASES).replace(' ', chr(92) + 's+')})\b|{OPENERS}", re.IGNORECASE
)


def texts() -> Iterator[Path]:
    """Every text file that people write, but this one."""
    for path in [*ROOT.glob("*.*"), *(p for name in _FOLDERS for p in (ROOT / name).rglob("*"))]:
        is_data = {"golden", "__pycache__"} & {*path.parts} or path.name == "LICENSE"
        if path.is_file() and path.suffix in _TEXTS and not is_data and path != Path(__file__):
            yield path


def offences(path: Path) -> list[str]:
    """Lines with wrong words, as ``file:line: words``."""
    text = path.read_text(encoding="utf-8", errors="replace")
    text = _GLOSSARY.sub(lambda found: "\n" * found[0].count("\n"), text)
    place = path.relative_to(ROOT).as_posix()
    return [
        f"{place}:{text.count(chr(10), 0, found.start()) + 1}: {' '.join(found[0].split())}"
        for found in _WRONG.finditer(text)
    ]


def test_texts_use_the_standard_terms() -> None:
    wrong = [line for path in texts() for line in offences(path) if not line.startswith(EXEMPT)]
    assert wrong == [], "see the table Words in CONTRIBUTING.md"


if __name__ == "__main__":
    print("\n".join(line for path in sorted(texts()) for line in offences(path)))  # noqa: T201
