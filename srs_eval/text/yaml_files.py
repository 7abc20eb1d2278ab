"""YAML of strangers: plain values, within limits that are checked before anything is built.

Aliases can stand for billions of values, and tags for values of other types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LARGEST = 1_000_000  # bytes
_MOST_VALUES, _DEEPEST, _LONGEST_NUMBER = 100_000, 50, 1_000
_TEXT = "tag:yaml.org,2002:str"
# Written in C, where PyYAML has them so: some 20 times as fast.
_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class YamlError(ValueError):
    """A file is no YAML, or has what is refused; the message is one line."""


class RepeatedKeyError(YamlError):
    """A key is there twice; the message is its place."""


class HarmfulError(YamlError):
    """Other loaders must not be given it: it has too many values, or a tag that one is not of."""


class _Loader(_Fast):  # type: ignore[misc]
    """Builds plain values; dates stay text, as they are written."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of a file."""

    content: Any  # Plain values; None of an empty file
    # Line of each key of a strict file, from 1; keys inside others are joined by dots
    lines: Mapping[str, int]


def read_yaml(file: Path, *, largest: int = LARGEST) -> Any:
    """Return the plain values in a file; raise `YamlError` or `OSError` if it cannot be used."""
    with file.open("rb") as opened:
        raw = opened.read(largest + 1)
    if len(raw) > largest:
        raise YamlError(f"more than {largest:,} bytes")
    return parsed(raw).content


def parsed(
    raw: bytes, *, strict: bool = False, values: int = _MOST_VALUES, depth: int = _DEEPEST
) -> Parsed:
    """Parse YAML of at most so many values and levels.

    `strict` YAML has no aliases and tags, text as keys, each of them once, and decimal numbers.
    """
    try:
        text = raw.decode()
        _check(text, strict=strict, values=values, depth=depth)
        loader = _Loader(text)
        node = loader.get_single_node()
        lines = dict(_keys(node, "")) if strict and node is not None else {}
        return Parsed(None if node is None else loader.construct_document(node), lines)
    except YamlError:
        raise
    except UnicodeDecodeError as error:
        raise YamlError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError(" ".join(str(error).split())) from error
    except (LookupError, AttributeError) as error:  # how PyYAML refuses a tag's value
        raise HarmfulError("a value is not of the type that its tag says") from error


def _check(text: str, *, strict: bool, values: int, depth: int) -> None:
    """Refuse what is too large or too deep, with the values of an alias each time it is used."""
    count, begun, sizes = 0, list[tuple[str | None, int]](), dict[str | None, int]()
    events: Any = yaml.parse(text, Loader=_Loader)
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = begun.pop()
            sizes[anchor] = count - before
        elif isinstance(event, yaml.AliasEvent):
            if strict:
                raise YamlError(f"line {line} has an alias")
            count += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            if strict and event.tag is not None:
                raise YamlError(f"line {line} has a tag")
            sizes[event.anchor] = 1
            if isinstance(event, yaml.CollectionStartEvent):
                begun.append((event.anchor, count))
                sizes[event.anchor] = values  # of an alias inside itself
            count += 1
        if len(begun) > depth:
            raise YamlError(f"more than {depth} levels")
        if count > values:
            raise HarmfulError(f"more than {values:,} values, with those of aliases")


def _keys(node: yaml.Node, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the place and the line of each key, and refuse what is not strict."""
    if isinstance(node, yaml.MappingNode):
        known = set()
        for key, value in node.value:
            place, line = f"{prefix}{key.value}", key.start_mark.line + 1
            if key.tag != _TEXT:
                raise YamlError(f"line {line} has a key that is no text")
            if key.value in known:
                raise RepeatedKeyError(f"line {line}: {key.value}")
            known.add(key.value)
            yield place, line
            yield from _keys(value, f"{place}.")
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _keys(value, f"{prefix.removesuffix('.')}[{number}].")
    elif node.tag != _TEXT and (":" in node.value or len(node.value) > _LONGEST_NUMBER):
        # numbers without end, and 1:30, which is 90 in YAML
        raise YamlError(f"line {node.start_mark.line + 1} has no decimal number")


def block_of(content: Mapping[str, Any], *, compact: bool = False) -> str:
    """Format plain values in the order of their keys; `compact` lists and mappings in one line."""
    text: str = yaml.dump(
        dict(content),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None if compact else False,
    )
    return text
