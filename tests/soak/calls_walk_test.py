#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A random walk over system calls and threads (calls_walk) on two hosts: the walk checks each step, and the same seed
gives the same run to the bit, whatever the load of the machine.

usage: calls_walk_test.py path/to/rnicsim path/to/calls_walk     each seed twice

RNICSIM_WALK_SECONDS (default 15): time after which no further seed starts. RNICSIM_WALK_SEED: first seed (default 1).
RNICSIM_WALK_ROUNDS: rounds of a walk (default 12). A single seed: rnicsim run -- calls_walk SEED ROUNDS, with
CALLS_WALK_TRACE=1 in the environment to print the steps. CALLS_WALK_REAL=1 calls_walk SEED ROUNDS [PEER] runs on Linux
without a simulator and checks the walk itself; delays are then not checked.
"""
import contextlib
import hashlib
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from busy_cores import busy_cores  # noqa: E402

WALK = os.path.abspath(sys.argv.pop(2))
FIRST = int(os.environ.get("RNICSIM_WALK_SEED", "1"))
SECONDS = float(os.environ.get("RNICSIM_WALK_SECONDS", "15"))
ROUNDS = os.environ.get("RNICSIM_WALK_ROUNDS", "12")
# Note of a sanitized simulator: the sanitizer does not know the stacks of SystemC's threads.
NOTE = re.compile(r"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return.*?issues/189\n", re.DOTALL)


class CallsWalk(apps.TestCase):
    def walk(self, seed):
        """All outputs of a run."""
        with apps.folder() as path:
            recording = path / "run.trace"
            result = apps.run(f"{WALK} {seed} {ROUNDS}", "--record", recording)
            self.assert_succeeded(result)
            self.assertNotIn("not reproducible", result.summary())
            return {"h0": result.lines("h0"), "h1": result.lines("h1"), "summary": result.summary().splitlines(),
                    "errors": NOTE.sub("", result.err).splitlines(),
                    "recording": hashlib.sha256(recording.read_bytes()).hexdigest()}

    def test_seeds(self):
        end = time.monotonic() + SECONDS
        seed = FIRST
        while seed == FIRST or time.monotonic() < end:
            with self.subTest(seed=seed):
                first = self.walk(seed)
                with busy_cores(200) if seed % 4 == 0 else contextlib.nullcontext():
                    self.assertEqual(self.walk(seed), first, f"seed {seed}: not the same again")
            seed += 1
        print(f"seeds {FIRST} to {seed - 1}", file=sys.stderr)


if __name__ == "__main__":
    apps.main()
