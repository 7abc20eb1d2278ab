"""Where options are, and the page of ``--help``, which waits for nothing heavy."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import yaml

PLUG_INS = "srs_eval.conf"  # Entry points of packages that bring options
_PACKAGE = Path(__file__).resolve().parents[1]
# Algorithms on the page of --help, beside those of plug-ins
_SHOWN = {"avg", "dash", "forecast", "fsrs6", "fsrs7", "hlr", "lstm", "sm2"}


def conf_folder() -> Path:
    """Return the folder of our options: beside the package in a checkout, inside it in a wheel."""
    inside = _PACKAGE / "conf"
    return inside if inside.is_dir() else _PACKAGE.parent / "conf"


def package_folders() -> Iterator[tuple[str, Path]]:
    """Go through installed packages with options and their folders by name, importing none."""
    for entry in sorted(entry_points(group=PLUG_INS)):
        top, *inner = entry.module.split(".")
        spec = find_spec(top)
        for place in (spec and spec.submodule_search_locations) or []:
            folder = Path(place, *inner, "conf")
            if folder.is_dir():
                yield entry.name, folder.resolve()


def help_page(words: Sequence[str]) -> str:
    """Return the texts of ``config.yaml`` with the options of each group between them."""
    flags = ArgumentParser(add_help=False)
    flags.add_argument("--config-dir", "-cd", type=Path)
    own = flags.parse_known_args(words)[0].config_dir
    folders = [conf_folder(), *(folder for _, folder in package_folders()), *([own] if own else [])]
    groups: dict[str, set[str]] = {}
    for file in (file for folder in folders for file in folder.glob("*/*.yaml")):
        groups.setdefault(file.parent.name, set()).add(file.stem)
    hidden = {file.stem for file in (conf_folder() / "algo").glob("*.yaml")} - _SHOWN
    groups["algo"] -= hidden
    texts = {group: f"{group}: {', '.join(sorted(groups[group]))}" for group in sorted(groups)}
    texts["algo"] += f", and {len(hidden)} more (algo=? lists them)"
    listed = [textwrap.fill(text, 88, subsequent_indent="  ") for text in texts.values()]
    config = (conf_folder() / "config.yaml").read_text(encoding="utf-8")
    around = yaml.safe_load(config)["hydra"]["help"]
    return "\n".join([around["header"], *listed, "", around["footer"]])
