"""Example task: name the first three directors of the Velm Institute in order, each with a source."""

from __future__ import annotations

from pydantic import BaseModel, Field

from judges.context import Group, JudgeContext
from judges.registry import judge

TASK = """Name the first three directors of the Velm Institute at Karrow Bay in the order in which they served. For
each, give the year in which they took office, the subject of their doctoral thesis and a page that says so.
Add the year in which the institute was founded and what Velm means, and who gives this year's autumn
lecture and on which day, again with a page for each."""

EXTRACT = """Read out of the answer: the directors it names, in its order, each with the year of taking office, the
subject of the doctoral thesis and the cited pages; what it says about the founding of the institute; and
the autumn lecture."""

EXPECTED = ("Ida Norrstad", "Tobias Quell", "Marisol Etchevan")


class Director(BaseModel):
    name: str = ""
    took_office: str = Field(default="", description="year of taking office, since, director from")
    thesis: str = Field(default="", description="subject of the doctoral thesis or dissertation")
    sources: list[str] = []


class Institute(BaseModel):
    founded: str = Field(default="", description="year of the founding")
    meaning: str = Field(default="", description="what the name Velm means")
    sources: list[str] = []


class Lecture(BaseModel):
    speaker: str = Field(default="", description="who gives the lecture")
    date: str = Field(default="", description="day of the lecture")
    sources: list[str] = []


class Findings(BaseModel):
    directors: list[Director] = Field(default=[], description="the directors of the institute in order")
    institute: Institute = Institute()
    lecture: Lecture = Field(default=Lecture(), description="the autumn lecture")

    def director(self, number: int) -> Director:
        """Return the n-th director of the answer, or an empty one if it names fewer."""
        return self.directors[number - 1] if number <= len(self.directors) else Director()


@judge(task="velm_directors", description=TASK)
async def velm_directors(ctx: JudgeContext) -> None:
    findings = await ctx.extract(Findings, EXTRACT)
    succession = ctx.sequential("succession", "The first three directors, in order", weight=3)
    for number, expected in enumerate(EXPECTED, start=1):
        step = succession.parallel(f"d{number}", f"Director number {number} is {expected}")
        declare_director(step, findings.director(number), expected)
    declare_institute(ctx.parallel("institute", "The founding and the name of the institute"), findings.institute)
    declare_lecture(ctx.parallel("lecture", "This year's autumn lecture"), findings.lecture)


def declare_director(step: Group, person: Director, expected: str) -> None:
    complete = person.name and person.took_office and person.thesis
    step.check("given", complete, "Name, year and thesis are given", critical=True)
    step.verify("name", f"'{person.name}' and '{expected}' are the same person", critical=True)
    step.verify(
        "office",
        f"{person.name} became director of the Velm Institute in {person.took_office}",
        sources=person.sources,
        weight=2,
    )
    step.verify("thesis", f"{person.name} wrote a doctoral thesis on {person.thesis}", sources=person.sources)


def declare_institute(group: Group, institute: Institute) -> None:
    group.check("given", institute.founded and institute.meaning, "Year and meaning are given", critical=True)
    group.verify("founded", f"The Velm Institute was founded in {institute.founded}", sources=institute.sources)
    group.verify("meaning", f"The name Velm means {institute.meaning}", sources=institute.sources)


def declare_lecture(group: Group, lecture: Lecture) -> None:
    group.check("given", lecture.speaker and lecture.date, "Speaker and day are given", critical=True)
    group.verify("speaker", f"{lecture.speaker} gives the autumn lecture", sources=lecture.sources, weight=2)
    group.verify("date", f"The autumn lecture is on {lecture.date}", sources=lecture.sources)
