"""Fail when `import foveal` adds half a second or more to torch's own import.

Run it with an interpreter that has the package installed. Each run is a new process that imports torch, then times the
import of foveal and its subpackages; the median of the runs counts. It is CPU time, which other work on the machine
hardly changes.
"""

import statistics
import subprocess
import sys
import tempfile

MAX_SECONDS = 0.5
NUM_RUNS = 5

PROGRAM = """
import time
import torch
start = time.process_time()
import foveal
import foveal.attention, foveal.distributions, foveal.estimators
import foveal.inference, foveal.networks
print(time.process_time() - start)
"""


def seconds_of_one_import() -> float:
    """Time of the import in a new process, away from the checkout."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit(f"the import failed:\n{done.stderr}")
    return float(done.stdout)


def main() -> int:
    """Print the median; 1 if it is over the limit."""
    median = statistics.median(seconds_of_one_import() for _ in range(NUM_RUNS))
    print(f"import foveal adds {median:.3f} s of CPU time (under {MAX_SECONDS} s)")
    return 0 if median < MAX_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
