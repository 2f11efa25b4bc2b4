"""``python -m manyclass``: the command line."""

import sys

from manyclass.cli import main

sys.exit(main())
