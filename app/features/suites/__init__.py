"""Step benchmarks (Mind2Web and Multimodal-Mind2Web~), run from the command line or as service jobs."""

from app.feature import Commands, Feature
from app.tabs import Tab


def _commands(cli: Commands) -> None:
    from app.features.suites import cli_mind2web, cli_mm_mind2web

    cli.program.add_typer(cli_mind2web.program(), name="mind2web", rich_help_panel="Benchmarks")
    cli.program.add_typer(cli_mm_mind2web.program(), name="mm-mind2web", rich_help_panel="Benchmarks")


FEATURE = Feature(
    name="suites",
    settings="settings:SuiteSettings",
    commands=_commands,
    tables=("suite_runs", "suite_steps"),
    routers=("api:router",),
    pages=("pages:router", "comparison_page:router"),
    tabs=(Tab(name="suites", path="/suites", label="Suites", listing="/v1/suites"),),
    job_runners={"suite": "runner:SUITE_RUNNER"},
)
