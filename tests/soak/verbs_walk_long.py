# SPDX-License-Identifier: Apache-2.0
"""
Random walks, each in a separate process with the next seed, until the time is over or a walk finds a fault.

RNICSIM_WALK_SECONDS (default 600), RNICSIM_WALK_SEED: first seed (default 1).
"""

import os
import subprocess
import sys
import time


# As in rnicsim_test.cmake: simulated threads have separate stacks.
SANITIZERS = {"ASAN_OPTIONS": "detect_stack_use_after_return=0:abort_on_error=1", "LSAN_OPTIONS": "use_stacks=0"}


def main():
    program, environment = sys.argv[1], {**SANITIZERS, **os.environ}
    first = int(environment.get("RNICSIM_WALK_SEED", "1"))
    end = time.monotonic() + float(environment.get("RNICSIM_WALK_SECONDS", "600"))
    seed = first
    while time.monotonic() < end:
        environment["RNICSIM_WALK_SEED"] = str(seed)
        walk = subprocess.run([program], env=environment, capture_output=True, text=True, errors="replace")
        if walk.returncode != 0:
            print(f"RNICSIM_WALK_SEED={seed} ended with {walk.returncode}\n{walk.stdout[-4000:]}{walk.stderr[-8000:]}")
            return 1
        seed += 1
    print(f"{seed - first} walks, seeds {first} to {seed - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
