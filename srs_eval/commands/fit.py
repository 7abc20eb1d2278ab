"""`python -m srs_eval.fit`: the parameters that fit all reviews of a log best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from srs_eval.commands.arguments import Words, about_one, carry_out, explained
from srs_eval.commands.export import ENDINGS, deliver
from srs_eval.commands.export import KEYS as EXPORT_KEYS
from srs_eval.errors import ConfigError

PROGRAM = "python -m srs_eval.fit"
KEYS = {
    "to": EXPORT_KEYS["to"],
    "algo": "the algorithm (by default fsrs6; per_group for a list for each preset)",
    "algo.KEY": "its options",
    "data.KEY": "arguments of the data, as in data.decks='Spanish*'",
    "user": "the user (by default the only one)",
    "out": "the file to write (by default standard output)",
}
_HELP = f"""Fit an algorithm to all reviews of a log, for a scheduler; nothing is evaluated.

  {PROGRAM} my.colpkg to=anki
  {PROGRAM} my.colpkg to=anki algo=per_group        a list for each preset that differs
  {PROGRAM} log.csv to=json data.columns.card=item user=7

Options, KEY=VALUE:

{explained(KEYS)}

Whether the parameters predict better than others is what python -m srs_eval measures.
Flags: --help, --version. Exit status: 0 if parameters were written, 1 if the fit failed, was
skipped or cannot be written, 2 if the command was not understood or no scheduler reads it."""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(lambda: _fit(understood(words)), words, program=PROGRAM, help_page=_HELP)


def understood(words: Sequence[str]) -> Words:
    """Parse a command line."""
    found = about_one(words, KEYS, "review log", choices={"to": tuple(ENDINGS)})
    if "to" not in found.options:
        raise ConfigError(f"the format is missing: to={', '.join(ENDINGS)}")
    return found


def values_of(options: Mapping[str, str], *groups: str) -> dict[str, Any]:
    """Return the options of groups such as ``data``, their values read as Hydra does.

    Examples
    --------
    >>> values_of({"data.decks": "[a*, 'b c']", "to": "anki"}, "data")
    {'decks': ['a*', 'b c']}
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    found = {}
    for key, value in options.items():
        group, _, name = key.partition(".")
        if group not in groups or not name:
            continue
        try:
            read = OverridesParser.create().parse_override(f"{key}={value}")
        except (HydraException, ValueError) as error:
            reason = str(error).partition("\n")[0]
            hint = f"quote text twice, as in '{key}=\"{value}\"'"
            raise ConfigError(f"{key}={value}: cannot be read ({reason}); {hint}") from error
        if read.is_sweep_override():
            raise ConfigError(f"{key}={value}: write several values in brackets, as in [a,b]")
        found[name] = _unquoted(read.value())
    return found


def _unquoted(value: Any) -> Any:
    """Return a value of Hydra's parser as a plain value."""
    if isinstance(value, list):
        return [_unquoted(each) for each in value]
    return getattr(value, "text", value)


def _fit(asked: Words) -> int:
    """Fit, hand the parameters over, and return the exit status."""
    # Heavy: not for --help and for mistakes.
    from srs_eval.api.fitting import fit

    options = asked.options
    user = options.get("user")
    fitted = fit(
        options.get("algo", "fsrs6"),
        asked.paths[0],
        progress=False,
        **values_of(options, "algo", "data"),
    )
    deliver(fitted.export(options["to"], user=user), asked.path("out"))
    return 0
