"""What the command says of fits that are missing, or not what they should be."""

from saved import result_from

from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.experiment import jobs
from srs_eval.experiment.jobs import JobOutcome
from srs_eval.experiment.report import result_text
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fit
from srs_eval.results.fit_counts import failures_in_words, reason_of

PANEL = Panel([LogLoss()])
NO = Fit(2, -1, "failed", "no")
FITS = {
    "each status once": [
        *(Fit(1, fold, status) for fold, status in enumerate(["ok", "fallback", "failed"])),
        Fit(2, -1, "skipped"),
    ],
    "the worst first, and each reason once": [
        Fit(3, 0, "ok", "did not converge"),
        *(Fit(1, fold, "fallback", "no second reviews") for fold in range(4)),
        Fit(4, -1, "skipped", "user 4: only 3 of 9 reviews"),
        *(Fit(2, fold, "failed", f"user 2, fold {fold}: it diverged") for fold in (1, 3)),
    ],
    "some of many reasons": [
        Fit(user, -1, "failed", f"user {user}: row {user}") for user in range(9)
    ],
    "a log that could not be read": [*(Fit(1, fold, "ok") for fold in range(5)), NO],
    "no log that could be read": [NO],
    "a failed fit": [Fit(1, 0, "ok"), Fit(1, 1, "failed", "no")],
    "failed fits, and users without a fit": [
        Fit(1, 0, "failed", "no"),
        *(Fit(user, -1, "failed", "x") for user in (2, 3)),
    ],
}
TABLE = "log.csv, user ann: time: row 3 is empty"
PACKAGE = "logs/ann.colpkg: there are no reviews in it"
REASONS = [
    *(Fit(3, 2, "failed", reason) for reason in ("user 3, fold 2: no", "no", "user 3: no", "")),
    *(Fit(3, -1, "skipped", reason) for reason in ("user 3: no", "user 33: no")),
    *(Fit(user, -1, "failed", PACKAGE) for user in ("ann", "ben")),
    Fit("ann", -1, "failed", "ann.colpkg:\n  - one\n  - two"),
    *(Fit(user, -1, "failed", TABLE) for user in ("ann", "an")),
    Fit("ann", 2, "failed", TABLE),
]


def of_fits(*fits):
    users = dict.fromkeys(fit.user for fit in fits)
    evaluations = [
        UserEvaluation(user, tuple(fit for fit in fits if fit.user == user), None, ReviewLog())
        for user in users
    ]
    return result_from(evaluations, PANEL)


def test_what_is_said_of_fits_and_jobs(golden_text):
    lines = []
    for name, fits in FITS.items():
        lines += [f"== {name}", result_text(of_fits(*fits), PANEL), failures_in_words(fits), ""]
    before = set()
    slow, short = Fit(1, 0, "failed", "it\n  diverged"), Fit(2, -1, "skipped", "only 3 of 9")
    for fits in ((slow,), (slow,), (slow, short)):
        lines += ["== job", result_text(of_fits(*fits), PANEL, brief=True, said=before), ""]
    outcomes = [JobOutcome("avg", "failed", reason, 1) for reason in ("no", "no", "other", "no")]
    lines += ["== jobs", jobs._jobs_table([*outcomes, JobOutcome("hlr", "ok")]), "", "== reasons"]
    lines += [f"{fit.user}, {fit.fold}, {fit.reason!r}: {reason_of(fit)}" for fit in REASONS]
    golden_text("report_of_fits", "\n".join(lines) + "\n")
