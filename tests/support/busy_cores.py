"""Every core has something else to do as well."""
import contextlib
import os
import subprocess
import sys

# Ends by itself, should the caller be killed.
BURN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


@contextlib.contextmanager
def busy_cores(seconds=60):
    """For so long at most."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN.format(seconds=seconds)]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
