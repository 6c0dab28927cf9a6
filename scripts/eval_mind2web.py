"""Evaluate a model on Mind2Web by the integration guide: ``python scripts/eval_mind2web.py --data-root DATA ...``.

The flags are those of ``assay suites mind2web --protocol guide`` (docs/mind2web.md).
"""

from __future__ import annotations

import sys

from app.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["suites", "mind2web", "--protocol", "guide"]
    main()
