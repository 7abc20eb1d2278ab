"""Names of the public srs-benchmark: its models and flags, and the files of its results.

A result is called after its model and flags: ``FSRS-7-short-secs-recency`` is FSRS-7, run with
``--short --secs --recency``. Names are those of September 2026; earlier ones are understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

WHOLE_DAYS, SECONDS, EQUALISED = "srs_benchmark", "srs_benchmark_secs", "srs_benchmark_equalised"
_EQUALISED_FLAG = "equalize_test_with_non_secs"

Training = Literal["none", "trained", "network", "own"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the public benchmark."""

    name: str
    option: str  # That of ``algo=``; empty where there is none
    # Whether its parameters are learned by the common trainer (``fit=reference`` here), is a
    # network that starts at weights which its results do not contain, or has a trainer of its own
    training: Training = "trained"
    same_day: bool = False  # Whether histories in whole days have same-day reviews: ``-short``
    aliases: tuple[str, ...] = ()
    # Arguments without which the option is another model
    arguments: Mapping[str, Any] = field(default_factory=dict)
    recency: str = "mild"  # The weights that ``--recency`` stands for
    note: str = ""  # What is easily taken for something else
    # Option of another model that had the name before there were results in seconds
    earlier: str = ""


MODELS = (
    Model("FSRSv1", "fsrs1"),
    Model("FSRSv2", "fsrs2"),
    Model("FSRSv3", "fsrs3"),
    Model("FSRSv4", "fsrs4"),
    Model("FSRS-4.5", "fsrs45"),
    Model("FSRS-5", "fsrs5", same_day=True),
    Model("FSRS-6", "fsrs6", same_day=True),
    Model("FSRS-6-one-step", "", same_day=True),  # examples/one_step
    Model("FSRS-7", "fsrs7", same_day=True, recency="steep"),
    Model("FSRS-rs", "fsrs_rs", "own", same_day=True),
    Model("SBD", "sbd", "own", same_day=True, recency="steep"),
    Model("LogisticRegression", "logistic", same_day=True, recency="quartic"),
    Model(
        *("GRU", "gru_curves", "network"),
        same_day=True,
        note="503 parameters; gru is the GRU of 39 parameters in the tables of 2025",
        earlier="gru",
    ),
    Model(
        *("LSTM", "lstm_curves", "network"),
        same_day=True,
        note="8,869 parameters; lstm is another network, which no public table has",
    ),
    Model("GRU-P", "gru_p", "network"),
    Model("NN-17", "nn17", "network"),
    Model("Transformer", "transformer", "network"),
    Model("RNN", ""),
    Model("SM2", "sm2", "none", aliases=("SM-2",)),
    Model("SM2-trainable", "sm2_trainable", aliases=("SM-2-trainable",)),
    Model(
        *("Anki", "anki_sm2_trainable"),
        arguments={"published_order": True},
        aliases=("Anki-SM-2",),
    ),
    Model("HLR", "hlr"),
    Model("Ebisu-v2", "ebisu", "none"),
    Model("ACT-R", "act_r"),
    Model("DASH", "dash"),
    Model("DASH[MCM]", "dash_mcm"),
    Model("DASH[ACT-R]", "dash_act_r"),
    Model("AVG", "avg", "none"),
    Model("MOVING-AVG", "moving_avg", "none"),
    Model("90%", "constant", "none", arguments={"p": 0.9}),
    Model("RMSE-BINS-EXPLOIT", "rmse_bins_exploit", "none"),
    Model("RWKV-P", "", aliases=("RWKV-Instant",)),
    Model("RWKV", "", aliases=("RWKV-Curve",)),
)
# Options with other defaults that are the same model.
_VARIANTS = {
    "anki_sm2": "anki_sm2_trainable",
    **dict.fromkeys(("fsrs45_default", "fsrs45_pretrain"), "fsrs45"),
}
# Kinds of a model, written after its name: arguments of the option.
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "default": {"fit": "default"},
    "S0": {"fit": "s0"},
    "binary": {"binary": True},
}
_EARLIER = {"dry": "default", "pretrain": "S0", "two_buttons": "binary"}
_GROUPS = ("deck", "preset")
_UNSAFE = re.compile(r"[^\w.,=+\-\[\]%]+")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a public result is called here."""

    model: Model
    arguments: Mapping[str, Any]  # Of the option
    protocol: str
    group: str = ""  # What has parameters of its own: deck or preset
    unknown: tuple[str, ...] = ()  # Parts of the name that stand for nothing here

    @property
    def is_plain(self) -> bool:
        """Whether the model was run as it is, without a flag for another fit or group."""
        defaults = configuration(self.model.name)
        is_usual = defaults is not None and defaults.arguments == self.arguments
        return is_usual and not self.group and not self.unknown


def bare(name: str) -> str:
    """Return what counts of the name of a model, or of a glob of names.

    >>> [bare(name) for name in ("FSRS-4.5", "FSRSv3", "Ebisu v2", "act_r", "FSRS-*")]
    ['fsrs45', 'fsrs3', 'ebisu2', 'actr', 'fsrs*']
    """
    return re.sub(r"v(?=\d)", "", re.sub(r"[^\w*?]|_", "", name.casefold()))


_BY_NAME = {bare(name): model for model in MODELS for name in (model.name, *model.aliases)}
_BY_OPTION = {model.option: model for model in reversed(MODELS) if model.option}


def configuration(name: str) -> Configuration | None:
    """Understand the name of a public result; None if no model is called so.

    >>> found = configuration("FSRS-7-short-secs-recency-equalize_test_with_non_secs")
    >>> found.model.option, found.arguments, found.protocol
    ('fsrs7', {'fit': 'reference', 'recency': 'steep'}, 'srs_benchmark_equalised')
    >>> configuration("FSRS-6-short-preset").group, configuration("DASH-short").unknown
    ('preset', ('short',))
    """
    parts = name.replace("dry-run", "dry").split("-")
    lengths = (n for n in range(len(parts), 0, -1) if bare("-".join(parts[:n])) in _BY_NAME)
    length = next(lengths, 0)
    if not length:
        return None
    model = _BY_NAME[bare("-".join(parts[:length]))]
    flags = [_EARLIER.get(flag, flag) for flag in parts[length:]]
    arguments = dict(model.arguments)
    if model.training == "trained":
        arguments["fit"] = "reference"
    for kind in _KINDS:
        arguments |= _KINDS[kind] if kind in flags else {}
    if "recency" in flags:
        arguments["recency"] = model.recency
    protocol = SECONDS if "secs" in flags else WHOLE_DAYS
    protocol = EQUALISED if _EQUALISED_FLAG in flags else protocol
    words = {*_KINDS, *_GROUPS, "recency", "secs", _EQUALISED_FLAG}
    words |= {"short"} if model.same_day or "secs" in flags else set()
    words |= {"duration"} if model.name == "LSTM" else set()
    unknown = tuple(flag for flag in flags if flag not in words)
    group = next((flag for flag in flags if flag in _GROUPS), "")
    return Configuration(model, arguments, protocol, group, unknown)


def result_name(
    algo: str, label: str, options: Mapping[str, Any], protocol: str, *, weighted: bool
) -> str:
    """Return the name that the public benchmark would give to the result of a run.

    `algo` is the option, `label` the algorithm with its changed arguments, `options` its resolved
    configuration, and `weighted` says whether recent reviews count more. What is not done there
    is added at the end, so that a name stands for one thing: a fit by another method, changed
    arguments, another protocol. The name of an algorithm that is not there is its label.

    >>> equalised = "srs_benchmark_equalised_published"
    >>> result_name("fsrs7", "fsrs7(fit=reference)", {"fit": "reference"}, equalised, weighted=True)
    'FSRS-7-short-secs-recency-equalize_test_with_non_secs'
    >>> result_name("fsrs6", "fsrs6", {"fit": "newton"}, "srs_benchmark_refit50", weighted=False)
    'FSRS-6-short-newton-refit50'
    """
    base, group = options.get("base"), ""
    if isinstance(base, Mapping) and options.get("group") in _GROUPS:
        group, options = options["group"], base
        kind = str(options.get("_target_")).rpartition(".")[2]
        algo = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
    model = _BY_OPTION.get(_VARIANTS.get(algo, algo))
    clock, extra = _clock(protocol)
    seconds = clock.startswith("-secs")
    if model is None:
        return _UNSAFE.sub("_", "".join((label, clock, *extra)))
    fit = options.get("fit")
    kinds = [kind for kind in _KINDS if _KINDS[kind].items() <= options.items()]
    parts = [model.name, *(f"-{kind}" for kind in kinds)]
    parts += ["-short"] if model.same_day or seconds else []
    parts += ["-secs"] if seconds else []
    parts += ["-duration"] if seconds and model.name == "LSTM" else []
    parts += ["-recency"] if weighted else []
    parts += [clock.removeprefix("-secs"), f"-{group}" if group else ""]
    parts += ["-newton"] if fit == "newton" else []
    changed = re.search(r"\(([^()]*)\)$", label)
    words = changed[1].split(", ") if changed and not group else []
    told = {"fit", "binary", "recency", *model.arguments}
    parts += [f"-{word}" for word in words if word.partition("=")[0] not in told]
    parts += [
        f"-{key}={options.get(key)}"
        for key, value in model.arguments.items()
        if options.get(key) != value
    ]
    return _UNSAFE.sub("_", "".join((*parts, *extra)))


def _clock(protocol: str) -> tuple[str, list[str]]:
    """Return the flags of a protocol's clock, and what the public benchmark has no flag for."""
    for name, flags in ((EQUALISED, f"-secs-{_EQUALISED_FLAG}"), (SECONDS, "-secs")):
        if protocol.startswith(name):
            rest = protocol.removeprefix(name)
            published = rest.endswith("_published")
            rest = rest.removesuffix("_published").replace("_", "-")
            return flags, [rest, "" if published or "answer" in rest else "-no_answer_time"]
    whole = protocol.startswith(WHOLE_DAYS)
    rest = protocol.removeprefix(WHOLE_DAYS).replace("_", "-")
    return "", [rest if whole else f"-{protocol}"]


def is_plainly(name: str, model: str) -> bool:
    """Return whether a result is one of a model as it is; `model` is its name there or here.

    >>> [is_plainly(name, "fsrs6") for name in ("FSRS-6-short", "FSRS-6-short-recency", "FSRS-7")]
    [True, False, False]
    """
    published = configuration(name)
    names = (
        ()
        if published is None
        else (published.model.name, published.model.option, *published.model.aliases)
    )
    return (
        published is not None
        and published.is_plain
        and bare(model) in map(bare, filter(None, names))
    )


def is_another_model(option: str, name: str) -> str:
    """Say that an option is not the model of a public result that is called alike; "" if it is.

    >>> is_another_model("lstm", "LSTM-short-secs-duration")
    "lstm is not LSTM of srs-benchmark, which is 'algo=lstm_curves' (8,869 parameters; lstm is \
another network, which no public table has)"
    >>> is_another_model("lstm_curves", "LSTM"), is_another_model("fsrs6", "FSRS-7")
    ('', '')
    """
    published = configuration(name)
    if published is None or bare(published.model.name) != bare(option):
        return ""
    model = published.model
    same = (model.option, model.earlier if published.protocol == WHOLE_DAYS else "")
    theirs = f"{model.name} of srs-benchmark, which is 'algo={model.option}' ({model.note})"
    return "" if option in same else f"{option} is not {theirs}"
