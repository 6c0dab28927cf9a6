"""Import package of the installed program: it contains ``app``, ``judges`` and the other packages of the repository.

An installation therefore adds no ``app`` or ``cache`` to site-packages, which other projects may have. Importing this
package makes the packages importable under their own names, before those of a working directory or ``PYTHONPATH``. In a
checkout they are in its root.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE if (_HERE / "app").is_dir() else _HERE.parents[2]

if sys.path[:1] != [str(_ROOT)]:
    sys.path.insert(0, str(_ROOT))


def main() -> None:
    """Run the command ``assay``."""
    from app.cli import main as run  # found by the path above

    run()
