"""`python -m cltensor.tune`; see the package."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
