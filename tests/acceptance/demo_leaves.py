"""Leaves of the demo: their number by task, and those that do not pass, by agent and task."""

from __future__ import annotations

from typing import Final

from rubrics.verdict import Outcome, Reason

_GONE = (Outcome.FAILED, Reason.SOURCE_GONE)
_REFUTED = (Outcome.FAILED, Reason.REFUTED)
_GATED = (Outcome.SKIPPED, Reason.GATED)
_UNREADABLE = (Outcome.NOT_JUDGED, Reason.CAPTURE_BLOCKED)

LEAVES: Final = {"velm_directors": 18, "pellard_gauges": 17, "karrow_visit": 14}
MISSED: Final[dict[str, dict[str, dict[str, tuple[Outcome, Reason]]]]] = {
    "demo": {
        "velm_directors": {},
        "pellard_gauges": {},
        "karrow_visit": {},
    },
    "demo-careless": {
        "velm_directors": {
            "succession/d2/thesis": _REFUTED,
            "succession/d3/name": _GATED,
            "succession/d3/office": _GATED,
            "succession/d3/thesis": _GATED,
            "lecture/date": _REFUTED,
        },
        "pellard_gauges": {
            "gauges/kestrel_6/battery": _REFUTED,
            "gauges/heron_2/price": _REFUTED,
        },
        "karrow_visit": {
            "museum/closes": _REFUTED,
            "talk/starts": _REFUTED,
            "members/price": _UNREADABLE,
        },
    },
    "demo-inventive": {
        "velm_directors": {
            "succession/d1/office": _GONE,
            "succession/d1/thesis": _GONE,
            "succession/d2/name": _GATED,
            "succession/d2/office": _GATED,
            "succession/d2/thesis": _GATED,
            "succession/d3/name": _GATED,
            "succession/d3/office": _GATED,
            "succession/d3/thesis": _GATED,
            "institute/meaning": _REFUTED,
            "lecture/speaker": _REFUTED,
        },
        "pellard_gauges": {
            "gauges/kestrel_4/weight": _GONE,
            "gauges/kestrel_4/battery": _GONE,
            "gauges/kestrel_4/price": _GONE,
            "gauges/kestrel_6/weight": _REFUTED,
            "gauges/kestrel_6/battery": _REFUTED,
            "gauges/kestrel_6/price": _REFUTED,
            "gauges/heron_2/weight": _GONE,
            "gauges/heron_2/battery": _GONE,
            "gauges/heron_2/price": _GONE,
            "choice/right": _REFUTED,
            "older/status": _REFUTED,
        },
        "karrow_visit": {
            "ferry/leaves": _REFUTED,
            "ferry/arrives": _GATED,
            "museum/opens": _GONE,
            "museum/closes": _GONE,
            "museum/ticket": _GONE,
            "museum/wheelchairs": _GONE,
            "talk/speaker": _REFUTED,
            "talk/starts": _REFUTED,
            "members/price": _REFUTED,
        },
    },
}
