"""Example task: compare three tide gauges (weight, battery, price) and choose one for a survey."""

from __future__ import annotations

from pydantic import BaseModel, Field

from judges.context import Group, JudgeContext
from judges.registry import judge

TASK = """Compare the three field gauges that Pellard Instruments sells today: for each its weight, how long its
battery lasts and its price in crowns, with the pages that say so. Say which of them is the lightest whose
battery lasts through a survey of three days and nights. Say also whether the older Kestrel 2 can still be
bought, with a page."""

EXTRACT = """Read out of the answer: every gauge it compares with its weight, battery life, price and cited pages; which
gauge it chooses for the survey of three days, and why; and what it says about the Kestrel 2."""

EXPECTED = {"kestrel_4": "Kestrel 4", "kestrel_6": "Kestrel 6", "heron_2": "Heron 2"}
EXPECTED_CHOICE = "Kestrel 6"
SURVEY_HOURS = 72


class Gauge(BaseModel):
    name: str = ""
    weight: str = ""
    battery: str = Field(default="", description="battery life, how long the battery lasts")
    price: str = ""
    sources: list[str] = []


class Choice(BaseModel):
    gauge: str = Field(default="", description="the chosen gauge, recommendation")
    hours: float | None = Field(default=None, description="battery life of the chosen gauge in hours")


class Older(BaseModel):
    status: str = Field(default="", description="whether it is still sold")
    sources: list[str] = []


class Findings(BaseModel):
    gauges: list[Gauge] = []
    choice: Choice = Field(default=Choice(), description="recommendation for the survey")
    kestrel_2: Older = Field(default=Older(), description="the older Kestrel 2")

    def gauge(self, name: str) -> Gauge:
        """Return the entry for a gauge, or an empty one if the answer has none."""
        return next((one for one in self.gauges if name.casefold() in one.name.casefold()), Gauge())


@judge(task="pellard_gauges", description=TASK)
async def pellard_gauges(ctx: JudgeContext) -> None:
    findings = await ctx.extract(Findings, EXTRACT)
    gauges = ctx.parallel("gauges", "Weight, battery and price of the three gauges", weight=3)
    for short, name in EXPECTED.items():
        declare_gauge(gauges.parallel(short, f"The figures of the {name}"), findings.gauge(name), name)
    declare_choice(ctx.sequential("choice", "The lightest gauge that lasts three days and nights", weight=2), findings)
    declare_older(ctx.parallel("older", "Whether the Kestrel 2 can still be bought"), findings.kestrel_2)


def declare_gauge(group: Group, gauge: Gauge, name: str) -> None:
    complete = gauge.name and gauge.weight and gauge.battery and gauge.price
    group.check("given", complete, f"The answer has weight, battery and price of the {name}", critical=True)
    group.verify("weight", f"The {name} weighs {gauge.weight}", sources=gauge.sources)
    group.verify("battery", f"The battery of the {name} lasts {gauge.battery}", sources=gauge.sources)
    group.verify("price", f"The {name} costs {gauge.price}", sources=gauge.sources, weight=2)


def declare_choice(steps: Group, findings: Findings) -> None:
    """Declare the steps in order: a gauge is named, it is the expected one, its stated battery life is sufficient."""
    chosen = findings.choice.gauge
    steps.check("named", chosen, "A gauge is named")
    steps.verify("right", f"'{chosen}' and '{EXPECTED_CHOICE}' are the same gauge")
    steps.check(
        "lasts", (findings.choice.hours or 0) >= SURVEY_HOURS, f"Its battery is said to last {SURVEY_HOURS} hours"
    )


def declare_older(group: Group, older: Older) -> None:
    group.check("given", older.status, "The answer says whether it is still sold", critical=True)
    group.verify("status", f"The Kestrel 2 is {older.status}", sources=older.sources)
