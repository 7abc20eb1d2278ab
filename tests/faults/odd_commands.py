"""Malformed command lines."""

from __future__ import annotations

from pathlib import Path
from random import Random

import command_lines
from verdicts import LONGEST_MESSAGE, Verdict, first_problem


def command_line(random: Random, folder: Path) -> Verdict:
    """Run a command line made of odd words, of which few fit together."""
    command_lines.prepare(folder)
    ended = command_lines.attempt(command_lines.command_line(random))
    shown = [" ".join(ended.words), ended.text[-400:]]
    if ended.kind not in ("accepted", "clear error", "recorded"):
        return Verdict(ended.kind, first_problem(shown))
    if (folder / "PWNED").exists():
        return Verdict("wrong", first_problem(["code of an option ran", *shown]))
    # Words may be repeated, once: people know what they wrote.
    longest = LONGEST_MESSAGE + sum(map(len, ended.words))
    if ended.kind == "clear error" and len(ended.text) > longest:
        return Verdict("wrong", f"a message of {len(ended.text):,} characters: {shown[0][:300]}")
    return Verdict(ended.kind)
