"""A correct judge with an answer, its pages and known defects."""

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
