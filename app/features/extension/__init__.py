"""Browser extension for pages that only a signed-in person can open, and its pairing with the service."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.extension.cli import extension

    cli.groups["admin"].command("extension")(extension)


FEATURE = Feature(
    name="extension",
    commands=_commands,
    tables=("pairings",),
    routers=("pairing:router", "api:router"),
    pages=("pages:router",),
    path_checks="pairing:PATH_CHECKS",
)
