"""``python -m app.cli`` is ``assay``: for programs that start it by the interpreter they run on."""

from app.cli import main

main()
