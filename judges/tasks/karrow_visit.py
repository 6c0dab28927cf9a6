"""Example task: plan a Saturday at the tide museum of Karrow Bay (ferry, opening hours, tickets, talk)."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from judges.context import Group, JudgeContext
from judges.registry import judge

TASK = """Plan a visit to the tide museum at Karrow Bay on Saturday 16 August 2025, coming from Sund Quay. Which ferry
gets there before the museum opens, when does it leave and arrive? From when to when is the museum open that
day, what does a ticket for an adult cost, and where can a wheelchair be borrowed? Which talk is given that
day, by whom, and when does it start? What do members of the museum pay? Give a page for each part."""

EXTRACT = """Read out of the answer: the ferry with the times it leaves and arrives; the opening and closing time of the
museum, the price for an adult and where wheelchairs are lent; the talk with title, speaker and start; the
price for members; and the pages cited for each part."""


class Ferry(BaseModel):
    leaves: str = Field(default="", description="departure time at Sund Quay, departs")
    arrives: str = Field(default="", description="arrival time at Karrow Bay, arrival")
    sources: list[str] = []


class Museum(BaseModel):
    opens: str = Field(default="", description="opening time, open from")
    closes: str = Field(default="", description="closing time, open until")
    adult_ticket: str = Field(default="", description="price of a ticket for an adult, admission")
    wheelchairs: str = Field(default="", description="where a wheelchair can be borrowed")
    sources: list[str] = []


class Talk(BaseModel):
    title: str = ""
    speaker: str = ""
    starts: str = Field(default="", description="start time")
    sources: list[str] = []


class Members(BaseModel):
    price: str = Field(default="", description="what members pay for a ticket")
    sources: list[str] = []


class Plan(BaseModel):
    ferry: Ferry = Ferry()
    museum: Museum = Museum()
    talk: Talk = Talk()
    members: Members = Members()


@judge(task="karrow_visit", description=TASK)
async def karrow_visit(ctx: JudgeContext) -> None:
    plan = await ctx.extract(Plan, EXTRACT)
    declare_ferry(ctx.sequential("ferry", "A ferry that arrives before the museum opens", weight=2), plan)
    declare_museum(ctx.parallel("museum", "Opening hours, ticket and wheelchairs", weight=2), plan.museum)
    declare_talk(ctx.parallel("talk", "The talk of the day", weight=2), plan.talk)
    declare_members(ctx.parallel("members", "What members pay"), plan.members)


def declare_ferry(steps: Group, plan: Plan) -> None:
    """Declare the steps in order: a ferry exists, it has an arrival time, and it arrives before the museum opens."""
    ferry = plan.ferry
    steps.check("given", ferry.leaves and ferry.arrives, "Both times are given")
    steps.verify("leaves", f"On Saturday the ferry leaves Sund Quay at {ferry.leaves}", sources=ferry.sources)
    steps.verify(
        "arrives",
        f"On Saturday the ferry that leaves at {ferry.leaves} arrives in Karrow Bay at {ferry.arrives}",
        sources=ferry.sources,
    )
    arrives, opens = minutes(ferry.arrives), minutes(plan.museum.opens)
    in_time = arrives is not None and opens is not None and arrives <= opens
    steps.check("in_time", in_time, "It arrives before the museum opens")


def declare_museum(group: Group, museum: Museum) -> None:
    complete = museum.opens and museum.closes and museum.adult_ticket and museum.wheelchairs
    group.check("given", complete, "All four are given", critical=True)
    group.verify("opens", f"On Saturday the tide museum is open from {museum.opens}", sources=museum.sources)
    group.verify("closes", f"On Saturday the tide museum is open to {museum.closes}", sources=museum.sources)
    group.verify("ticket", f"A ticket for an adult costs {museum.adult_ticket}", sources=museum.sources, weight=2)
    group.verify("wheelchairs", f"Wheelchairs can be borrowed at {museum.wheelchairs}", sources=museum.sources)


def declare_talk(group: Group, talk: Talk) -> None:
    complete = talk.title and talk.speaker and talk.starts
    group.check("given", complete, "Title, speaker and start are given", critical=True)
    group.verify("speaker", f"The speaker of the talk '{talk.title}' is {talk.speaker}", sources=talk.sources, weight=2)
    group.verify(
        "starts", f"The talk '{talk.title}' starts at {talk.starts} on Saturday 16 August 2025", sources=talk.sources
    )


def declare_members(group: Group, members: Members) -> None:
    group.check("given", members.price, "A price for members is given", critical=True)
    group.verify("price", f"A member of the museum pays a price of {members.price}", sources=members.sources)


def minutes(clock: str) -> int | None:
    """Return the minutes after midnight of the first clock time such as ``9:25`` in a text."""
    match = re.search(r"(\d{1,2}):(\d{2})", clock)
    return int(match[1]) * 60 + int(match[2]) if match else None
