"""Entry point ``mlflow.run_context_provider``: what every run begun by srs_eval is tagged with."""

from __future__ import annotations

import sys

from mlflow.tracking.context.abstract_context import RunContextProvider

FACTS = "srs_eval.tracking.run_facts"


class SrsRunContext(RunContextProvider):
    """Adds the facts of the run that srs_eval has open, and says nothing where it has none.

    So they are also on runs that an algorithm begins by itself while it is evaluated.
    """

    def in_context(self) -> bool:
        """Tell whether srs_eval has a run open in this process."""
        return bool(self.tags())

    def tags(self) -> dict[str, str]:
        """Give the tags of the run that is open."""
        facts = sys.modules.get(FACTS)
        return {} if facts is None else dict(facts.current())
