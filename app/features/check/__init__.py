"""Audit of the citations of a report: ``assay check``."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.check.cli import check

    cli.program.command("check", rich_help_panel="Evaluate")(check)


FEATURE = Feature(
    name="check",
    commands=_commands,
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="checks", path="/checks", label="Checks"),),
    job_runners={"check": "jobs:CHECK_RUNNER"},
)
