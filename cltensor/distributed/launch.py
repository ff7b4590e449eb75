"""`python -m cltensor.distributed.launch`: the older name of `run`."""

from .run import main

if __name__ == "__main__":
    main()
