"""Copy the tables that benchmarks printed into their page.

    python benchmarks/engine.py | python benchmarks/publish.py engine

and likewise ``peers`` and ``cohort``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).with_name("README.md")


def published(page: str, name: str, printed: str) -> str:
    """Return the page with other text between the marks of a benchmark."""
    between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not between.search(page):
        raise SystemExit(f"{PAGE.name} has no place for {name!r}")
    return between.sub(lambda found: f"{found[1]}\n{printed.strip()}\n\n{found[2]}", page)


if __name__ == "__main__":
    text = sys.stdin.read()
    text = text[text.index("|") :] if "|" in text else f"```text\n{text}```"
    PAGE.write_text(
        published(PAGE.read_text(encoding="utf-8"), sys.argv[1], text), encoding="utf-8"
    )
