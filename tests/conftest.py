"""Tests run in parallel, one worker per core, so each worker and its subprocesses use one thread."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # reads the variable, so after it

torch.set_num_threads(1)
