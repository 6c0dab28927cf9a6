"""Rescoring: judge stored answers again after a change of the rubric, and compare the scores."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.rescore.cli import rescore

    cli.groups["results"].command("rescore")(rescore)


FEATURE = Feature(
    name="rescore",
    commands=_commands,
    routers=("api:router",),
    pages=("pages:router",),
    tabs=(Tab(name="rescores", path="/rescores", label="Rescores"),),
)
