"""Messages for options and arguments that do not exist, with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from srs_eval.config.option_files import arguments, in_lines, options
from srs_eval.text.suggestion import suggestion

_SHORT_LIST = 80  # characters


def there_are(known: Sequence[str]) -> str:
    """List the choices, on lines of their own if they are many."""
    if not known:
        return ""
    listed = ", ".join(known)
    if len(listed) <= _SHORT_LIST:
        return f"; there are {listed}"
    return "; there are\n" + in_lines("  ", known)


def unknown_options(group: str, names: Iterable[str], folders: Sequence[Path] = ()) -> list[str]:
    """Return a message for each name that is no option of a group."""
    known = options(group, folders)
    return [
        f"{group}={name}: no such option{suggestion(name, known)}{there_are(known)}"
        for name in names
        if name not in known
    ]


def unknown_argument(
    word: str, key: str, chosen: Sequence[str], folders: Sequence[Path] = ()
) -> list[str]:
    """Return a message for an argument that is in none of the chosen options' files.

    `word` is the argument as written, such as ``algo.fti=newton``, and `key` its group and name.
    """
    group, _, path = key.partition(".")
    known = arguments(group, folders)
    having = [name for name, paths_of in known.items() if path in paths_of]
    lacking = [name for name in chosen if name in known and name not in having]
    if having and not lacking:
        return []
    if having:
        others = f"{', '.join(having)} {'has' if len(having) == 1 else 'have'}"
        return [f"{word}: {group}={lacking[0]} has no {path!r}, but {others}"]
    near = {path for name in chosen for path in known.get(name, ())}
    listed = f"; there are {', '.join(sorted(near))}" if near else ""
    names = near or set().union(*known.values())
    meant = suggestion(path, names, form=f"'{group}.{{}}'", otherwise=listed)
    return [f"{word}: there is no {key!r}{meant}"]
