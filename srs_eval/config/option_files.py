"""The files behind the options of the command: where they lie and what they say.

They lie in srs_eval, in packages that have an entry point for them, and in folders of a person's
own. Where two have the same option, the person's own is taken, then that of srs_eval, so that no
package changes what an option means.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from yaml import YAMLError

from srs_eval.errors import ConfigError

ENTRY_POINTS = "srs_eval.conf"
# What Hydra names as the provider of the options in a person's own folders.
OWN = "own"
_WIDTH = 96
_MOST_VALUES = 100_000  # in one file of options


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package with options.

    Attributes
    ----------
    name : str
        What it was installed as.
    folder : Path
        Its folder of options, which has one folder for each group.
    """

    name: str
    folder: Path


_own: list[Path] = []


@contextmanager
def also_in(folders: Iterable[Path]) -> Iterator[None]:
    """Have Hydra find the options in these folders too, before all others."""
    _own[:] = folders
    try:
        yield
    finally:
        _own.clear()


def own_folders() -> tuple[Path, ...]:
    """Folders of options that a person has given with the current command."""
    return tuple(_own)


def conf_folder() -> Path:
    """Folder of the options: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


@cache
def packages() -> tuple[Package, ...]:
    """Find the packages whose entry point leads to a folder of options; none is imported."""
    found = [(_name(entry), _package_folder(entry)) for entry in _entry_points()]
    return tuple(Package(name, folder) for name, folder in found if folder is not None)


def package_problems() -> list[str]:
    """Say which packages have options that cannot be found, or have names that are taken."""
    problems = [
        f"{_name(entry)}: its options are left out, because its entry point names {entry.value!r}, "
        "and there is no package of that name with a folder conf"
        for entry in _entry_points()
        if _package_folder(entry) is None
    ]
    taken = dict.fromkeys(_options_in(conf_folder()), "srs_eval")
    for package in packages():
        its = _options_in(package.folder)
        problems += [
            f"{package.name}: its {option} is left out, because {taken[option]} has one"
            for option in its
            if option in taken
        ]
        taken = dict.fromkeys(its, package.name) | taken
    return problems


def hidden(choices: Mapping[str, str], folders: Sequence[Path]) -> list[str]:
    """Say which options in use are files of a person's own in place of somebody else's.

    Parameters
    ----------
    choices : mapping of group to option
        What is in use.
    folders : sequence of Path
        The person's own folders of options.
    """
    others = {"srs_eval": conf_folder()} | {package.name: package.folder for package in packages()}
    found = []
    for group, name in choices.items():
        file = Path(group, f"{name}.yaml")
        own = [folder / file for folder in folders if (folder / file).is_file()]
        theirs = [other for other, folder in others.items() if (folder / file).is_file()]
        if own and theirs:
            found.append(f"{group}={name} is that of {own[-1]}, not {theirs[0]}'s")
    return found


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
    files = {path.stem: path for path in _files(group, extra_folders)}
    return {name: _arguments(path, files) for name, path in files.items()}


def values(group: str, name: str, extra_folders: Iterable[Path] = ()) -> dict[str, Any]:
    """Top-level arguments of an option as its file has them."""
    content: Any = {}
    for path in _files(group, extra_folders):
        if path.stem == name:
            content = OmegaConf.to_container(OmegaConf.load(path))
    return content if isinstance(content, dict) else {}


def composed_option(group: str, name: str) -> DictConfig:
    """Load an option with those of its group that it builds on, as Hydra composes them.

    Raises
    ------
    ConfigError
        If it cannot be read, or builds on anything else.
    """
    files = {path.stem: path for path in _files(group, ())}
    file = files[name]
    if fault := _fault(file):
        raise ConfigError(f"{group}={name}: {file} cannot be read: {fault}")
    own = _loaded(file)
    parts: Sequence[Any] = own.pop("defaults", ["_self_"])
    if "_self_" not in parts:
        parts = [*parts, "_self_"]
    unknown = [str(part) for part in parts if part != "_self_" and part not in files]
    if unknown:
        raise ConfigError(
            f"{group}={name}: its defaults ({', '.join(unknown)}) need the command, "
            "python -m srs_eval"
        )
    layers = [own if part == "_self_" else composed_option(group, part) for part in parts]
    composed = OmegaConf.merge(*layers)
    assert isinstance(composed, DictConfig)
    return composed


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


def _entry_points() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (_name(entry), entry.value))


def _name(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.name


def _package_folder(entry: EntryPoint) -> Path | None:
    """Find the folder of a package without importing the package.

    A package within a package is looked for in the folder of the outer one: to ask Python for it
    would import the outer one.
    """
    outermost, *inner = entry.value.split(".")
    try:
        spec = find_spec(outermost)
    except (ImportError, ValueError):
        spec = None
    places = (spec.submodule_search_locations if spec is not None else None) or []
    folders = [Path(place, *inner).resolve() / "conf" for place in places]
    return next((folder for folder in folders if folder.is_dir()), None)


def _options_in(folder: Path) -> list[str]:
    return sorted(f"{path.parent.name}={path.stem}" for path in folder.glob("*/*.yaml"))


def _folders(extra_folders: Iterable[Path]) -> list[Path]:
    """Name every folder of options; of two that have the same option, the later one counts."""
    others = [package.folder for package in reversed(packages())]
    return [*others, conf_folder(), *extra_folders]


def _groups(extra_folders: Iterable[Path]) -> set[str]:
    folders = _folders(extra_folders)
    return {path.parent.name for folder in folders for path in folder.glob("*/*.yaml")}


def _files(group: str, extra_folders: Iterable[Path]) -> list[Path]:
    """One file for each option; where two folders have the same one, the later folder's."""
    folders = _folders(extra_folders)
    found = {path.stem: path for folder in folders for path in (folder / group).glob("*.yaml")}
    return [found[name] for name in sorted(found)]


def _loaded(file: Path) -> Any:
    """Load a file; one that cannot be read says so when it is chosen, and is no news before."""
    try:
        return OmegaConf.create({}) if _is_bomb(file) else OmegaConf.load(file)
    except (YAMLError, UnicodeDecodeError, OSError, RecursionError):
        return OmegaConf.create({})


def _is_bomb(file: Path) -> bool:
    """Whether the text of a file stands for very much more, by aliases of aliases."""
    text = file.read_text(encoding="utf-8")
    return "*" in text and _size(yaml.compose(text, yaml.SafeLoader), {}) > _MOST_VALUES


def _size(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Count the values of a node, those of an alias each time it is used."""
    if node is None or isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = _MOST_VALUES  # inside itself
        parts = (
            [part for pair in node.value for part in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


def bombs(folders: Iterable[Path]) -> list[str]:
    """Name the files in a person's own folders that must not even be loaded."""
    return [
        f"{file}: more than {_MOST_VALUES:,} values, by aliases of aliases"
        for file in _own_files(folders)
        if not _fault(file) and _is_bomb(file)
    ]


def unreadable(folders: Iterable[Path]) -> list[str]:
    """Name the files in a person's own folders that are no options, and say why."""
    faults = {file: _fault(file) for file in _own_files(folders)}
    return [f"{file}: cannot be read: {fault}" for file, fault in faults.items() if fault]


def _own_files(folders: Iterable[Path]) -> list[Path]:
    depths = ("*.yaml", "*/*.yaml", "*/*/*.yaml")  # groups may be in groups, as hydra/launcher
    return sorted(file for folder in folders for depth in depths for file in folder.glob(depth))


def _fault(file: Path) -> str:
    """Say why a file is no mapping of values; an empty text if it is one."""
    try:
        content = yaml.compose(file.read_text(encoding="utf-8"), yaml.SafeLoader)
    except UnicodeDecodeError as error:
        return f"it is no UTF-8 text ({error.reason} at byte {error.start})"
    except RecursionError:
        return "it is nested too deeply"
    except (YAMLError, OSError) as error:
        return str(error).replace("\n", " ")
    is_mapping = content is None or isinstance(content, yaml.MappingNode)
    return "" if is_mapping else "it holds no keys"


def _arguments(file: Path, others: Mapping[str, Path]) -> set[str]:
    """Arguments in an option's file and in those it builds on."""
    loaded = _loaded(file)
    built_on: Sequence[Any] = loaded.get("defaults", []) if isinstance(loaded, DictConfig) else []
    named = [others[name] for name in built_on if name in others and others[name] != file]
    below = [_arguments(other, others) for other in named]
    return set(paths(loaded)).union(*below) - {"defaults"}


def _description(file: Path) -> str:
    """Take the comment on top of an option's file, and its arguments."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    top = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    comment = [line.lstrip("# ") for line in lines[:top] if "@package" not in line]
    content: Any = OmegaConf.to_container(_loaded(file))
    values = content if isinstance(content, dict) else {}
    shown = [
        f"{name}={'null' if value is None else value}"
        for name, value in values.items()
        if name not in ("_target_", "defaults", "hydra") and not isinstance(value, dict)
    ]
    return "\n".join([*comment, *([", ".join(shown)] if shown else [])])
