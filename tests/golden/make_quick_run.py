"""Write quick_run.json: what a small study of simulated users gives, to notice numbers that move.

    python tests/golden/make_quick_run.py

Run it only when a number is meant to move, and say why in the commit and in CHANGELOG.md.
"""

import json
import tempfile
from pathlib import Path

from srs_eval.commands.run import command

FILE = Path(__file__).with_name("quick_run.json")
ALGORITHMS = ("avg", "constant", "moving_avg", "sm2", "hlr", "fsrs45", "fsrs6", "oracle")
METRICS = (
    "log_loss",
    "normalized_entropy",
    "brier",
    "brier_skill",
    "smece",
    "auc",
    "rmse_bins",
    "rmse_bins_wiki",
    "rmse_bins_by_p",
    "mbe",
    "confusion_tpr_at_0_9",
    "temporal_violation",
)
WORDS = (
    "-m",
    f"algo={','.join(ALGORITHMS)}",
    *("data=synthetic", "data.users=3", "data.size_scale=0.02", "data.max_reviews=3000"),
    *("data.seed=2026", "seed=2026", "tracking=none", "figures=false"),
)


def numbers(sweep: Path) -> dict[str, dict[str, object]]:
    """Collect the means over users of each job in a folder of jobs."""
    collected = {}
    for number, algo in enumerate(ALGORITHMS):
        text = (sweep / f"{number}_{algo}" / "summary.json").read_text(encoding="utf-8")
        summary = json.loads(text)
        means = {name: summary["metrics"][name]["mean_users"] for name in METRICS}
        collected[algo] = {"users": summary["users"], "reviews": summary["reviews"], **means}
    return collected


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if command([*WORDS, f"hydra.sweep.dir={folder}"]) == 0:
            content = json.dumps(numbers(Path(folder)), indent=1)
            FILE.write_text(content + "\n", encoding="utf-8")
