"""Tests run side by side, one worker per core: each keeps to one thread, and so do the processes that it starts."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # after the variable, which it reads

torch.set_num_threads(1)
