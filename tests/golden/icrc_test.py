#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Lazy computation of packet bytes and ICRCs must not be visible: the same runs with nic.icrc lazy and always, with and
without observers, have equal results, recordings and captures.

usage: icrc_test.py path/to/rnicsim
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
ALL = """
schema = 1
topology = "star:3"
[measure]
operations = 60
[[flow]]
from = ["h0", "h1"]
to = "h2"
window = 4
mix = [{ op = "write", size = "4097 B" }, { op = "read", size = "9001 B" }, { op = "send_imm", size = "3 B" },
       { op = "fetch_add" }, { op = "cmp_swap" }, { op = "write_imm", size = "64 B" }]
[[flow]]
from = "h2"
to = "h0"
transport = "uc"
op = "write"
size = "5000 B"
[[flow]]
from = "h1"
to = "h0"
transport = "ud"
op = "send"
size = "999 B"
"""
# These packets carry no addresses. A capture of RDMA operations shows programs' addresses, which differ between runs.
SENDS = """
schema = 1
[measure]
operations = 60
[[flow]]
from = "h0"
to = "h1"
window = 4
op = "send_imm"
size = "5001 B"
[[flow]]
from = "h1"
to = "h0"
transport = "ud"
op = "send"
size = "999 B"
"""
FAULTS = ("corrupt=0.02", "duplicate=0.03,by=3us", "delay=0.03,by=2us", "reorder=0.03", "drop=0.02",
          "drop,opcode=ACKNOWLEDGE,nth=7")


class Icrc(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def bench(self, name, workload, icrc, *options):
        (self.path / "workload.toml").write_text(workload)
        results = self.path / f"{name}.json"
        faults = [option for fault in FAULTS for option in ("--fault", fault)]
        subprocess.run([PROGRAM, "bench", self.path / "workload.toml", "--set", f"nic.icrc={icrc}", "--json", results,
                        *faults, *options], check=True, stdout=subprocess.DEVNULL, timeout=600)
        told = json.loads(results.read_text())
        del told["simulator"], told["parameters"]["nic.icrc"]
        return told

    def watched(self, name, workload, icrc, *options):
        return self.bench(name, workload, icrc, "--pcap", self.path / f"{name}.pcapng",
                          "--record", self.path / f"{name}.trace", *options)

    def assert_same_recording(self):
        told = subprocess.run([PROGRAM, "diff", self.path / "lazy.trace", self.path / "always.trace"],
                              check=False, capture_output=True, text=True, timeout=600)
        self.assertRegex(told.stdout, r"(?m)^equal: [1-9]\d{3,} events$")

    def test_results_and_recordings(self):
        for options in ((), ("--set", "nic.timing_only=true")):
            with self.subTest(options=options):
                unseen = self.bench("unseen", ALL, "lazy", *options)
                self.assertEqual(unseen, self.bench("unseen", ALL, "always", *options))
                self.assertEqual(unseen, self.watched("lazy", ALL, "lazy", *options))
                self.assertEqual(unseen, self.watched("always", ALL, "always", *options))
                self.assert_same_recording()
                wrong = sum(host["counters"]["nic.rx.rx_icrc_encapsulated"] for host in unseen["hosts"].values())
                self.assertGreater(wrong, 0)

    def test_captures(self):
        self.assertEqual(self.watched("lazy", SENDS, "lazy"), self.watched("always", SENDS, "always"))
        lazy, always = ((self.path / f"{name}.pcapng").read_bytes() for name in ("lazy", "always"))
        self.assertGreater(len(lazy), 100_000)
        self.assertEqual(lazy, always)
        self.assert_same_recording()

    def test_another_word_is_refused(self):
        told = subprocess.run([PROGRAM, "describe", "nic", "--set", "nic.icrc=never"], check=False, timeout=600,
                              capture_output=True, text=True)
        self.assertEqual(told.returncode, 2)
        self.assertIn("nic.icrc: 'never' is none of lazy, always", told.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
