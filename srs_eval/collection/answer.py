"""What to do with a collection, and why: the answer in ten lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from srs_eval.collection.advice import FITTED, HALF, Advice, Belief, advise
from srs_eval.collection.intervals import SHOWN, Load, Models, Next, intervals, load, usual_maximum
from srs_eval.collection.lists import at_limits, fitted_lists, minutes, numbers_of
from srs_eval.collection.study import FEWEST, MAY, Study
from srs_eval.collection.truth import average
from srs_eval.collection.words import changed
from srs_eval.comparison.words import counted, listed, one_line, percent

WIDTH = 80
_MOST_LINES = 10
_LABEL = 8
_SURE = ((0.99, "almost certainly"), (0.9, "very likely"), (0.75, "probably"))
_NUMBERS = 21  # In a list


@dataclass(frozen=True)
class Answer:
    """A collection, and what follows from it."""

    study: Study
    advice: Advice
    models: Models | None  # None where nothing is fitted

    @classmethod
    def of(cls, study: Study) -> Answer:
        """Fit and judge a collection."""
        advice = advise(study)
        return cls(study, advice, None if advice.action == "early" else Models.of(study))

    @property
    def takes_new(self) -> bool:
        """Whether a new list is to be pasted."""
        return self.advice.pastes and not self.advice.leave_off and self.models is not None

    @cached_property
    def lists(self) -> dict[int | None, tuple[str, str]]:
        """Title and numbers of the lists to paste, by preset; None for all others."""
        if not self.takes_new:
            return {}
        unchanged = [preset for preset in self.study.presets if self.advice.keeps(preset)]
        return {key: each for key, each in fitted_lists(self.study).items() if key not in unchanged}

    @cached_property
    def next(self) -> list[Next]:
        """The intervals after some answers, in the largest presets."""
        return [] if self.models is None else intervals(self.study, self.models)

    @property
    def limited(self) -> int:
        """New parameters that are at a limit of what FSRS allows."""
        return sum(at_limits(numbers_of(numbers)) for _, numbers in self.lists.values())

    @cached_property
    def maximum(self) -> int | None:
        """The maximum interval that the reviews support; None if new intervals need none.

        They need one where they are far beyond what was reviewed; and where they are beyond it at
        all, if a constant predicts as well or parameters are at a limit.
        """
        if not self.takes_new:
            return None
        supported = self.study.constant.kind == "better" and not self.limited
        longest = self.study.longest
        rows = [n for n in self.next if n.answers == SHOWN and not self.advice.keeps(n.preset)]
        too_long = any(each.is_too_long(longest, supported=supported) for each in rows)
        return usual_maximum(longest) if too_long else None

    @cached_property
    def load(self) -> Load | None:
        """Reviews a day by what is advised, its maximum included; None if nothing changes."""
        advice, models = self.advice, self.models
        if models is None or advice.leave_off:
            return None
        if self.takes_new:
            kept = [preset for preset in self.study.presets if advice.keeps(preset)]
            return load(self.study, models, kept, self.maximum or math.inf)
        same = replace(models, new=models.now, draws=[])
        return load(self.study, same) if advice.turn_on else None

    def do(self) -> str:
        """Return what to do, with the limit that belongs to it."""
        study, advice = self.study, self.advice
        if advice.leave_off:
            return "Leave FSRS off."
        steps = ["turn FSRS on"] * advice.turn_on
        if advice.differs:
            names: dict[str, list[str]] = {"paste": [], "keep": [], "open": []}
            for preset, (action, _) in advice.presets.items():
                names[action].append(study.title(preset))
            kept = names["keep"] + names["open"]
            steps += [f"paste new parameters into {listed(names['paste'])}"] * bool(names["paste"])
            steps += [f"keep those of {listed(kept)}"] * bool(kept)
        elif self.takes_new:
            several = len(self.lists) > 1
            steps.append(f"paste these parameters{' into their presets' * several}")
        elif advice.action == "early" and (odd := self._odd()):
            steps.append(f"go back to the default parameters: the list of {listed(odd)} is odd")
        else:
            steps.append(f"keep {study.yours}{' for now' * (advice.action == 'open')}")
        if self.maximum:
            steps.append(f"set Maximum interval to {self.maximum} days")
        comma = "," * (len(steps) > 2)
        return _sentence(f"{comma} and ".join([", ".join(steps[:-1]), steps[-1]][-len(steps) :]))

    def why(self) -> str:
        """Return what decides, with its range."""
        study, advice, new = self.study, self.advice, self.advice.new
        if advice.action == "early" or new.own is None:
            return self._early()
        if advice.leave_off and advice.fsrs is not None:
            return f"SM-2, which you have, predicts better: {_likely(advice.fsrs)}."
        own, than = new.own, f"yours ({MAY})" if study.is_in_sample else study.yours
        if new.is_clear:
            text = {
                "better": f"the error is {own.size} than with {than}",
                "worse": f"new ones predict worse: the error is {own.size}",
                "noise": f"new ones make no difference worth having: error {own.size}",
                "no_gain": f"new ones predict no better than {than}: error {own.size}",
                "same": "new ones predict the same",
            }[own.kind]
            both = "for all presets together, " * advice.differs
            return f"{_sentence(f'{both}{text}')} {self._recall()}".strip()
        side = "better" if new.chance >= 0.5 else "worse"
        text = f"new ones are {_likely(new)} {side}{f' than {than}' * study.is_in_sample}"
        if advice.action == "open":
            text = f"whether new ones are better than {than} cannot be told"
        text += ": your own reviews alone do not settle it"
        if own.kind == "open":
            text += f" (error {changed(own.lo)} to {changed(own.hi)})"
        if new.others is not None:
            text += f", and they were better for {new.others.better} of {new.others.people} others"
        return _sentence(text)

    def expect(self) -> str:
        """Return what changes for the person."""
        load = self.load
        if load is None:
            return ""
        span = "" if math.isnan(load.lo) else f" ({_rate(load.lo)} to {_rate(load.hi)})"
        whose = "with yours" if self.study.is_in_sample else "by default"
        return (
            f"{_rate(load.new)} reviews a day{span} instead of {_rate(load.now)} {whose}; "
            f"{100 * load.recall:.0f} % recalled."
        )

    def doubt(self) -> str:
        """Return what speaks against it, and what that means."""
        return " ".join(_sentence(each) for each in self._doubts())

    def _doubts(self) -> Iterator[str]:
        study, advice = self.study, self.advice
        count, verb = _NUMBERS * len(self.lists), "is" if self.limited == 1 else "are"
        limits = f"{self.limited} of {count} parameters {verb} at a limit"
        is_flat = self.takes_new and study.constant.kind not in ("better", "unknown")
        if is_flat:
            than = "worse" if study.constant.kind == "worse" else "not clearly better"
            also = f", and {limits}" * bool(self.limited)
            tail = "do not trust long intervals"
            if self.maximum:
                tail = "your reviews hardly show when you forget, hence the maximum"
            yield f"new ones are {than} than always guessing your average{also}: {tail}"
        elif self.limited:
            tail = ", hence the maximum" * bool(self.maximum)
            yield f"{limits} of what FSRS allows: your reviews say little about them{tail}"
        short = [each for _, n in self.lists.values() for each in minutes(numbers_of(n))]
        if not advice.leave_off:
            own = {p: w for p, w in study.stored.items() if advice.keeps(p)}
            short += [f"{each} in {study.title(p)}" for p, w in own.items() for each in minutes(w)]
            titles = [study.title(preset) for preset, w in own.items() if at_limits(w)]
            if titles:
                yield f"parameters that {listed(titles)} has now are at a limit of what FSRS allows"
        if short:
            yield f"check that you forget new cards within the hour after {listed(short)}"
        if advice.action != "early" and advice.new.seen < HALF:
            later = counted(round(advice.learnable / advice.new.seen), "review")
            yield f"only {advice.learnable:,} of your {later} on later days can be judged"

    def reasons(self) -> list[tuple[str, str]]:
        """Return why, what to expect, and the doubt, as far as there is something to say."""
        texts = {"Why": self.why(), "Expect": self.expect(), "Doubt": self.doubt()}
        return [(label, text) for label, text in texts.items() if text]

    def lines(self, page: Path) -> list[str]:
        """Return the answer for a terminal."""
        first = textwrap.wrap(one_line(self.do()), WIDTH)
        last = [line for label, text in self.reasons() for line in _labelled(label, text)]
        several = len(self.lists) > 1
        lists = [
            one_line(f"{title}: {numbers}" if several else numbers)
            for title, numbers in self.lists.values()
        ]
        if len(first) + len(lists) + len(last) >= _MOST_LINES:
            lists = [f"The {len(lists)} lists are on the page."] if several else lists
        return [*first, *lists, *last, f"{'More':<{_LABEL}}{page}"]

    def _recall(self) -> str:
        """Say what was recalled, and what FSRS says of it now and with new parameters."""
        now, new = self.study.scored, self.study.fitted.predictions
        if now is None or new is None or not self.takes_new:
            return ""
        old, fitted = average(now), average(new)
        return (
            f"You recalled {percent(old.observed)}; they said {percent(old.predicted)}, the new "
            f"ones {percent(fitted.predicted)}."
        )

    def _early(self) -> str:
        """Say why nothing can be fitted."""
        study = self.study
        if study.can_learn >= FEWEST:
            return _sentence(f"new ones cannot be fitted: {study.fitted.reason}")
        return (
            f"{study.can_learn} of {counted(len(study.log), 'review')} can be learned from; a fit "
            f"needs {FEWEST}, and new ones are better for most people from {FITTED[0].reviews} on."
        )

    def _odd(self) -> list[str]:
        """Return the presets whose parameters of now are odd."""
        stored = self.study.stored
        return [self.study.title(p) for p, w in stored.items() if at_limits(w) or minutes(w)]


def _likely(belief: Belief) -> str:
    """Return how likely the likelier of better and worse is."""
    chance = max(belief.chance, 1 - belief.chance)
    word = next((word for least, word in _SURE if chance >= least), "more likely than not")
    return f"{word} ({'above 99 %' if chance > 0.99 else f'{100 * chance:.0f} %'})"


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _labelled(label: str, text: str) -> list[str]:
    # numbers stay on the line of their percent signs
    text = one_line(text).replace(" %", "\N{NO-BREAK SPACE}%")
    after = " " * _LABEL
    first = f"{label:<{_LABEL}}"
    wrapped = textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=after)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]
