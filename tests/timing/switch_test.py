#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A switch adds its latency and one cable to a path, in each direction, exact to the picosecond.

usage: switch_test.py RNICSIM
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
NS = 1000
WORKLOAD = """schema = 1
topology = "{topology}"
[measure]
operations = 20
[[flow]]
from = "h0"
to = "h1"
op = "{op}"
size = "{size}"
mtu = 1024
"""


class Switch(unittest.TestCase):
    def least(self, topology, op, size, *sets):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "w.toml"
            path.write_text(WORKLOAD.format(topology=topology, op=op, size=size))
            results = pathlib.Path(folder) / "r.json"
            options = [part for text in sets for part in ("--set", text)]
            command = [RNICSIM, "bench", path, "--json", results, *options]
            subprocess.run(command, check=True, capture_output=True, timeout=600)
            return json.loads(results.read_text())["flows"][0]["latency_ps"]["min"]

    # A request and its ACK or response cross the switch once each; further packets of a message follow at the line's
    # rate.
    def test_latency(self):
        for op in ("write", "read", "send"):
            for size in ("8 B", "1 KiB", "16 KiB"):
                with self.subTest(op=op, size=size):
                    straight = self.least("back-to-back", op, size)
                    switched = self.least("star", op, size)
                    self.assertEqual(switched - straight, 2 * (300 * NS + 90 * NS))

    def test_parameters(self):
        sets = ("switch.latency=1234567 ps", "link.latency=50 ns")
        straight = self.least("back-to-back", "write", "8 B", *sets)
        self.assertEqual(self.least("star", "write", "8 B", *sets) - straight, 2 * (1234567 + 50 * NS))
        straight = self.least("back-to-back", "write", "8 B", "switch.latency=0 ns")
        self.assertEqual(self.least("star", "write", "8 B", "switch.latency=0 ns") - straight, 2 * 90 * NS)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
