"""Kinds of evidence on a collection, and sentences that cannot both be true."""

import re

from srs_eval.collection.words import Change
from srs_eval.stats.estimate import Estimate

# Mean and standard error of a difference to a log loss of 0.4.
KINDS = {
    "better": (-0.02, 0.001),
    "worse": (0.02, 0.001),
    "noise": (-0.002, 0.001),
    "no_gain": (0.04, 0.02),
    "open": (-0.05, 0.03),
    "same": (0.0, 0.0),
    "unknown": (0.04, 0.1),  # -55 to +75 %
}
# By question: answers that exclude each other, as they are said.
ANSWERS = {
    "which parameters": {
        "new": r"[Pp]aste the new parameters|(^T|, t)he new ones:",
        "now": r"[Kk]eep the (default|parameters that)|(^T|, t)he default ones( for now)?:|^Yours",
    },
    "new ones on one's own reviews": {
        "better": r"reviews (they|new ones) predict better than",
        "worse": r"reviews (they|new ones) predict worse than|new ones predict worse",
        "no better": r"predict no better than (those you|the default ones, error)",
        "noise": r"make no difference worth having against",
        "open": r"change the error within chance against",
        "unknown": r"cannot be told from (those|the default)",
    },
    "FSRS": {"on": r"^Turn FSRS on", "off": r"^Leave FSRS off"},
    "fitted against the average": {
        "better": r"FSRS-6 fitted to your reviews explains",
        "not": r"not clearly (better|predict better) than your average",
        "worse": r"predicts worse than your average",
    },
}


def change_of(kind):
    """Return a change of a kind."""
    mean, se = KINDS[kind]
    found = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert found.kind == kind
    return found


def contradictions(texts):
    """Return the questions to which texts give more than one answer, with the answers."""
    found = []
    for question, answers in ANSWERS.items():
        given = {
            answer
            for answer, said in answers.items()
            if any(re.search(said, text) for text in texts)
        }
        found += [(question, given)] if len(given) > 1 else []
    return found
