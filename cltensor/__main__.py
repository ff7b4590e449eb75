"""`python -m cltensor`: say what OpenCL finds on this machine and whether it works."""

import sys

from .doctor import main

sys.exit(main(sys.argv[1:]))
