#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Affinity masks in programs of a simulated host do not show the simulator's own placement of programs on processors.

usage: processors_test.py path/to/rnicsim     (needs gcc)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402


class Processors(apps.LeavesNothing):
    def lines_of(self, command):
        return self.assert_succeeded(self.run_on(("h0", str(command)))).lines("h0")

    def test_each_call_tells_what_was_set(self):
        program = built("processors", (apps.PROGRAMS / "processors.c").read_text(), "-lpthread")
        self.assertEqual(self.lines_of(program), [
            "after 800 moves the same 1 1 1", "threads have all 1, their own 1", "set 0, told 1 1, inherited 1",
            "executed with 1", "refused 1 1 1 1 1 1, bytes 0", "each processor is itself 1", "all again 1"])

    def test_shell_and_its_tools(self):
        first = min(os.sched_getaffinity(0))
        script = f"nproc; taskset -c {first} nproc; taskset -pc {first} $$; nproc; " \
                 "grep ^Cpus_allowed_list /proc/self/status"
        self.assertEqual(self.lines_of(f"sh -c '{script}'")[-3:],
                         [f"pid 1000's new affinity list: {first}", "1", f"Cpus_allowed_list:\t{first}"])


if __name__ == "__main__":
    apps.main()
