"""Entry point ``mlflow.run_context_provider``: tags of the run that srs_eval has open."""

from __future__ import annotations

from mlflow.tracking.context.abstract_context import RunContextProvider

from srs_eval.tracking import run_facts


class SrsRunContext(RunContextProvider):
    """Tags runs started while srs_eval has a run open, such as by an algorithm it evaluates."""

    def in_context(self) -> bool:
        """Return whether srs_eval has a run open in this process."""
        return bool(run_facts.current())

    def tags(self) -> dict[str, str]:
        """Return the tags of the open run."""
        return dict(run_facts.current())
