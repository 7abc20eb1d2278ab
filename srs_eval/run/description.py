"""What describes a run and finds it again: names, parameters, tags, digests."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_eval.config.building import Inputs
from srs_eval.config.option_files import values
from srs_eval.cpu import common_level
from srs_eval.engine.machine import target_cpu
from srs_eval.nouns.when import when_of
from srs_eval.results.run import TRAITS
from srs_eval.tracking.run_facts import plug_in_versions, versions

# Keys of the configuration that an `Experiment` is built from.
NUMBERS_DEPEND_ON = ("algo", "data", "protocol", "panel", "seed", "curves_per_user")
# Tags that a run shares with the run that it continues.
_SAME = ("config_hash", "code_hash")
_LIBRARIES = ("srs-eval", "numpy", "scipy", "torch", "numba")


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What describes a run."""

    # Names of the options
    algo: str
    data: str
    label: str  # The algorithm with those of its arguments that are not at their defaults
    name: str = ""  # Name of the run in lists, with the marks of the algorithm's traits
    notes: str = ""  # Free text
    # The resolved configuration, flat
    params: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    # By group: The resolved configuration of what was built, with what each was built by
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What finds the run again, among it the digests of settings and code
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        """Digests of settings and code, which a resumed run must share."""
        return " ".join(self.tags[name] for name in _SAME if name in self.tags)

    def is_of(self, tags: Mapping[str, str]) -> bool:
        """Whether another run with these tags has the same stamp."""
        return all(tags.get(name) == self.tags.get(name) for name in _SAME)


def described(inputs: Inputs, further_tags: Mapping[str, str] | None = None) -> RunDescription:
    """Describe a run by what it is made of; `further_tags` are those of a sweep."""
    algorithm, protocol, content = inputs["algo"], inputs["protocol"], inputs.content
    options = {group: each.content for group, each in inputs.groups.items()}
    choices = {group: each.name for group, each in inputs.groups.items()}
    own, algo, data = options["algo"], choices["algo"], choices["data"]
    label = algo + _inside(own) + _arguments(algorithm, own, values("algo", algo))
    marks = "".join(mark for trait, (mark, _) in TRAITS.items() if getattr(algorithm, trait, False))
    # what was read from the data may be another the next time
    numbers = {**content, "algo": {**own, **getattr(algorithm, "from_data", {})}}
    tags = {
        "algo": algo,
        "label": label,
        "data": data,
        "protocol": protocol.name,
        "protocol_version": str(protocol.version),
        "config_hash": config_hash(numbers),
        "code_hash": _code_hash((each.built for each in inputs.groups.values()), targets(options)),
        "when": when_of(algorithm),
        "python": platform.python_version(),
        "cpu": target_cpu(),
        **versions(_LIBRARIES),
        **plug_in_versions(targets(options)),
        **content["tags"],
        **(further_tags or {}),
    }
    return RunDescription(
        algo=algo,
        data=data,
        label=label,
        name=content["name"] or f"{label} {marks}".rstrip() + f" on {data}",
        notes=content["notes"],
        params=_flat({**choices, **_flat(content)}),
        options=options,
        tags=tags,
    )


def config_hash(content: Mapping[str, Any]) -> str:
    """Return the digest of every setting that can change a number."""
    numbers = {key: content[key] for key in NUMBERS_DEPEND_ON if key in content}
    if level := common_level():
        numbers["cpu"] = level
    text = json.dumps(numbers, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def targets(options: Any) -> Iterator[str]:
    """Go through the class of everything that was built, also of what something is made of."""
    if isinstance(options, Mapping):
        if "_target_" in options:
            yield str(options["_target_"])
        options = list(options.values())
    if isinstance(options, list | tuple):
        for value in options:
            yield from targets(value)


def _arguments(algorithm: object, given: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return those arguments that differ from the option's or else the class's: ``(fit=s0)``."""
    known = inspect.signature(type(algorithm)).parameters
    changed = [
        f"{name}={value}"
        for name, value in given.items()
        if (name in known or name in usual)
        and not isinstance(value, Mapping)
        and value != (usual[name] if name in usual else known[name].default)
    ]
    open_ended = {name: given[name] for name in given if usual.get(name) == {}}
    changed += [f"{name}={value}" for name, value in _flat(open_ended).items()]
    return f"({', '.join(changed)})" if changed else ""


def _inside(content: Mapping[str, Any]) -> str:
    """Return the algorithms an algorithm is made of, with their arguments: ``[Fsrs6 + Dash]``."""
    found = _made_of(content)
    return f"[{' + '.join(found)}]" if found else ""


def _made_of(content: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for value in content.values():
        if isinstance(value, Mapping) and "_target_" in value:
            name = str(value["_target_"]).rpartition(".")[2] + _inside(value)
            plain = {key: v for key, v in value.items() if not isinstance(v, Mapping)}
            arguments = [f"{key}={v}" for key, v in plain.items() if key != "_target_"]
            found.append(name + (f"({', '.join(arguments)})" if arguments else ""))
        elif isinstance(value, Mapping):
            found += _made_of(value)
    return found


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            flat[prefix + key] = json.dumps(value)
        elif key != "_target_":
            flat[prefix + key] = value
    return flat


def _code_hash(objects: Iterable[object], named: Iterable[str]) -> str:
    """Return the digest of the source files of srs_eval, and of those of the plug-ins in use.

    Of a class that is named in an option, also those of its bases in the same package.
    """
    files = set(Path(__file__).parents[1].rglob("*.py"))
    modules = {type(used).__module__ for used in objects}
    for target in named:
        module, _, name = target.rpartition(".")
        bases = getattr(getattr(sys.modules.get(module), name, None), "__mro__", ())
        inside = target.partition(".")[0]
        modules |= {b.__module__ for b in bases if b.__module__.partition(".")[0] == inside}
    for each in modules:
        # what was typed into a notebook has no file
        file = getattr(sys.modules.get(each), "__file__", None)
        if file is not None and Path(file).is_file():
            files.add(Path(file))
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
