"""Names of the public srs-benchmark: its models and flags, and the files of its results.

A result is called after its model and flags: ``FSRS-7-short-secs-recency`` is FSRS-7, run with
``--short --secs --recency``. Names are those of September 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from srs_eval.algorithms.algorithm import UNKNOWN

WHOLE_DAYS, SECONDS, EQUALISED = "srs_benchmark", "srs_benchmark_secs", "srs_benchmark_equalised"
_EQUALISED_FLAG = "equalize_test_with_non_secs"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the public benchmark."""

    name: str
    option: str  # That of ``algo=``; empty where there is none
    same_day: bool = False  # Whether histories in whole days have same-day reviews: ``-short``
    # Arguments without which the option is another model
    arguments: Mapping[str, Any] = field(default_factory=dict)


MODELS = (
    Model("FSRSv1", "fsrs1"),
    Model("FSRSv2", "fsrs2"),
    Model("FSRSv3", "fsrs3"),
    Model("FSRSv4", "fsrs4"),
    Model("FSRS-4.5", "fsrs45"),
    Model("FSRS-5", "fsrs5", same_day=True),
    Model("FSRS-6", "fsrs6", same_day=True),
    Model("FSRS-7", "fsrs7", same_day=True),
    Model("FSRS-rs", "fsrs_rs", same_day=True),
    Model("SBD", "sbd", same_day=True),
    Model("LogisticRegression", "logistic", same_day=True),
    Model("GRU", "gru_curves", same_day=True),
    Model("LSTM", "lstm_curves", same_day=True),
    Model("GRU-P", "gru_p"),
    Model("NN-17", "nn17"),
    Model("Transformer", "transformer"),
    Model("SM2", "sm2"),
    Model("SM2-trainable", "sm2_trainable"),
    Model("Anki", "anki_sm2_trainable", arguments={"published_order": True}),
    Model("HLR", "hlr"),
    Model("Ebisu-v2", "ebisu"),
    Model("ACT-R", "act_r"),
    Model("DASH", "dash"),
    Model("DASH[MCM]", "dash_mcm"),
    Model("DASH[ACT-R]", "dash_act_r"),
    Model("AVG", "avg"),
    Model("MOVING-AVG", "moving_avg"),
    Model("90%", "constant", arguments={"p": 0.9}),
    Model("RMSE-BINS-EXPLOIT", "rmse_bins_exploit"),
    Model("RWKV", ""),
)
_BY_OPTION = {model.option: model for model in MODELS if model.option}
# Those that walk through the log, the second of them under another name: others know a card alone
_AT_REVIEW = ("moving-avg", "rwkv-p", "rwkv-instant", "rmse-bins-exploit")
_PREVIOUS_REVIEW = tuple(model.name.lower() for model in MODELS)
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
_GROUPS = ("deck", "preset")
_UNSAFE = re.compile(r"[^\w.,=+\-\[\]%]+")


def known_when(name: str) -> str:
    """Return when a model of the public benchmark predicts.

    >>> known_when("FSRS-6-recency"), known_when("RWKV-P"), known_when("mine")
    ('previous_review', 'at_review', 'unknown')
    """
    if name.lower().startswith(_AT_REVIEW):
        return "at_review"
    return "previous_review" if name.lower().startswith(_PREVIOUS_REVIEW) else UNKNOWN


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
