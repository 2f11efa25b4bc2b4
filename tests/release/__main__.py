"""Take the present public API, and models of the present version, for what later ones are held to.

python -m tests.release api       # after a change that CHANGELOG.md announces
python -m tests.release models    # once for each minor version, when it is released
"""

import sys
import warnings

import manyclass
from tests.release.api import SNAPSHOT, lines
from tests.release.stored import write

warnings.simplefilter("ignore")
if "api" in sys.argv:
    SNAPSHOT.write_text("\n".join(lines()) + "\n")
if "models" in sys.argv:
    write(".".join(manyclass.__version__.split(".")[:2]))
