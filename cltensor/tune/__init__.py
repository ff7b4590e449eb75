"""`python -m cltensor.tune`: measure schedule sizes on a device and keep those that beat the defaults.

For each size in parameters.py, every candidate runs in a process of its own, alternating with the default there, so
that a kernel which hangs or crashes a driver costs that candidate alone, and a busy machine slows both. A candidate
must give results that are bit-identical to the default's, and win twice: when it is found, and again in a new process.
The table is saved after each size (runtime/tuning.py says where) and is read by every process that starts later.
"""
