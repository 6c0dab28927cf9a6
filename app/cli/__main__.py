"""``python -m app.cli``: the same as ``assay``, for programs that start it with their own interpreter."""

from app.cli import main

main()
