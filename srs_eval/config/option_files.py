"""Option files: where they are, and what they contain.

They are in srs_eval, in packages with an entry point for them, and in the user's own folders. If
two places have the same option, the user's file is used, then that of srs_eval, so that no
package changes an option of srs_eval.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from srs_eval.errors import ConfigError
from srs_eval.text.yaml_files import HarmfulError, YamlError, parsed

ENTRY_POINTS = "srs_eval.conf"
# Hydra's provider of the options in the user's own folders.
OWN = "own"
_WIDTH = 96


class Package(NamedTuple):
    """An installed package with options: its distribution, and the folder of its groups."""

    name: str
    folder: Path


_own: list[Path] = []


@contextmanager
def also_in(folders: Iterable[Path]) -> Iterator[None]:
    """Make Hydra look for options in these folders first."""
    before, _own[:] = _own.copy(), folders
    try:
        yield
    finally:
        _own[:] = before


def own_folders() -> tuple[Path, ...]:
    """Return the user's folders of options in the current command."""
    return tuple(_own)


def conf_folder() -> Path:
    """Return the folder of the options: next to the package in a checkout, else inside it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


@cache
def packages() -> tuple[Package, ...]:
    """Find packages with options by their entry points, without importing them."""
    found = [(_name(entry), _package_folder(entry)) for entry in _entry_points()]
    return tuple(Package(name, folder) for name, folder in found if folder is not None)


def package_problems() -> list[str]:
    """Return the problems of packages: missing folders, and names already in use."""
    problems = [
        f"{_name(entry)}: its options are left out, because its entry point names {entry.value!r}, "
        "and there is no package of that name with a folder conf"
        for entry in _entry_points()
        if _package_folder(entry) is None
    ]
    taken = dict.fromkeys(_options_in(conf_folder()), "srs_eval")
    for name, folder in packages():
        its = _options_in(folder)
        problems += [
            f"{name}: its {option} is left out, because {taken[option]} has one"
            for option in its
            if option in taken
        ]
        taken = dict.fromkeys(its, name) | taken
    return problems


def shadowed_options(choices: Mapping[str, str]) -> list[str]:
    """Return a message for each chosen option whose user file shadows a packaged one."""
    others = {"srs_eval": conf_folder()} | dict(packages())
    found = []
    for group, name in choices.items():
        file = Path(group, f"{name}.yaml")
        own = [folder / file for folder in _own if (folder / file).is_file()]
        theirs = [other for other, folder in others.items() if (folder / file).is_file()]
        if own and theirs:
            found.append(f"{group}={name} is that of {own[-1]}, not {theirs[0]}'s")
    return found


def help_page() -> str:
    """Return the page of ``--help``: the texts of config.yaml and the list of options."""
    help_texts = OmegaConf.load(conf_folder() / "config.yaml").hydra.help
    groups = sorted({path.parent.name for at in _folders() for path in at.glob("*/*.yaml")})
    listed = [in_lines(f"{group}: ", options(group)) for group in groups]
    middle = "\n".join(["Groups and their options (group=option):", "", *listed])
    return "\n".join([help_texts.header, middle, "", help_texts.footer])


def in_lines(before: str, names: Iterable[str]) -> str:
    """Format a list of names after a text, wrapped into lines."""
    return textwrap.fill(
        before + ", ".join(names), _WIDTH, subsequent_indent="  ", break_long_words=False
    )


def options(group: str) -> list[str]:
    """Return the names of the options of a group."""
    return sorted(name for name in _files(group) if "/" not in name)


def described(group: str) -> dict[str, str]:
    """Return the description of each option of a group, with its arguments and defaults."""
    files = _files(group)
    return {name: _description(files[name], files) for name in options(group)}


def arguments(group: str, *names: str) -> dict[str, set[str]]:
    """Return the dotted names of the arguments of options of a group, by default of all."""
    files = _files(group)
    listed = [name for name in names or options(group) if name in files]
    return {name: set(paths(_composed(files[name], files))) for name in listed}


def values(group: str, name: str) -> dict[str, Any]:
    """Return the top-level arguments of an option."""
    files = _files(group)
    return _content(_composed(files[name], files)) if name in files else {}


def varied(group: str, name: str) -> dict[str, list[str]]:
    """Return the arguments that an overlay gives several values, by group.

    Groups are left out of which the overlay chooses the option itself.
    """
    file = _files(group).get(name)
    content = {} if file is None else _content(_loaded(file))
    params: Any = content
    for key in ("hydra", "sweeper", "params"):
        params = params.get(key) if isinstance(params, dict) else None
    keys = [str(key).partition(".") for key in params] if isinstance(params, dict) else []
    listed = content.get("defaults")
    entries = listed if isinstance(listed, list) else []
    parts = [str(part) for entry in entries if isinstance(entry, dict) for part in entry]
    own = {part.removeprefix("override").strip().lstrip("/") for part in parts}
    own |= {of for of, _, path in keys if not path}
    found: dict[str, list[str]] = {}
    for of, _, path in keys:
        if path and of not in own:
            found.setdefault(of, []).append(path)
    return found


def composed_option(group: str, name: str) -> DictConfig:
    """Load an option with those of its group that it builds on, as Hydra composes them."""
    files = _files(group)
    file = files[name]
    if fault := _fault(file):
        raise ConfigError(f"{group}={name}: {file} cannot be read: {fault}")
    built_on = [part for part, _ in _built_on(_loaded(file)) if part != "_self_"]
    if unknown := [part for part in built_on if part not in files]:
        raise ConfigError(
            f"{group}={name}: its defaults ({', '.join(unknown)}) need the command, "
            "python -m srs_eval"
        )
    composed = _composed(file, files)
    assert isinstance(composed, DictConfig)
    return composed


def _composed(file: Path, known: Mapping[str, Path]) -> Any:
    """Merge an option with those it builds on, as Hydra does; what is not known is left out."""
    own = _loaded(file)
    layers = []
    for name, place in _built_on(own):
        beside = f"{file.parent.name}/{name}"
        part = beside if beside in known else name
        if part == "_self_":
            layers.append(own)
        elif known.get(part, file) != file:
            other = _composed(known[part], known)
            layers.append({place: other} if place else other)
    if isinstance(own, DictConfig):
        own.pop("defaults", None)
    return OmegaConf.merge(*layers)


def _built_on(loaded: Any) -> list[tuple[str, str]]:
    """Return what an option is made of, in order: its parts, and where each of them goes."""
    listed = loaded.get("defaults", []) if isinstance(loaded, DictConfig) else []
    parts = [str(part).partition("@")[::2] for part in listed]
    found = [(name, "" if place == "_here_" else place) for name, place in parts]
    return found if ("_self_", "") in found else [*found, ("_self_", "")]


def defaults() -> dict[str, str]:
    """Return the default option of each group."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(conf_folder() / "config.yaml"))
    chosen = [entry for entry in loaded["defaults"] if isinstance(entry, dict)]
    return {str(group): str(name) for entry in chosen for group, name in entry.items()}


def paths(node: Any, prefix: str = "") -> list[str]:
    """Return the dotted names of all keys below a node of a configuration."""
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

    The folder of a nested package is found below that of the outermost package, because
    `find_spec` would import the outer one.
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


def _folders() -> list[Path]:
    """Return all folders of options, in order of increasing precedence."""
    return [*(package.folder for package in reversed(packages())), conf_folder(), *_own]


def _files(group: str) -> dict[str, Path]:
    """Return the files of a group by name, from the folder with the highest precedence.

    What options share is in folders of the group: there is a slash in its name.
    """
    found = {}
    for place in (folder / group for folder in _folders()):
        for path in (*place.glob("*/*.yaml"), *place.glob("*.yaml")):
            found[path.relative_to(place).with_suffix("").as_posix()] = path
    return found


def _loaded(file: Path) -> Any:
    """Load a file; an unreadable one is reported when it is chosen, and is empty here."""
    return OmegaConf.create({}) if _fault(file) else OmegaConf.load(file)


def _content(loaded: Any) -> dict[str, Any]:
    """Return the keys of a loaded file; none if it is not a mapping."""
    content: Any = OmegaConf.to_container(loaded)
    return content if isinstance(content, dict) else {}


def harmful() -> list[str]:
    """Return a message for each file in the user's folders that Hydra must not load."""
    faults = _faults().items()
    return [f"{file}: {fault}" for file, fault in faults if isinstance(fault, HarmfulError)]


def unreadable() -> list[str]:
    """Return a message for each file in the user's folders that is not an option."""
    return [f"{file}: cannot be read: {fault}" for file, fault in _faults().items()]


def _faults() -> dict[Path, Exception]:
    """Return why files in the user's folders are not options."""
    depths = ("*.yaml", "*/*.yaml", "*/*/*.yaml")  # groups may be in groups, as hydra/launcher
    files = sorted(file for folder in _own for depth in depths for file in folder.glob(depth))
    return {file: fault for file in files if (fault := _fault(file)) is not None}


def _fault(file: Path) -> Exception | None:
    """Return the reason why a file is not a mapping; None if it is one."""
    try:
        content = parsed(file.read_bytes())
    except (YamlError, OSError) as error:
        return error
    return None if content is None or isinstance(content, dict) else YamlError("it has no keys")


def _description(file: Path, known: Mapping[str, Path]) -> str:
    """Return the comment at the top of an option's file, and its arguments."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    top = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    comment = [line.lstrip("# ") for line in lines[:top] if "@package" not in line]
    shown = [
        f"{name}={'null' if value is None else value}"
        for name, value in _content(_composed(file, known)).items()
        if name not in ("_target_", "hydra") and not isinstance(value, dict)
    ]
    return "\n".join([*comment, *([", ".join(shown)] if shown else [])])
