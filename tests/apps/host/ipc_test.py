#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Semaphores and message queues of System V and POSIX, and Unix sockets, belong to the simulated host and wait in
simulated time.

usage: ipc_test.py path/to/rnicsim     (needs gcc)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402


class Ipc(LeavesNothing):
    def check(self, name):
        """An idle Linux machine prints these lines, with times some milliseconds longer. Two hosts with the same names
        and keys do not share objects; two runs print the same."""
        program = str(built(name, (apps.PROGRAMS / "calls" / f"{name}.c").read_text(), "-D_GNU_SOURCE", "-lpthread"))
        expected = (apps.PROGRAMS / "calls" / f"{name}.txt").read_text().splitlines()
        for result in (self.run_on(("h0", program), ("h1", program)), self.run_on(("h0", program))):
            self.assertEqual(result.status, 0, result)
            self.assertEqual(result.lines("h0"), expected, result)
            self.assertNotIn("not reproducible", result.out, result)
        return result

    def test_system_v(self):
        self.check("system_v")

    def test_posix_queues(self):
        self.check("posix_queues")

    def test_unix_sockets(self):
        self.check("unix_sockets")


if __name__ == "__main__":
    apps.main()
