"""``python -m grounded_mcp``: the same as the ``grounded-mcp`` command."""

import sys

from grounded_mcp.faces.cli import main

sys.exit(main())
