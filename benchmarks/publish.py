"""Copy a table that a benchmark printed into a page, between the marks of its name.

python benchmarks/engine.py | python benchmarks/publish.py engine
python benchmarks/interval_coverage.py | python benchmarks/publish.py coverage docs/intervals.md
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
        raise SystemExit(f"the page has no place for {name!r}")
    return between.sub(lambda found: f"{found[1]}\n{printed.strip()}\n\n{found[2]}", page)


if __name__ == "__main__":
    printed = sys.stdin.read()
    printed = printed[printed.index("|") :] if "|" in printed else f"```text\n{printed}```"
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else PAGE
    place.write_text(published(place.read_text("utf-8"), sys.argv[1], printed), "utf-8")
