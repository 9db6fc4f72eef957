"""`--nested`: the honest estimate, an outer cross-validation around scaling, tuning and training."""

import argparse
from typing import Any

from . import scaling
from .failures import USAGE, Failure, blamed_on
from .job import Job
from .search import arguments, spoken_warnings

__all__ = ["estimate"]


def estimate(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Scores of outer folds whose rows took no part in scaling, tuning or training."""
    from ..nested import nested_score
    from ..tune import tune

    if options.method != "tune" or options.repeats > 1:
        raise Failure(USAGE, "--nested goes with the method tune and without --repeats")
    settings = arguments(options, tune)
    settings.pop("checkpoint", None)
    with blamed_on(USAGE), spoken_warnings(options.quiet):
        found = nested_score(
            job.problem,
            job.raw.X,
            job.y,
            outer=options.nested,
            folds=options.folds,
            criterion=job.criterion,
            groups=job.raw.groups,
            seed=options.seed,
            transform=lambda X: scaling.fit(job.scaling.kind, X),
            progress=False,
            **settings,
        )
    return {
        "value": found.value,
        "hard": found.hard,
        "standard_error": found.standard_error,
        "values": found.values,
        "hards": found.hards,
    }
