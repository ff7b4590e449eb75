"""`python -m cltensor`: report the OpenCL devices of this machine and whether they work."""

import sys

from .doctor import main

sys.exit(main(sys.argv[1:]))
