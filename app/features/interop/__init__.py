"""Interchange formats: import of answers and page caches, export of results and page caches."""

from app.feature import Commands, Feature


def _commands(cli: Commands) -> None:
    from app.features.interop import cli_export, cli_import, cli_page_caches

    cli.program.add_typer(cli_import.program(), name="answers", rich_help_panel="Evaluate")
    cli.groups["results"].command("export")(cli_export.export)
    capture = cli.groups["capture"]
    capture.command("import")(cli_page_caches.import_)
    capture.command("export")(cli_page_caches.export)


FEATURE = Feature(name="interop", commands=_commands)
