"""`python -m cltensor.tune`: measure a device and keep what beats the defaults.

For each size of parameters.py, every candidate runs in a process of its own beside the default, alternating, so that a
kernel which hangs or crashes a driver costs that candidate alone and a busy machine slows both. A candidate must give the
default's results to the bit, and win twice: when it is found, and once more in a fresh process. The table is saved after
each size (runtime/tuning.py says where) and is read by every process that starts later.
"""
