"""Write the table of docs/algorithms.md from what the algorithms and their options say.

    python docs/make_algorithms.py

Every file of conf/algo is an option. The class it names says in its docstring what it is, from
where, what it reads, how many parameters it has, and its published row; `Facts` finds these. On the
site, the docstrings follow below the table.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf
from tabulate import tabulate

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.runs.config import composed

PAGE = Path(__file__).with_name("algorithms.md")
OPTIONS = Path(__file__).parents[1] / "conf" / "algo"
BETWEEN = re.compile(r"(<!-- table -->\n\n).*?(\n\n<!-- /table -->)", re.S)

_READS = re.compile(r"(?:\bReads|\b(?:network|encoder) reads),? (.+?)(?:;|\. |\.$)")
_COUNT = re.compile(r"(?:(\d[\d,]*)|\b(no)) parameters?\b")
_SHARE = re.compile(r"\bparameters?\b")
_PUBLISHED = re.compile(r"\b(?i:published) rows?\b.*?log loss (\d\.\d+)")
_NOT_PUBLISHED = re.compile(r"\bNo published row\b")
_SOURCE = re.compile(r"\b(?:19|20)\d\d\b|https?://|\bdocs/")
_SECTION = re.compile(r"^(?:\S.*\n-{3,}|(?:Other o|O)ptions: see)", re.M)


@dataclass(frozen=True)
class Facts:
    """What the docstring of a class says, None where it does not."""

    text: str

    @property
    def paragraphs(self) -> list[str]:
        """What comes before the lists of parameters and errors; commands keep their lines."""
        described = _SECTION.split(self.text)[0].strip().split("\n\n")
        return [part if part.startswith("    ") else " ".join(part.split()) for part in described]

    @property
    def _flat(self) -> str:
        return " ".join(self.text.split())

    @property
    def reads(self) -> str | None:
        """What of a review log it looks at."""
        found = _READS.search(" ".join(self.paragraphs))
        return found[1] if found else None

    @property
    def count(self) -> str | None:
        """How many parameters it has; "varies" where that depends on others."""
        found = _COUNT.search(self._flat)
        if found and not self._flat[found.end() :].startswith(" and the other"):
            return found[1] or "0"
        return "varies" if _SHARE.search(self._flat) else None

    @property
    def published(self) -> str | None:
        """Log loss of its published row, "" where it says that there is none."""
        if _NOT_PUBLISHED.search(self._flat):
            return ""
        found = _PUBLISHED.search(self._flat)
        return found[1] if found else None

    @property
    def missing(self) -> list[str]:
        """Return the documented facts that are missing."""
        said = {
            "what it reads": self.reads,
            "how many parameters it has": self.count,
            "its published row, or that there is none": self.published,
            "a paper, year or address": _SOURCE.search(self._flat),
        }
        return [part for part, found in said.items() if found is None]


@dataclass(frozen=True)
class Option:
    """A file of conf/algo and the class it names."""

    path: Path

    @property
    def name(self) -> str:
        """What is typed after ``algo=``."""
        return self.path.stem

    @cached_property
    def content(self) -> dict[str, Any]:
        """The file, with what it is built on."""
        loaded: Any = OmegaConf.to_container(composed({"algo": self.name})[0].algo)
        return dict(loaded)

    @property
    def target(self) -> type:
        """The class."""
        return get_class(self.content["_target_"])

    @property
    def source(self) -> str:
        """The file of the class, as a link."""
        return f"../{self.target.__module__.replace('.', '/')}.py"

    @property
    def facts(self) -> Facts:
        """What the class says of itself."""
        return Facts(inspect.getdoc(self.target) or "")

    @property
    def is_variant(self) -> bool:
        """Whether an argument is not at the default of the class: its published row is another."""
        signature = inspect.signature(self.target).parameters
        plain = {key: value for key, value in self.content.items() if not isinstance(value, dict)}
        return any(
            value != signature[key].default for key, value in plain.items() if key != "_target_"
        )

    @cached_property
    def algorithm(self) -> Algorithm:
        """The algorithm with the options of the file."""
        built: Algorithm = instantiate(self.content, _convert_="all")
        return built

    @property
    def marks(self) -> str:
        """The marks of the table."""
        pretrains = "weights" in self.content and hasattr(self.algorithm, "pretrain")
        said = (pretrains, self.algorithm.sees_truth)
        return " ".join(mark for mark, holds in zip("†‡", said, strict=True) if holds)

    @property
    def comment(self) -> str:
        """The first sentence of the file."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        top = next(n for n, line in enumerate(lines) if not line.startswith("#"))
        told = " ".join(line.removeprefix("#").strip() for line in lines[:top])
        return re.split(r"(?<!et al)\.(?: |$)", told)[0]


def options() -> list[Option]:
    """Every option, by name."""
    return [Option(path) for path in sorted(OPTIONS.glob("*.yaml"))]


def table(every: list[Option]) -> str:
    """Format all options, one per line."""
    rows = []
    for option in every:
        facts = option.facts
        count, published = facts.count, facts.published
        fitted = option.content.get("fit") != "default"
        rows.append(
            [
                f"[`{option.name}`]({option.source}) {option.marks}".strip(),
                option.comment,
                count if fitted or count == "0" else f"{count}, not fitted",
                "" if option.is_variant else published,
                option.algorithm.when.replace("_", " "),
                re.sub(":math:`([^`]+)`", r"$\1$", facts.reads or "").replace("``", "`"),
            ]
        )
    headers = ["`algo=`", "what it is", "parameters", "published log loss", "predicts", "reads"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def classes() -> str:
    """Return where the site describes the class of each option, once."""
    found = {option.content["_target_"] for option in options()}
    by_name = sorted(found, key=lambda path: path.rpartition(".")[2])
    described = "\n".join(f".. autoclass:: {path}" for path in by_name)
    return f"## Classes\n\n```{{eval-rst}}\n{described}\n```\n"


def page() -> str:
    """Return the whole page: what stands there, with the table made anew."""
    text = PAGE.read_text(encoding="utf-8")
    return BETWEEN.sub(lambda found: found[1] + table(options()) + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
