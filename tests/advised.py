"""Kinds of evidence on a collection, and sentences that cannot both be true."""

import re
from collections import defaultdict

from srs_eval.collection.words import Change
from srs_eval.metrics.means import Estimate

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
        "new": r"([Pp]aste|and paste) the new parameters|^(If you turn FSRS on, t|T)he new ones",
        "now": r"[Kk]eep the (default|parameters that)|^(If you turn FSRS on, t|T)he default ones|"
        r"^Yours|[Gg]o back to the default",
        "by preset": r"[Pp]aste new parameters into|^New ones for some presets",
    },
    "FSRS": {"on": r"^Turn FSRS on", "off": r"^Leave FSRS off"},
    "fitted against the average": {
        "better": r"FSRS-6 fitted to your reviews predicts better than always",
        "not": r"does not clearly predict better than always",
        "worse": r"predicts worse than always",
    },
}
# One list against another: what they are called, and whether one is better.
LISTS = {
    "new": r"[Nn]ew parameters|[Nn]ew ones",
    "one": r"One list for all presets",
    "yours": r"[Yy]our parameters|those you have|the list you have",
    "default": r"the default ones|the default list|the default parameters|the default's",
}
VERDICTS = {
    "better": r"predicts? better|\bsmaller \((?!from)|^smaller by",
    "worse": r"predicts? worse|\blarger \((?!from)|^larger by",
    "neither": r"no difference worth|no better than|not clearly|cannot be told",
}
REVIEWS = r"(?:all|on your|of your) ([\d,]+) scored review|\(([\d,]+) scored review"
JUDGED = {
    "too much": "promises too much",
    "too little": "promises too little",
    "right": "no sign that|no sign of error",
    "unknown": "cannot be said",
}


def change_of(kind):
    """Return a change of a kind."""
    mean, se = KINDS[kind]
    found = Change.of(Estimate(mean, se, 0.0, 100.0), 0.4)
    assert found.kind == kind
    return found


def contradictions(texts):
    """Return the questions to which texts give more than one answer, with the answers.

    Beside the questions above: the size of the difference of two lists on as many reviews, whether
    one predicts better, what is said about the average of as many reviews, and signs.
    """
    given = defaultdict(set)
    for text in texts:
        for question, answers in ANSWERS.items():
            given[question] |= {name for name, said in answers.items() if re.search(said, text)}
        for sentence in re.split(r"(?<=\.) |; (?=on the last)", text):
            for what, said in claims(sentence):
                given[what].add(said)
        given["signs"] |= {"a direction", *re.findall(r"[-+]\d+\.\d+ %", text)}
    return [(question, found) for question, found in given.items() if len(found) > 1]


def claims(sentence):
    """Yield what a sentence claims about two lists, or about the average, on how many reviews."""
    counts = {one or other for one, other in re.findall(REVIEWS, sentence)}
    if len(counts) != 1:
        return
    (count,) = counts
    judged = [name for name, said in JUDGED.items() if re.search(said, sentence)]
    who = re.search(r"new parameters|new ones", sentence) is not None
    if "it said" in sentence and judged:
        yield ("average", count, who), judged[-1]
    named = tuple(name for name, said in LISTS.items() if re.search(said, sentence))
    if len(named) != 2 or "preset" in sentence.split(":")[0]:
        return
    sizes = re.findall(r"error ([\d.]+ % (?:smaller|larger)(?: \(.*?\))?)", sentence)
    if sizes:
        yield ("size", count, named), sizes[0]
    verdict = [name for name, said in VERDICTS.items() if re.search(said, sentence)]
    if verdict:
        yield ("verdict", count, named), verdict[0]


def said(section):
    """Return the texts of a section."""
    return [section.answer, *section.lines, *section.notes]
