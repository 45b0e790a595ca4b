#!/usr/bin/env python3
"""Semaphores and message queues of System V and of POSIX, and Unix sockets, are the host's, and wait in simulated time.

usage: ipc_test.py path/to/rnicsim     (needs gcc)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402


class Ipc(LeavesNothing):
    def check(self, name):
        """A Linux machine that is not busy prints these lines, but for some milliseconds more. Two hosts have the same
        names and keys, and do not meet; two runs print the same."""
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
