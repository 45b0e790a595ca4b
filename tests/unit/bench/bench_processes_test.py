#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim bench --processes N`: results of several processes equal those of one process to the bit, or the command prints
the reason why it cannot.

usage: bench_processes_test.py RNICSIM [TESTS]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
HEAD = """schema = 1
topology = "{}"
[measure]
warmup = "5 us"
duration = "40 us"
"""
FLOW = """[[flow]]
from = "{}"
to = "{}"
op = "{}"
size = "{}"
"""
MANY = "threads = 2\nqps = 3\nwindow = 8\n"


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bench(self, text, *arguments, expect=0, launcher=()):
        path = self.folder / "w.toml"
        path.write_text(text)
        done = subprocess.run([*launcher, RNICSIM, "bench", path, *map(str, arguments)], capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def results(self, text, processes, *arguments):
        out = self.folder / f"{processes}.json"
        self.bench(text, "--json", out, "--processes", processes, *arguments)
        result = json.loads(out.read_text())
        del result["simulator"]
        return result

    def check_same(self, text, *arguments, counts=(2, 3)):
        one = self.results(text, 1, *arguments)
        self.assertTrue(all(flow["operations"] > 0 for flow in one["flows"]), one["flows"])
        for count in counts:
            other = self.results(text, count, *arguments)
            for key in one:
                self.assertEqual(one[key], other[key], (count, key))
            self.assertEqual(one.keys(), other.keys())
        return one

    def test_a_flow_of_each_kind(self):
        flows = [FLOW.format("h0", "h5", "write", "4 KiB") + MANY,
                 FLOW.format("h5", "h0", "read", "3000 B") + MANY,
                 FLOW.format("h1", "h4", "send", "64 B") + MANY + 'address = "random"\nmr_size = "64 KiB"\n',
                 FLOW.format("h2", "h3", "fetch_add", "8 B").replace('size = "8 B"\n', "") + MANY,
                 FLOW.format("h3", "h1", "send", "512 B") + MANY + 'transport = "ud"\n',
                 FLOW.format("h4", "h2", "write", "2 KiB") + MANY + 'transport = "uc"\npick = "random"\n']
        self.check_same(HEAD.format("star:6") + "".join(flows))

    def test_a_flow_with_ends_everywhere(self):
        self.check_same(HEAD.format("star:5") + FLOW.format("h0..h3", "h4", "write", "1 KiB") + MANY, counts=(2, 4, 5))

    def test_hosts_on_one_cable(self):
        flow = FLOW.format("h0", "h1", "write", "8 B")
        self.check_same(HEAD.format("back-to-back") + flow + "ping_pong = true\n", counts=(2,))

    def test_switches_with_ways(self):
        flows = (FLOW.format(f"h{i}", f"h{(i + 5) % 16}", "write", "4 KiB") + MANY for i in range(16))
        self.check_same(HEAD.format("fat-tree:4") + "".join(flows))

    def test_switches_that_choose_ways_by_other_policies(self):
        flows = [FLOW.format(f"h{i}", f"h{(i + 5) % 16}", "send", "1 KiB") + MANY + 'transport = "ud"\n'
                 for i in range(16)]
        for sets in (("path=spray",), ("path=spray", "spray.order=round_robin"), ("path=flowlet", "flowlet.gap=300ns"),
                     ("path=adaptive", "adaptive.memory=true")):
            options = [option for text in sets for option in ("--set", "switch." + text)]
            self.check_same(HEAD.format("fat-tree:4") + "".join(flows), *options, counts=(3,))

    def test_pauses_cross_processes(self):
        text = HEAD.format("leaf-spine:2,1,3")
        text += "".join(FLOW.format(f"h{i}", "h5", "write", "8 KiB") + MANY for i in range(4))
        sets = [option for key in ("switch.pfc.priorities=1", "nic.port.pfc=1", "switch.pfc.xoff=32KiB",
                                   "switch.pfc.xon=16KiB", "switch.histograms=true") for option in ("--set", key)]
        result = self.check_same(text, *sets)
        self.assertGreater(sum(box["counters"]["tx_pause"] for box in result["switches"].values()), 0)
        self.assertTrue(all(box["histograms"] for box in result["switches"].values()))

    # Each process knows the frames of its own switches only.
    def test_a_warning_counts_the_frames_of_all(self):
        text = HEAD.format("leaf-spine:2,1,2") + FLOW.format("h0", "h1", "write", "8 KiB") + MANY + "dscp = 26\n"
        sets = ("--set", "switch.pfc.priorities=24", "--set", "nic.port.pfc=24")
        for count in (1, 2):
            self.assertEqual(self.bench(text, "--processes", count, *sets).stderr,
                             "rnicsim: warning: nic.port.pfc, switch.pfc.priorities: no frame of this run has priority "
                             "4; frames have priority 3\n")

    def test_faults(self):
        text = HEAD.format("star:4") + FLOW.format("h0", "h3", "write", "4 KiB") + MANY + "timeout = 1\n"
        result = self.check_same(text, "--fault", "drop=0.02", "--fault", "corrupt=0.02")
        self.assertGreater(result["hosts"]["h0"]["counters"]["link.dropped"], 0)

    def test_without_payload(self):
        text = HEAD.format("star:4") + FLOW.format("h0", "h3", "write", "4 KiB") + MANY
        self.check_same(text, "--set", "nic.timing_only=true")

    def test_raw_packets(self):
        text = HEAD.format("star:4") + FLOW.format("h1..h3", "h0", "send", "60 B") + MANY
        result = self.check_same(text + 'transport = "raw"\nrx_queues = 3\n')
        received = result["flows"][0]["received"]
        self.assertEqual([(queue["host"], queue["queue"]) for queue in received["queues"]],
                         [("h0", 0), ("h0", 1), ("h0", 2)])
        self.assertTrue(all(queue["frames"] > 10 for queue in received["queues"]), received)

    def test_under_mpirun(self):
        text = HEAD.format("star:4") + FLOW.format("h0", "h3", "write", "4 KiB") + MANY
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        launcher = ("mpirun", "--oversubscribe", "-n", "2")
        self.assertEqual(self.bench(text, launcher=launcher).stdout.count("limited by:"), 1)
        self.assertIn("--processes: 3, but MPI started 2",
                      self.bench(text, "--processes", 3, launcher=launcher, expect=2).stderr)

    def test_a_recording_and_a_capture_of_all(self):
        text = HEAD.format("leaf-spine:2,2,2").replace("duration", 'duration = "20 us" # ')
        text += "".join(FLOW.format(f"h{i}", f"h{(i + 3) % 4}", "write", "8 KiB") + MANY for i in range(4))
        sets = ["--fault", "drop=0.01", "--set", "switch.pfc.priorities=1", "--set", "nic.port.pfc=1", "--set",
                "switch.pfc.xoff=16KiB", "--set", "switch.pfc.xon=8KiB"]
        files = []
        for count in (1, 2, 4):
            trace, capture = self.folder / f"{count}.trace", self.folder / f"{count}.pcapng"
            self.bench(text, "--processes", count, "--record", trace, "--pcap", capture, *sets)
            files.append((trace, capture))
        for others in files[1:]:
            for one, other in zip(files[0], others):
                self.assertEqual(one.read_bytes(), other.read_bytes(), other.name)
        self.assertIn(b"fault", files[0][1].read_bytes())

    def test_a_file_that_cannot_be_made(self):
        text = HEAD.format("star:4") + FLOW.format("h0", "h3", "write", "4 KiB")
        for option in ("--json", "--record", "--pcap"):
            error = self.bench(text, "--processes", 2, option, "/nonexistent/x", expect=2).stderr
            self.assertEqual(error.count("/nonexistent/x"), 1, error)

    def test_what_does_not_go_together(self):
        text = HEAD.format("star:4") + FLOW.format("h0", "h3", "write", "4 KiB")
        for option in (("--fst", self.folder / "f"), ("--log", "info"), ("--waterfall",)):
            error = self.bench(text, "--processes", 2, *option, expect=2).stderr
            self.assertIn("--processes cannot be combined with", error)
        counted = text.replace('duration = "40 us"', "operations = 100")
        self.assertIn("several processes need measure.duration",
                      self.bench(counted, "--processes", 2, expect=2).stderr)

    def test_what_ends_one_ends_all(self):
        text = HEAD.format("star:4") + FLOW.format("h3", "h0", "send", "8 B") + "recv_depth = 0\ntimeout = 4\n"
        # The processes meet once in a cable's latency: with a long cable, seldom in the long time without progress.
        error = self.bench(text, "--processes", 2, "--set", "link.latency=5us", expect=1).stderr
        self.assertEqual(error.count("flow[0] makes no progress"), 1, error)
        self.bench(text, "--processes", 2, "--limit", "20us", expect=124)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
