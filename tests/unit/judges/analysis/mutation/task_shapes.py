"""Correct judges for tasks of different shapes, each with an answer, its pages and known defects."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = """\
from pydantic import BaseModel, Field

from judges.context import Group, JudgeContext
from judges.registry import judge

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """An edit that breaks a judge: ``old`` becomes ``new``. The report must name ``subject``."""

    name: str
    old: str
    new: str
    subject: str
    found_as: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShape:
    """A task with a correct judge."""

    task: str
    judge: str
    answer: str
    pages: dict[str, str]
    defects: tuple[Defect, ...]


SHOP = "https://pans.example"
PRODUCTS = TaskShape(
    task="copper_pans",
    answer=f"""\
# Copper pans for an induction hob

## Products

### 1. Brenn Sauté 24

- Brand: Brenn
- Price: 189 euros
- Diameter: 24 cm
- Warranty: 25 years
- Source: {SHOP}/brenn-24

### 2. Halvard Classic

- Brand: Halvard
- Price: 142 euros
- Diameter: 28 cm
- Warranty: 10 years
- Source: {SHOP}/halvard

### 3. Ostrava Pro

- Brand: Ostrava
- Price: 97 euros
- Diameter: 20 cm
- Warranty: 5 years
- Source: {SHOP}/ostrava
""",
    pages={
        f"{SHOP}/brenn-24": "Brenn Sauté 24. Brand: Brenn. The Brenn Sauté 24 costs 189 euros. Its diameter is 24 cm. "
        "The Brenn Sauté 24 has a warranty of 25 years. The Brenn Sauté 24 works on an induction hob.",
        f"{SHOP}/halvard": "Halvard Classic. Brand: Halvard. The Halvard Classic costs 142 euros. It has a "
        "diameter of 28 cm. The Halvard Classic has a warranty of 10 years. It works on an induction hob.",
        f"{SHOP}/ostrava": "Ostrava Pro. Brand: Ostrava. The Ostrava Pro costs 97 euros. Its diameter is 20 cm. "
        "The Ostrava Pro has a warranty of 5 years. It works on an induction hob.",
    },
    judge=_HEAD
    + """\
import re


class Pan(BaseModel):
    name: str = ""
    brand: str = ""
    price: str = ""
    diameter: str = ""
    warranty: str = ""
    sources: list[str] = []


class Pans(BaseModel):
    products: list[Pan] = Field(default=[], description="the products")


def number(text: str) -> float:
    found = re.search(r"\\d+(?:\\.\\d+)?", text)
    return float(found[0]) if found else -1.0


@judge(task="copper_pans", description="Find three copper pans under 200 euros that work on an induction hob.")
async def copper_pans(ctx: JudgeContext) -> None:
    found = await ctx.extract(Pans, "The pans with brand, price, diameter, warranty and pages.")
    pans = [*found.products, Pan(), Pan(), Pan()][:3]
    for position, pan in enumerate(pans):
        group = ctx.parallel(f"pan_{position + 1}", "One pan")
        complete = pan.name and pan.brand and pan.warranty
        group.check("complete", complete, "Name, brand and warranty are given", critical=True)
        group.check("affordable", 0 < number(pan.price) < 200, "It costs less than 200 euros")
        declare_claims(group, pans, position)


def declare_claims(group: Group, pans: list[Pan], position: int) -> None:
    pan = pans[position]
    pages = pan.sources
    group.verify("brand", f"The brand of the {pan.name} is {pan.brand}", sources=pages)
    group.verify("price", f"The {pan.name} costs {pan.price}", sources=pages)
    group.verify("diameter", f"The {pan.name} has a diameter of {pan.diameter}", sources=pages)
    group.verify("warranty", f"The {pan.name} has a warranty of {pan.warranty}", sources=pages)
    group.verify("induction", f"The {pan.name} works on an induction hob", sources=pages)
""",
    defects=(
        Defect(
            name="sources dropped",
            old='costs {pan.price}", sources=pages)',
            new='costs {pan.price}")',
            subject="price",
            found_as=("answer_only",),
        ),
        Defect(
            name="wrong index",
            old="    pages = pan.sources\n",
            new="    pages = pans[position - 1].sources\n",
            subject="pan_",
            found_as=("wrong_item",),
        ),
    ),
)

TREE = "https://kin.example"
LINEAGE = TaskShape(
    task="clockmakers",
    answer=f"""\
# Four generations of clockmakers

## Generations

| Name | Born | Father | Workshop | Sources |
|---|---|---|---|---|
| Anselm Ruddock | 1702 | Piers Ruddock | Lower Mill | {TREE}/anselm |
| Corwin Ruddock | 1731 | Anselm Ruddock | Tanner Street | {TREE}/corwin |
| Edmund Ruddock | 1764 | Corwin Ruddock | Harbour Gate | {TREE}/edmund |

## Founding

- Founder: Anselm Ruddock
- Year: 1725
- Source: {TREE}/firm
""",
    pages={
        f"{TREE}/anselm": "Anselm Ruddock was born in 1702. The father of Anselm Ruddock was Piers Ruddock. "
        "Anselm Ruddock had his workshop at Lower Mill.",
        f"{TREE}/corwin": "Corwin Ruddock was born in 1731. The father of Corwin Ruddock was Anselm Ruddock. "
        "Corwin Ruddock had his workshop at Tanner Street.",
        f"{TREE}/edmund": "Edmund Ruddock was born in 1764. The father of Edmund Ruddock was Corwin Ruddock. "
        "Edmund Ruddock had his workshop at Harbour Gate.",
        f"{TREE}/firm": "The firm was founded by Anselm Ruddock in 1725.",
    },
    judge=_HEAD
    + """\
NAMES = ("Anselm Ruddock", "Corwin Ruddock", "Edmund Ruddock")
FOUNDED = "1725"


class Person(BaseModel):
    name: str = ""
    born: str = ""
    father: str = ""
    workshop: str = ""
    sources: list[str] = []


class Founding(BaseModel):
    founder: str = ""
    year: str = ""
    sources: list[str] = []


class Lineage(BaseModel):
    generations: list[Person] = Field(default=[], description="the generations")
    founding: Founding = Field(default=Founding(), description="the founding of the firm")


@judge(task="clockmakers", description="Name three generations of the Ruddock clockmakers, and who founded the firm.")
async def clockmakers(ctx: JudgeContext) -> None:
    lineage = await ctx.extract(Lineage, "The generations in order and the founding of the firm.")
    line = ctx.sequential("line", "The generations in order", weight=3)
    people = [*lineage.generations, Person(), Person(), Person()][:3]
    for position, (person, expected) in enumerate(zip(people, NAMES), start=1):
        step = line.parallel(f"g{position}", f"Generation {position}")
        step.verify("who", f"'{person.name}' and '{expected}' are the same person", critical=True)
        step.verify("born", f"{person.name} was born in {person.born}", sources=person.sources)
        step.verify("father", f"The father of {person.name} was {person.father}", sources=person.sources)
        step.verify("workshop", f"{person.name} had his workshop at {person.workshop}", sources=person.sources)
    founding = lineage.founding
    firm = ctx.parallel("firm", "The firm")
    firm.check("year_given", founding.year == FOUNDED, "The expected year is given")
    firm.verify("founder", f"The firm was founded by {founding.founder} in {founding.year}", sources=founding.sources)
""",
    defects=(
        Defect(
            name="claim without the value",
            old='f"{person.name} had his workshop at {person.workshop}"',
            new='f"{person.name} had his workshop in the town"',
            subject="workshop",
            found_as=("field_not_judged", "only_presence"),
        ),
        Defect(
            name="prefix comparison",
            old="founding.year == FOUNDED",
            new="founding.year[:3] == FOUNDED[:3]",
            subject="year",
            found_as=("partial_comparison",),
        ),
    ),
)

HALL = "https://hall.example"
EVENTS = TaskShape(
    task="autumn_concerts",
    answer=f"""\
# Concerts in autumn

## Events

| Title | Date | Venue | Ticket | Sources |
|---|---|---|---|---|
| Night of Strings | 12 September 2025 | Quarry Hall | 18 euros | {HALL}/strings |
| The Brass Walk | 3 October 2025 | Market Square | 9 euros | {HALL}/brass |
| Choir of Sorrel Bay | 21 November 2025 | Saint Orm | 14 euros | {HALL}/choir |

## Organiser

- Society: Sorrel Music Society
- Chair: Jonna Vik
- Source: {HALL}/society
""",
    pages={
        f"{HALL}/strings": "Night of Strings takes place on 12 September 2025. Night of Strings takes place in Quarry "
        "Hall. A ticket for Night of Strings costs 18 euros.",
        f"{HALL}/brass": "The Brass Walk takes place on 3 October 2025. The Brass Walk takes place in Market Square. "
        "A ticket for The Brass Walk costs 9 euros.",
        f"{HALL}/choir": "Choir of Sorrel Bay takes place on 21 November 2025. Choir of Sorrel Bay takes place in "
        "Saint Orm. A ticket for Choir of Sorrel Bay costs 14 euros.",
        f"{HALL}/society": "The concerts are organised by the Sorrel Music Society. Its chair is Jonna Vik.",
    },
    judge=_HEAD
    + """\
from datetime import date, datetime

PROGRAMME = "https://hall.example/programme"


class Event(BaseModel):
    title: str = ""
    date: str = ""
    venue: str = ""
    ticket: str = ""
    sources: list[str] = []


class Organiser(BaseModel):
    society: str = ""
    chair: str = ""
    sources: list[str] = []


class Programme(BaseModel):
    events: list[Event] = Field(default=[], description="the events")
    organiser: Organiser = Field(default=Organiser(), description="the organiser")


def day(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%d %B %Y").date()
    except ValueError:
        return None


@judge(task="autumn_concerts", description="List three concerts in autumn 2025, and who organises them.")
async def autumn_concerts(ctx: JudgeContext) -> None:
    found = await ctx.extract(Programme, "The events with date, venue, ticket and pages; the organiser.")
    for position in range(3):
        event = found.events[position] if position < len(found.events) else Event()
        group = ctx.parallel(f"event_{position + 1}", "One concert")
        when = day(event.date)
        in_autumn = when is not None and date(2025, 9, 1) <= when <= date(2025, 11, 30)
        group.check("in_autumn", in_autumn, "It is in autumn 2025", critical=True)
        group.verify("date", f"{event.title} takes place on {event.date}", sources=event.sources)
        group.verify("venue", f"{event.title} takes place in {event.venue}", sources=event.sources)
        group.verify("ticket", f"A ticket for {event.title} costs {event.ticket}", sources=event.sources)
    declare_organiser(ctx.parallel("organiser", "Who organises them"), found.organiser)


def declare_organiser(group: Group, organiser: Organiser) -> None:
    group.verify("society", f"The concerts are organised by the {organiser.society}", sources=organiser.sources)
    group.verify("chair", f"The chair of the {organiser.society} is {organiser.chair}", sources=organiser.sources)
""",
    defects=(
        Defect(
            name="hard-coded source",
            old='costs {event.ticket}", sources=event.sources)',
            new='costs {event.ticket}", sources=[*event.sources, PROGRAMME])',
            subject="ticket",
            found_as=("fixed_sources", "fallback_sources"),
        ),
        Defect(
            name="section never judged",
            old='    declare_organiser(ctx.parallel("organiser", "Who organises them"), found.organiser)\n',
            new="",
            subject="organiser",
            found_as=("section_not_judged",),
        ),
    ),
)

OFFICE = "https://office.example"
STEPS = TaskShape(
    task="mooring_permit",
    answer=f"""\
# How to get a mooring permit

## Steps

1. **Register the boat**
   - Office: Harbour Registry
   - Fee: 35 crowns
   - Takes: 3 days
   - Source: {OFFICE}/register
2. **Have the hull inspected**
   - Office: Survey Board
   - Fee: 120 crowns
   - Takes: 10 days
   - Source: {OFFICE}/inspection
3. **Apply for a berth**
   - Office: Mooring Desk
   - Fee: 60 crowns
   - Takes: 14 days
   - Source: {OFFICE}/berth
""",
    pages={
        f"{OFFICE}/register": "Register the boat: apply at the Harbour Registry. Register the boat: the fee is 35 "
        "crowns. Register the boat: it takes 3 days.",
        f"{OFFICE}/inspection": "Have the hull inspected: apply at the Survey Board. Have the hull inspected: the "
        "fee is 120 crowns. Have the hull inspected: it takes 10 days.",
        f"{OFFICE}/berth": "Apply for a berth: apply at the Mooring Desk. Apply for a berth: the fee is 60 crowns. "
        "Apply for a berth: it takes 14 days.",
    },
    judge=_HEAD
    + """\
STEPS = ("Register the boat", "Have the hull inspected", "Apply for a berth")


class Step(BaseModel):
    name: str = ""
    office: str = ""
    fee: str = ""
    takes: str = ""
    sources: list[str] = []


class Procedure(BaseModel):
    steps: list[Step] = Field(default=[], description="the steps in order")


@judge(task="mooring_permit", description="Describe the three steps to a mooring permit with office, fee and duration.")
async def mooring_permit(ctx: JudgeContext) -> None:
    found = await ctx.extract(Procedure, "The steps with office, fee, duration and pages.")
    steps = [*found.steps, Step(), Step(), Step()][:3]
    procedure = ctx.sequential("procedure", "The steps in order")
    for position, (step, expected) in enumerate(zip(steps, STEPS), start=1):
        group = procedure.parallel(f"step_{position}", f"Step {position}")
        given = bool(step.office and step.fee and step.takes)
        group.check("given", given, "Office, fee and duration are given", critical=True)
        group.check("named", step.name == expected, "It is the expected step")
        group.verify("office", f"{step.name}: apply at the {step.office}", sources=step.sources)
        group.verify("fee", f"{step.name}: the fee is {step.fee}", sources=step.sources)
        group.verify("takes", f"{step.name}: it takes {step.takes}", sources=step.sources)
""",
    defects=(
        Defect(
            name="check that always passes",
            old='group.check("named", step.name == expected, "It is the expected step")',
            new='group.check("named", len(STEPS) == 3, "It is the expected step")',
            subject="named",
            found_as=("constant_leaf",),
        ),
        Defect(
            name="sources of the first item only",
            old='it takes {step.takes}", sources=step.sources)',
            new='it takes {step.takes}", sources=steps[0].sources)',
            subject="takes",
            found_as=("wrong_item",),
        ),
    ),
)

SHAPES = (PRODUCTS, LINEAGE, EVENTS, STEPS)
