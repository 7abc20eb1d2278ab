"""YAML of strangers: plain values, within limits that are checked before anything is built.

Aliases can stand for billions of values, and tags for values of other types.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LARGEST = 1_000_000  # bytes
_MOST_VALUES, _DEEPEST = 100_000, 50
# Written in C, where PyYAML has them so: some 20 times as fast.
_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """A file is no YAML, or has what is refused; the message is one line."""


class HarmfulError(YamlError):
    """Other loaders must not be given it: it has too many values, or a tag that one is not of."""


class _Loader(_Fast):  # type: ignore[misc]
    """Builds plain values; dates stay text, as they are written."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(file: Path) -> Any:
    """Return the plain values in a file; raise `YamlError` or `OSError` if it cannot be used."""
    with file.open("rb") as opened:
        raw = opened.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise YamlError(f"more than {_LARGEST:,} bytes")
    return parsed(raw)


def parsed(raw: bytes) -> Any:
    """Return the plain values in YAML; None if it is empty."""
    try:
        text = raw.decode()
        _check(text)
        loader = _Loader(text)
        node = loader.get_single_node()
        return None if node is None else loader.construct_document(node)
    except YamlError:
        raise
    except UnicodeDecodeError as error:
        raise YamlError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError(" ".join(str(error).split())) from error
    except (LookupError, AttributeError) as error:  # how PyYAML refuses a tag's value
        raise HarmfulError("a value is not of the type that its tag says") from error


def _check(text: str) -> None:
    """Refuse what is too large or too deep, with the values of an alias each time it is used."""
    count, begun, sizes = 0, list[tuple[str | None, int]](), dict[str | None, int]()
    events: Any = yaml.parse(text, Loader=_Loader)
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = begun.pop()
            sizes[anchor] = count - before
        elif isinstance(event, yaml.AliasEvent):
            count += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            sizes[event.anchor] = 1
            if isinstance(event, yaml.CollectionStartEvent):
                begun.append((event.anchor, count))
                sizes[event.anchor] = _MOST_VALUES  # of an alias inside itself
            count += 1
        if len(begun) > _DEEPEST:
            raise YamlError(f"more than {_DEEPEST} levels")
        if count > _MOST_VALUES:
            raise HarmfulError(f"more than {_MOST_VALUES:,} values, with those of aliases")
