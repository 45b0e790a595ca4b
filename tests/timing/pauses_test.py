#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Six hosts send to one host: losses of a switch with small buffers, and priority-based flow control without losses.

usage: pauses_test.py RNICSIM     (needs tshark for one of its tests)
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
SENDERS = 6
SMALL = ("switch.port_buffer=100 KiB",)
PFC = (*SMALL, "switch.pfc.priorities=1", "nic.port.pfc=1")
WORKLOAD = """schema = 1
topology = "star"
[measure]
warmup = "0 us"
operations = 150
[[flow]]
from = "{senders}"
to = "h0"
op = "write"
size = "64 KiB"
window = 8
mtu = 4096
"""


class Incast(unittest.TestCase):
    def bench(self, *sets, senders=f"h1..h{SENDERS}", options=()):
        with tempfile.TemporaryDirectory() as folder:
            path, results = pathlib.Path(folder) / "w.toml", pathlib.Path(folder) / "r.json"
            path.write_text(WORKLOAD.format(senders=senders))
            command = [RNICSIM, "bench", path, "--json", results, *options]
            for text in sets:
                command += ["--set", text]
            subprocess.run(command, check=True, capture_output=True, timeout=600)
            return json.loads(results.read_text())

    def lost(self, results):
        switch = results["switches"]["s0"]["counters"]
        return switch["tx_discards"], switch["rx_discards"]

    def of_hosts(self, results, counter):
        return sum(host["counters"][counter] for host in results["hosts"].values())

    def assert_lossless(self, results):
        self.assertEqual(self.lost(results), (0, 0))
        self.assertEqual(self.of_hosts(results, "nic.engine.out_of_sequence"), 0)
        self.assertGreater(self.of_hosts(results, "nic.port.rx_pause"), SENDERS)
        self.assertGreater(self.of_hosts(results, "nic.port.tx_paused"), 0)

    def goodput(self, results):
        return results["flows"][0]["goodput_bits_per_s"]

    def test_a_large_buffer_loses_nothing(self):
        results = self.bench()
        self.assertEqual(self.lost(results), (0, 0))
        switch = results["switches"]["s0"]
        self.assertGreater(switch["counters"]["most_bytes"], 2 << 20)
        self.assertGreater(switch["derived"]["tx_busiest_share"], 0.98)
        self.assertEqual(self.of_hosts(results, "nic.port.rx_pause"), 0)

    def test_a_small_one_does_and_senders_go_back(self):
        results = self.bench(*SMALL)
        dropped, _ = self.lost(results)
        self.assertGreater(dropped, 100)
        self.assertLessEqual(results["switches"]["s0"]["counters"]["most_bytes"], 100 << 10)
        self.assertGreater(self.of_hosts(results, "nic.engine.out_of_sequence"), 0)
        self.assertEqual(self.of_hosts(results, "nic.engine.req_cqe_error"), 0)
        self.assertEqual(self.of_hosts(results, "nic.port.rx_pause"), 0)

    def test_with_pauses_it_loses_nothing_and_is_as_fast(self):
        results = self.bench(*PFC)
        self.assert_lossless(results)
        # 64 KiB of each sender, the frames that arrive until the sender pauses, and the answers.
        self.assertLess(results["switches"]["s0"]["counters"]["most_bytes"], SENDERS * (80 << 10))
        self.assertGreater(self.goodput(results), 0.98 * self.goodput(self.bench()))

    def test_pauses_need_headroom_and_somebody_who_obeys(self):
        for sets in (("switch.pfc.headroom=0 B",), ("nic.port.pfc=0",), ("nic.port.pfc=2",)):
            with self.subTest(sets):
                self.assertGreater(self.lost(self.bench(*PFC, *sets))[1], 0)

    def test_short_pauses_are_asked_for_again(self):
        results = self.bench(*PFC, "switch.pfc.quanta=100")
        self.assert_lossless(results)
        self.assertGreater(self.of_hosts(results, "nic.port.rx_pause"),
                           self.of_hosts(self.bench(*PFC), "nic.port.rx_pause"))

    def test_by_another_priority(self):
        both = [f"{port}.dscp_priority=0-7:3" for port in ("switch", "nic.port")]
        self.assert_lossless(self.bench(*SMALL, *both, "switch.pfc.priorities=8", "nic.port.pfc=8"))
        self.assertGreater(self.lost(self.bench(*PFC, *both))[0], 0)  # priority 0 does not profit

    # The first leaf is full and pauses the spine, which pauses the other leaf.
    def test_through_three_switches(self):
        results = self.bench(*PFC, "topology=leaf-spine:2,1,4", senders="h1..h7")
        switches = {name: switch["counters"] for name, switch in results["switches"].items()}
        for name, counters in switches.items():
            self.assertEqual((counters["tx_discards"], counters["rx_discards"]), (0, 0), name)
        self.assertGreater(switches["leaf1"]["rx_pause"], 0)
        self.assertGreater(switches["spine0"]["rx_pause"], 0)
        self.assertGreater(switches["leaf1"]["tx_paused"], 0)

    def test_without_congestion_nothing_is_different(self):
        plain, ready = (self.bench(*sets, senders="h1") for sets in ((), PFC))
        for results in (plain, ready):
            del results["flows"][0]["parameters"]
        self.assertEqual(plain["flows"], ready["flows"])
        self.assertEqual(plain["simulator"]["events_per_wqe"], ready["simulator"]["events_per_wqe"])

    def test_the_same_twice(self):
        once, again = (self.bench(*PFC) for _ in range(2))
        for part in ("flows", "hosts", "switches"):
            self.assertEqual(once[part], again[part])

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_tshark_reads_the_pauses(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "capture.pcapng")
            told = self.bench(*PFC, "switch.pfc.quanta=60000", options=("--pcap", capture))
            fields = ("frame.interface_name", "eth.type", "macc.opcode", "macc.cbfc.enbv", "_ws.malformed",
                      "macc.cbfc.pause_time.c0")
            command = ["tshark", "-n", "-r", capture, "-Y", "macc", "-T", "fields"]
            for field in fields:
                command += ["-e", field]
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600,
                                   env=dict(os.environ, HOME=folder)).stdout.splitlines()
        times = set()
        for line in shown:
            *start, time = line.split("\t")
            self.assertEqual(start, ["s0", "0x8808", "0x0101", "0x0001", ""])
            times.add(int(time))
        self.assertEqual(times, {0, 60000})
        self.assertGreaterEqual(len(shown), told["switches"]["s0"]["counters"]["tx_pause"])

    def test_what_cannot_be(self):
        for text, path in (("nic.port.dscp_priority=64:1", "nic.port.dscp_priority"),
                           ("switch.dscp_priority=3", "switch.dscp_priority"),
                           ("switch.pfc.xon=64 KiB", "switch.pfc.xon"), ("nic.port.pfc=256", "nic.port.pfc")):
            told = subprocess.run([RNICSIM, "describe", "topology", "--set", text], capture_output=True, text=True,
                                  timeout=600, check=False)
            self.assertEqual((told.returncode, told.stderr.count("\n")), (2, 1), told)
            self.assertIn(path, told.stderr)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
