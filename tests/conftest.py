"""Tests run side by side, one worker per core: each keeps to one thread."""

import torch

torch.set_num_threads(1)
