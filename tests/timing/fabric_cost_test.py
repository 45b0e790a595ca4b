#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Cost of congestion in the simulation: instructions per packet of an incast with PFC, a shared buffer, ECN and DCQCN,
divided by the instructions per packet of the same incast without these. Callgrind counts.

usage: fabric_cost_test.py RNICSIM     (needs valgrind: without it the test is skipped, exit status 77)
"""

import os
import re
import shutil
import sys
import tempfile
import unittest

import fabric_bench
from fabric_bench import incast

MOST = 1.3       # largest ratio of instructions per packet
SENDERS = 4
# Each operation is a packet. The windows hold 1 MB in all, so a run without pauses loses nothing.
FLOWS = incast(SENDERS, size="4 KiB", window=64)
ALL = {"switch.pfc.priorities": 1, "nic.port.pfc": 1, "switch.buffer.size": "12 MB",
       "switch.buffer.lossless.dynamic_th": 0, "switch.ecn.priorities": 1, "switch.ecn.kmin": "100 KB",
       "switch.ecn.kmax": "400 KB", "nic.congestion.control": "dcqcn", "nic.congestion.ecn": "forced"}


def counted(settings, duration):
    """Instructions of a whole run, and the operations in the measured time."""
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile")
        results = fabric_bench.bench(
            FLOWS, settings, f"star:{SENDERS + 1}", "200 us", duration,
            wrapper=["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"])
        with open(profile) as file:
            instructions = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE)[1])
    return instructions, sum(flow["operations"] for flow in results["flows"])


def instructions_of(settings):
    """Instructions per operation. The difference of a long and a short run excludes the setup."""
    with_payload = {"nic.timing_only": "false", **settings}
    (less, few), (more, many) = counted(with_payload, "1 ms"), counted(with_payload, "3 ms")
    return (more - less) / (many - few)


class Cost(unittest.TestCase):
    def test_with_pauses_marks_a_shared_buffer_and_dcqcn(self):
        without, with_all = instructions_of({}), instructions_of(ALL)
        print(f"instructions an operation: {without:.0f} without, {with_all:.0f} with all: "
              f"{with_all / without:.2f} x")
        self.assertLess(with_all / without, MOST)


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        print("skipped: there is no valgrind")
        sys.exit(77)
    fabric_bench.RNICSIM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
