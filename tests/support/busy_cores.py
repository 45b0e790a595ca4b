# SPDX-License-Identifier: Apache-2.0
"""Load for every core of the machine, in bursts: other tests run beside this one."""
import contextlib
import os
import subprocess
import sys

# Bursts of up to 4 ms and pauses of up to 8 ms: programs and simulator are disturbed in ever other places. The burner
# ends by itself, in case the caller is killed.
BURN = """
import random, time
random.seed({seed})
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    burst = time.monotonic() + random.uniform(0, 0.004)
    while time.monotonic() < burst: pass
    time.sleep(random.uniform(0, 0.008))
"""


@contextlib.contextmanager
def busy_cores(seconds=60):
    """One process with bursts of work per core, for at most `seconds`."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN.format(seed=core, seconds=seconds)])
               for core in range(os.cpu_count())]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
