"""The files behind the options of the command: where they lie and what they say."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

_WIDTH = 96


def conf_folder() -> Path:
    """Folder of the options: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def help_page(extra_folders: Iterable[Path] = ()) -> str:
    """Return what ``--help`` tells: the texts of config.yaml around the options there are."""
    help_texts = OmegaConf.load(conf_folder() / "config.yaml").hydra.help
    extra = list(extra_folders)
    listed = [in_lines(f"{group}: ", options(group, extra)) for group in sorted(_groups(extra))]
    middle = "\n".join(["Groups and their options (group=option):", "", *listed])
    return "\n".join([help_texts.header, middle, "", help_texts.footer])


def in_lines(before: str, names: Iterable[str], *, indent: int = 2) -> str:
    """List names after a text, on as many lines as that takes."""
    return textwrap.fill(
        before + ", ".join(names), _WIDTH, subsequent_indent=" " * indent, break_long_words=False
    )


def options(group: str, extra_folders: Iterable[Path] = ()) -> list[str]:
    """Names that can be given for a group."""
    return sorted(path.stem for path in _files(group, extra_folders))


def described(group: str, extra_folders: Iterable[Path] = ()) -> dict[str, str]:
    """Say of each option of a group what it is, and its arguments with their defaults."""
    return {path.stem: _description(path) for path in _files(group, extra_folders)}


def arguments(group: str, extra_folders: Iterable[Path] = ()) -> dict[str, set[str]]:
    """Dotted paths of the arguments of each option of a group."""
    return {path.stem: _arguments(path) for path in _files(group, extra_folders)}


def values(group: str, name: str, extra_folders: Iterable[Path] = ()) -> dict[str, Any]:
    """Top-level arguments of an option as its file has them."""
    content: Any = {}
    for path in _files(group, extra_folders):
        if path.stem == name:
            content = OmegaConf.to_container(OmegaConf.load(path))
    return content if isinstance(content, dict) else {}


def defaults() -> dict[str, str]:
    """Name the option of each group that is taken unless another is chosen."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(conf_folder() / "config.yaml"))
    chosen = [entry for entry in loaded["defaults"] if isinstance(entry, dict)]
    return {str(group): str(name) for entry in chosen for group, name in entry.items()}


def paths(node: Any, prefix: str = "") -> list[str]:
    """Dotted paths of everything below a node of a configuration."""
    if not isinstance(node, DictConfig):
        return []
    names = [str(name) for name in node if not str(name).startswith("_")]
    below = [path for name in names for path in paths(node._get_node(name), f"{prefix}{name}.")]
    return [prefix + name for name in names] + below


def _groups(extra_folders: Iterable[Path]) -> set[str]:
    folders = [conf_folder(), *extra_folders]
    return {path.parent.name for folder in folders for path in folder.glob("*/*.yaml")}


def _files(group: str, extra_folders: Iterable[Path]) -> list[Path]:
    """One file for each option; where two folders have the same one, the later folder's."""
    folders = [conf_folder(), *extra_folders]
    found = {path.stem: path for folder in folders for path in (folder / group).glob("*.yaml")}
    return [found[name] for name in sorted(found)]


def _arguments(file: Path) -> set[str]:
    """Arguments in an option's file and in those it builds on."""
    loaded = OmegaConf.load(file)
    built_on: Sequence[Any] = loaded.get("defaults", []) if isinstance(loaded, DictConfig) else []
    others = [file.with_name(f"{name}.yaml") for name in built_on if isinstance(name, str)]
    below = [_arguments(other) for other in others if other.is_file()]
    return set(paths(loaded)).union(*below) - {"defaults"}


def _description(file: Path) -> str:
    """Take the comment on top of an option's file, and its arguments."""
    lines = file.read_text(encoding="utf-8").splitlines()
    top = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    comment = [line.lstrip("# ") for line in lines[:top] if "@package" not in line]
    content: Any = OmegaConf.to_container(OmegaConf.load(file))
    values = content if isinstance(content, dict) else {}
    shown = [
        f"{name}={'null' if value is None else value}"
        for name, value in values.items()
        if name not in ("_target_", "defaults", "hydra") and not isinstance(value, dict)
    ]
    return "\n".join([*comment, *([", ".join(shown)] if shown else [])])
