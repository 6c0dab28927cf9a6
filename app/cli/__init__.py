"""The command line: ``assay``. Only ``main`` is for others; each command is a file of its own."""


def main() -> None:
    """Run the command named by the arguments of this process, and exit with its code."""
    from app.cli.program import run

    run()
