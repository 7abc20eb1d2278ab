"""Objects built from options: a ``_target_`` is checked before it is called.

A target must be a class with all members of the protocol of its group, such as `fit` of an
algorithm, or one of the functions in `FUNCTIONS`. A target inside the arguments of another
must fit the annotation of that argument. Only then is it called, with its arguments by name.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from srs_eval.algorithms.options import current
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.suggestion import suggestion

TARGET = "_target_"
# Keys with which Hydra would call a target differently.
_OF_HYDRA = ("_args_", "_convert_", "_partial_", "_recursive_")
# Functions that may be named instead of a class, and the protocol of the values they return.
FUNCTIONS: Mapping[str, str] = {
    "srs_eval.metrics.threshold.confusion_statistics": "srs_eval.nouns.protocols.Metric",
    "srs_eval.metrics.threshold.threshold_biases": "srs_eval.nouns.protocols.Metric",
}
# Plain types in annotations: their names in messages, and the accepted types of values.
_PLAIN: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    str: ("text", (str,)),
    Path: ("a path", (str,)),
    type(None): ("null", (type(None),)),
}
# Modules of generic types in annotations.
_GENERAL = ("builtins", "collections", "collections.abc", "types", "typing")

MayImport = Callable[[str], bool]


def anything(module: str) -> bool:
    """Allow every module: for options that the user of the command has chosen."""
    del module
    return True


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds objects from options.

    `may_import` is called with the name of a module before any import.
    """

    may_import: MayImport = anything

    def build(self, options: Mapping[str, Any], kind: type, key: str = "") -> Any:
        """Check all targets, then call them.

        `options` are the target and its arguments: plain values, lists, mappings, and further
        targets; `kind` is its protocol or base class, and `key` its key in the configuration, for
        messages.
        """
        self.check(options, kind, key=key)
        return _call(options)

    def check(self, options: Mapping[str, Any], *kinds: type, key: str = "") -> None:
        """Check all targets, and call none."""
        target = str(options[TARGET])
        owner = self.find(target, *kinds)
        given = {name: value for name, value in options.items() if name != TARGET}
        _expect_known(target, owner, given)
        for name, value in given.items():
            place = f"{key}.{name}" if key else name
            self._check_value(value, owner, name, place)
            if not (isinstance(value, Mapping) and TARGET in value):
                _expect_value(_hint(owner, name), place, value)

    def find(self, target: str, *kinds: type) -> Any:
        """Import a target, and check that it has one of several kinds."""
        module, name = self._expect_importable(target)
        try:
            found = getattr(import_module(module), name)
        except (Exception, SystemExit) as error:  # modules run when imported
            raise ConfigError(f"cannot import {target} ({_reason(error)})") from error
        problem = _misfit(found, kinds)
        if problem:
            raise ConfigError(f"{target} {problem}")
        return found

    def _expect_importable(self, target: str) -> tuple[str, str]:
        """Return the module and the name of a class, if that module may be imported."""
        module, _, name = current(target).rpartition(".")
        words = [*module.split("."), name]
        if not all(word.isidentifier() and not word.startswith("__") for word in words):
            raise ConfigError(f"{TARGET}: {target!r} is not the dotted name of a class")
        if not self.may_import(module):
            raise ConfigError(
                f"{target}: {words[0]} is not imported, because it is neither srs_eval nor an "
                "installed package with an entry point srs_eval.conf; if you trust it, import it "
                "first"
            )
        return module, name

    def _check_value(self, value: Any, owner: Any, name: str, place: str) -> None:
        """Check the targets inside an argument."""
        if isinstance(value, list | tuple):
            for item in value:
                self._check_value(item, owner, name, place)
        elif isinstance(value, Mapping) and TARGET in value:
            self.check(value, *_annotated(owner, name), key=place)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._check_value(item, owner, name, f"{place}.{key}")


def require(given: object, kind: type, key: str) -> None:
    """Check that an object given in place of an option's name has all that its kind asks for."""
    if isinstance(given, type):
        raise ConfigError(f"{key}: {given.__name__} is a class; give an instance of it")
    if problem := _lacks(type(given), kind, partial(hasattr, given)):
        raise ConfigError(f"{key}: {type(given).__name__} {problem}")


def _call(value: Any) -> Any:
    """Call checked targets, the innermost first; return plain values unchanged."""
    if isinstance(value, list | tuple):
        return [_call(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    made = {name: _call(item) for name, item in value.items()}
    if TARGET not in value:
        return made
    target = str(made.pop(TARGET))
    module, _, name = current(target).rpartition(".")
    try:
        return getattr(sys.modules[module], name)(**made)
    except SrsEvalError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise ConfigError(f"{target}: {_reason(error)}") from error


def _misfit(found: Any, kinds: tuple[type, ...]) -> str:
    """Return the reason why an object has none of the kinds; empty if it has one."""
    if not isinstance(found, type):
        known = FUNCTIONS.get(f"{_module_of(found)}.{getattr(found, '__qualname__', '')}")
        named = {f"{_module_of(kind)}.{kind.__qualname__}" for kind in kinds}
        return "" if known in named else "is not a class"
    has = _declared(found).__contains__
    reasons = [_lacks(found, kind, has) for kind in kinds]
    return "" if "" in reasons else "; ".join(reasons)


def _lacks(found: type, kind: type, has: Callable[[str], bool]) -> str:
    """Return why a class, which `has` attributes, is not of a kind; empty if it is."""
    name = f"{_module_of(kind)}.{kind.__qualname__}"
    if not getattr(kind, "_is_protocol", False):
        return "" if issubclass(found, kind) else f"is not a subclass of {name}"
    members = _members(kind)
    lacking = [each for each in members if not has(each)]
    lacking += [each for each in members if _refuses_keywords(found, kind, each)]
    return f"cannot be used here: it has no {', '.join(lacking)} as in {name}" if lacking else ""


def _members(protocol: type) -> list[str]:
    """Return the names of all members of a protocol."""
    bases = [base for base in protocol.__mro__ if base.__dict__.get("_is_protocol", False)]
    names = [name for base in bases for name in (*vars(base), *inspect.get_annotations(base))]
    return sorted({name for name in names if name == "__call__" or not name.startswith("_")})


def _declared(found: type) -> set[str]:
    """Return the names of the attributes of instances: of the class, or set in `__init__`."""
    names: set[str] = set()
    for base in found.__mro__:
        code = getattr(vars(base).get("__init__"), "__code__", None)
        names.update(vars(base), inspect.get_annotations(base), code.co_names if code else ())
    return names


def _refuses_keywords(found: type, protocol: type, name: str) -> bool:
    """Whether a method lacks a keyword argument of the protocol."""
    theirs, ours = getattr(found, name, None), getattr(protocol, name, None)
    if not (inspect.isfunction(theirs) and inspect.isfunction(ours)):
        return False
    given = inspect.signature(ours).parameters.values()
    taken = inspect.signature(theirs).parameters
    if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        return False
    return any(each.kind is each.KEYWORD_ONLY and each.name not in taken for each in given)


def classes_of(owner: Any, name: str) -> tuple[type, ...]:
    """Return the classes and protocols in the annotation of an argument, none if it has none."""
    return tuple(dict.fromkeys(_classes(_hint(owner, name))))


def _annotated(owner: Any, name: str) -> tuple[type, ...]:
    """Return the classes and protocols in the annotation of an argument."""
    kinds = classes_of(owner, name)
    if not kinds:
        raise ConfigError(
            f"{name}: {_module_of(owner)}.{owner.__qualname__} does not say which class goes "
            "there; annotate the argument with a class or a protocol that its module imports"
        )
    return kinds


def _hint(owner: Any, name: str) -> Any:
    """Evaluate the annotation of an argument; None where there is none."""
    for place in _annotated_places(owner):
        hints = inspect.get_annotations(place)
        if name in hints:
            return _resolved(hints[name], place, name)
    return None


def _annotated_places(owner: Any) -> Iterator[Any]:
    """Yield the objects that annotate arguments: `__init__`, or the class if that is generated."""
    if not isinstance(owner, type):
        yield owner
        return
    for base in owner.__mro__:
        generated = getattr(vars(base).get("__dataclass_params__"), "init", False)
        if generated:
            yield from base.__mro__
        elif "__init__" in vars(base):
            yield vars(base)["__init__"]


def _resolved(hint: Any, place: Any, name: str) -> Any:
    """Evaluate an annotation in its module; None if a name in it is missing."""
    module = sys.modules.get(_module_of(place))
    holder = SimpleNamespace(__annotations__={name: hint})
    try:
        return get_type_hints(holder, globalns=vars(module) if module else {})[name]
    except (NameError, AttributeError, TypeError, SyntaxError):
        return None  # such as a class imported for type checkers only


def _classes(hint: Any) -> Iterator[type]:
    inside = get_args(hint)
    for each in inside:
        yield from _classes(each)
    if not inside and isinstance(hint, type) and hint.__module__ not in _GENERAL:
        yield hint


def _expect_known(target: object, called: Any, arguments: Mapping[str, Any]) -> None:
    """Raise an error for unknown arguments."""
    hydras = [name for name in arguments if name in _OF_HYDRA]
    if hydras:
        raise ConfigError(f"{target}: leave out {', '.join(hydras)}; arguments are passed by name")
    try:
        parameters = inspect.signature(called).parameters
    except ValueError:  # written in C
        return
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    known = [name for name, each in parameters.items() if each.kind is not each.POSITIONAL_ONLY]
    surplus = [name for name in arguments if name not in known]
    if surplus:
        listed = f"; there are {', '.join(known)}" if known else ""
        meant = suggestion(surplus[0], known, otherwise=listed)
        raise ConfigError(f"{target}: there is no argument {surplus[0]!r}{meant}")


def _expect_value(hint: Any, name: str, value: Any) -> None:
    """Raise an error for a plain value that does not match the annotation."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    plain = [part for part in parts if part in _PLAIN]
    objects = [part for part in parts if getattr(part, "_is_protocol", False)]
    if len(plain) + len(objects) < len(parts):
        return
    described = [_PLAIN[part][0] for part in plain] + [f"{name}={{{TARGET}: …}}"] * bool(objects)
    expected = " or ".join(dict.fromkeys(described))
    if type(value) not in {taken for part in plain for taken in _PLAIN[part][1]}:
        quoted = f", as in '{name}=\"{value}\"'" if "text" in expected or Path in parts else ""
        raise ConfigError(f"{name}={value!r}: expected {expected}{quoted}")
    if Path in parts and isinstance(value, str):
        if not value.strip():
            raise ConfigError(f"{name}={value!r}: is empty; name a file or folder")
        if value.endswith(("/", os.sep)) and Path(value).is_file():
            raise ConfigError(f"{name}={value!r}: is a file, not a folder")


def _module_of(found: Any) -> str:
    return str(getattr(found, "__module__", ""))


def _reason(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
