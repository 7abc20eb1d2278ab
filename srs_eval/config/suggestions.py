"""Messages for options and arguments that do not exist, with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from srs_eval.config.option_files import arguments, in_lines, options, varied
from srs_eval.text.suggestion import suggestion
from srs_eval.text.upstream import in_other_words

_SHORT_LIST = 80  # characters
_FEW = 3  # options that are named beside an argument
# What is set below a key of Hydra: its full name, and when.
_OF_A_SEARCH = (
    *("n_trials", "metric", "direction", "sampler", "startup_trials", "pruner", "prune_from"),
    *("start_from_config", "max_failures", "workers"),
)
_OF_HYDRA = {name: (f"hydra.sweeper.{name}", "in a search") for name in _OF_A_SEARCH} | {
    "dir": ("hydra.run.dir", "or hydra.sweep.dir with -m")
}
# Options of earlier releases, and where they are
_FORMER = {"data.version": "simulated users of versions 1 to 3 are in release 0.2.0"}


def had_argument(key: str, groups: Iterable[str]) -> str | None:
    """Return the group in which an earlier release had an argument, if one had."""
    return next((group for group in groups if f"{group}.{key}" in _FORMER), None)


def there_are(known: Sequence[str]) -> str:
    """List the choices, on lines of their own if they are many."""
    if not known:
        return ""
    listed = ", ".join(known)
    if len(listed) <= _SHORT_LIST:
        return f"; there are {listed}"
    return "; there are\n" + in_lines("  ", known)


def unknown_options(group: str, names: Iterable[str]) -> list[str]:
    """Return a message for each name that is no option of a group."""
    known, problems = options(group), []
    for name in (each for each in names if each not in known):
        theirs = in_other_words(name) if group == "algo" else ""
        meant = f"; {theirs}" if theirs else suggestion(name, known) + there_are(known)
        problems.append(f"{group}={name}: no such option{meant}")
    return problems


def unknown_argument(word: str, key: str, chosen: Sequence[str]) -> list[str]:
    """Return a message for an argument that is in none of the chosen options' files.

    `word` is the argument as written, such as ``algo.fti=newton``, and `key` its group and name.
    """
    group, _, path = key.partition(".")
    theirs = arguments(group, *chosen).values() if chosen else ()
    if theirs and all(path in known for known in theirs):
        return []
    known = arguments(group)
    having = [name for name, paths_of in known.items() if path in paths_of]
    lacking = [name for name in chosen if name in known and name not in having]
    if having and not lacking:
        return []
    if having:
        others = f"{', '.join(having)} {'has' if len(having) == 1 else 'have'}"
        return [f"{word}: {group}={lacking[0]} has no {path!r}, but {others}"]
    if key in _FORMER:
        return [f"{word}: there is no {key!r} any more; {_FORMER[key]}"]
    near = {path for name in chosen for path in known.get(name, ())}
    listed = f"; there are {', '.join(sorted(near))}" if near else ""
    names = near or set().union(*known.values())
    meant = suggestion(path, names, form=f"'{group}.{{}}'", otherwise=listed)
    return [f"{word}: there is no {key!r}{meant}"]


def unknown_key(
    word: str,
    key: str,
    known: Sequence[str],
    chosen: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return a message for a key that the top level of the configuration does not have.

    `known` are the keys that it has, `chosen` the options of each group. What was meant is a key
    of this name further down, such as ``data.users`` for ``users``, or one that is spelt like it.
    """
    top = key.split(".")[0]
    near = suggestion(top, known)
    meant = _further_down(key, chosen)
    if not meant and not near:
        names = {path.rpartition(".")[2] for group in chosen for path in _all(group)}
        for name in get_close_matches(key, sorted(names.union(_OF_HYDRA)), n=1):
            meant = _further_down(name, chosen)
    if not meant:
        return [f"{word}: there is no {top!r}{near}"]
    return [f"{word}: there is no {key!r}; did you mean {' or '.join(meant)}?"]


def _further_down(key: str, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the full names of what ends with a key, at most one in each group."""
    found = []
    for group, names in chosen.items():
        known = arguments(group)
        having = {
            path: [name for name in known if path in known[name]]
            for path in _all(group)
            if f".{path}".endswith(f".{key}")
        }
        # of a chosen option if possible, and not deeper than need be
        by_rank = sorted(
            having, key=lambda path: (set(names).isdisjoint(having[path]), path.count("."), path)
        )
        for path in by_rank[:1]:
            is_chosen = not set(names).isdisjoint(having[path])
            needed = " or ".join(f"{group}={name}" for name in having[path])
            shown = "" if is_chosen or len(having[path]) > _FEW else f" (with {needed})"
            found.append(f"'{group}.{path}'{shown}")
    place, when = _OF_HYDRA.get(key.rpartition(".")[2], ("", ""))
    if f".{place}".endswith(f".{key}"):
        found.append(f"'{place}' ({when})")
    return found


def _all(group: str) -> set[str]:
    return set().union(*arguments(group).values())


def unfit_overlay(group: str, name: str, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a message for each chosen option that lacks an argument which an overlay varies.

    `group` and `name` are those of the overlay, such as ``sweep=optuna_lstm``.
    """
    problems = []
    for of, paths in varied(group, name).items():
        known = arguments(of)
        having = [f"{of}={option}" for option in known if known[option].issuperset(paths)]
        fit = f" of {' or '.join(having)}" if len(having) <= _FEW else ""
        listed = "" if fit else there_are(having)
        for option in chosen.get(of, ()):
            missing = [path for path in paths if path not in known.get(option, paths)]
            if missing:
                problems.append(
                    f"{group}={name} varies {', '.join(paths)}{fit}, but {of}={option} has no "
                    f"{missing[0]!r}{listed}"
                )
    return problems
