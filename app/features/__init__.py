"""All feature packages, in the order in which ``assay --help`` lists their commands."""

from app.feature import Feature
from app.features import (
    bundles,
    check,
    comparison,
    demo,
    drafting,
    interop,
    meta_eval,
    mutation,
    rescore,
    rewards,
    suites,
    tasks,
)

FEATURES: tuple[Feature, ...] = (
    tasks.FEATURE,
    demo.FEATURE,
    check.FEATURE,
    comparison.FEATURE,
    rescore.FEATURE,
    rewards.FEATURE,
    bundles.FEATURE,
    interop.FEATURE,
    meta_eval.FEATURE,
    drafting.FEATURE,
    mutation.FEATURE,
    suites.FEATURE,
)
