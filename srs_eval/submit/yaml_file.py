"""YAML of strangers: plain values within limits of size and depth, with the line of each key.

What srs_eval has written itself has no such limits, and is read by the parser in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from srs_eval.results.files import whole_file
from srs_eval.submit.problems import Problem

LARGEST = 1_000_000
_DEEPEST, _MOST_VALUES, _LONGEST_NUMBER = 20, 30_000, 1_000
_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a file of key and value."""

    content: Mapping[str, Any]  # Plain values
    # Line of each key, from 1; keys inside others are joined by dots
    lines: Mapping[str, int] = field(default_factory=dict)


def read_yaml(file: Path) -> YamlFile | Problem:
    """Read a file that holds a mapping; return the problem if it cannot be used."""
    size = file.stat().st_size
    if size > LARGEST:
        found, advice = f"{size:,} bytes", f"{LARGEST:,} at most"
        return Problem("file", file, "", found, advice)
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            advice = "write one KEY: VALUE a line"
            return Problem("form", file, "", "no keys and values", advice)
        content = loader.construct_document(node)
        return YamlFile(content, dict(_lines(node, "")))
    except _Repeated as error:
        return Problem("form", file, str(error), "is there twice", "leave one of them out")
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split())
        return Problem("file", file, "", reason, "write plain YAML in UTF-8, without &, * and !")


def parsed_own(text: str) -> Mapping[str, Any]:
    """Parse a mapping that srs_eval has written itself; raise `ValueError` or `TypeError`."""
    try:
        _refuse_deep(text)
        loader = _OwnLoader(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise TypeError("no keys and values")
        _refuse_all_repeated(node)
        content: Mapping[str, Any] = loader.construct_document(node)
    except (yaml.YAMLError, OverflowError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return content


def block_of(content: Mapping[str, Any]) -> str:
    """Format plain values as lines of YAML, in the order of their keys."""
    text: str = yaml.dump(
        dict(content),
        Dumper=_OwnDumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    )
    return text


def write_yaml(file: Path, content: Mapping[str, Any], *, compact: bool = False) -> None:
    """Write plain values in the order of their keys; `compact` lists and mappings in one line."""
    style = None if compact else False
    text = yaml.safe_dump(
        dict(content), sort_keys=False, allow_unicode=True, width=100, default_flow_style=style
    )
    with whole_file(file) as partial:
        partial.write_text(text, encoding="utf-8")


class _Repeated(ValueError):
    """A key that is there twice; the message is its place."""


class _Loader(yaml.SafeLoader):
    """Builds plain values only.

    Aliases can stand for billions of values, and tags for values of other types.
    """

    depth = values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"line {self.get_mark().line + 1} has an alias")
        if getattr(self.peek_event(), "tag", None) is not None:  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"line {self.get_mark().line + 1} has a tag")
        self.depth += 1
        self.values += 1
        if self.depth > _DEEPEST or self.values > _MOST_VALUES:
            raise yaml.YAMLError(f"more than {_DEEPEST} levels, or {_MOST_VALUES:,} values")
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.MappingNode):
            _refuse_repeated(node)
        if isinstance(node, yaml.ScalarNode) and node.tag != _TEXT:
            _refuse_odd(node)
        return node


# Written in C, where PyYAML has them so: some 20 times as fast.
_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OwnDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _OwnLoader(_FastLoader):  # type: ignore[misc]
    """Builds plain values only."""


# Dates stay text, as they are written.
_OwnLoader.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _refuse_odd(node: yaml.ScalarNode) -> None:
    """Refuse numbers without end, and 1:30, which is 90 in YAML."""
    if len(node.value) > _LONGEST_NUMBER or ":" in node.value:
        raise yaml.YAMLError(f"line {node.start_mark.line + 1} has no decimal number")


def _refuse_repeated(node: yaml.MappingNode) -> None:
    known = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT:
            raise yaml.YAMLError(f"line {key.start_mark.line + 1} has a key that is no text")
        if key.value in known:
            raise _Repeated(f"line {key.start_mark.line + 1}: {key.value}")
        known.add(key.value)


def _refuse_deep(text: str) -> None:
    """Refuse aliases, and levels in which the parser in C would overflow its stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_OwnLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("has an alias")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"more than {_DEEPEST} levels")


def _refuse_all_repeated(node: yaml.Node) -> None:
    """Refuse repeated keys of all mappings."""
    if isinstance(node, yaml.MappingNode):
        _refuse_repeated(node)
        for _, value in node.value:
            _refuse_all_repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_all_repeated(value)


def _lines(node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, int]]:
    for key, value in node.value:
        place = f"{prefix}{key.value}"
        yield place, key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, f"{place}.")
