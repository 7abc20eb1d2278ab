"""Cases of parametrized tests and of transcripts of options, and programs of the checkout."""

import hashlib
import importlib.util
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from srs_eval.errors import SrsEvalError

ROOT = Path(__file__).parents[1]
_OPTION = re.compile(r"\b(?:data|protocol|panel|algo)\.[a-z_.]*[a-z]")


def rest_nightly(cases, kept=1):
    """Return the cases of a parametrized test, all after the first `kept` marked nightly."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.nightly if nth >= kept else (),
        )
        for nth, case in enumerate(cases)
    ]


def pin(log):
    """Return a digest of the whole numbers of an invented log, and means of the others."""
    whole = np.concatenate([log.card, log.day, log.rating, log.elapsed_days, log.state, log.deck])
    means = [np.mean(each) for each in (log.truth, log.duration_ms, log.elapsed_seconds)]
    return hashlib.sha256(whole.astype("<i8").tobytes()).hexdigest()[:16], means


def values_in(words, kinds=()):
    """Return the values of ``KEY=VALUE …``: JSON, text, or the name of a kind to make."""

    def value_of(text):
        try:
            return kinds[text]() if text in kinds else json.loads(text)
        except ValueError:
            return text

    pairs = (word.partition("=") for word in words)
    return {key: value_of(value) for key, _, value in pairs}


def making(kinds, tell=repr):
    """Return what makes an object for a line of a transcript, ``KIND OPTION=VALUE …``.

    Told is the object, or the options that its error names.
    """

    def told_by(kind, *words):
        try:
            made = kinds[kind](**values_in(words, kinds))
        except SrsEvalError as error:
            names = dict.fromkeys(_OPTION.findall(str(error)))
            return f"refused: {', '.join(names) or error}"
        return tell(made)

    return told_by


def elements(page):
    """Return the elements of a page with their attributes."""
    parser, found = HTMLParser(), []
    parser.handle_starttag = lambda tag, pairs: found.append((tag, dict(pairs)))
    parser.feed(page)
    return found


def loaded(path):
    """Load a file, below the checkout if the path is relative."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
