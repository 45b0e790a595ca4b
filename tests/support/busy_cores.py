# SPDX-License-Identifier: Apache-2.0
"""Load for every core of the machine."""
import contextlib
import os
import subprocess
import sys

# The burner ends by itself, in case the caller is killed.
BURN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


@contextlib.contextmanager
def busy_cores(seconds=60):
    """One busy process per core, for at most `seconds`."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN.format(seconds=seconds)]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
