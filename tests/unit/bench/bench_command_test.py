#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim bench` as a user runs it: output, files, exit status.

usage: bench_command_test.py RNICSIM [TESTS]
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKLOADS = ROOT / "sim" / "workloads"

MIXED = """schema = 1
topology = "star"
[measure]
warmup = "5 us"
duration = "30 us"
[[flow]]
from = "h0"
to = "h1..h4"
mix = [{ op = "write", weight = 2, size = "1 KiB" }, { op = "read", size = "64 B" }, { op = "send", size = "3 KiB" }]
threads = 2
qps = 2
window = 4
pick = "random"
address = "random"
mr_size = "64 KiB"
uars = "per_thread"
[[flow]]
from = "h3"
to = "h0"
op = "fetch_add"
window = 4
"""


def bench(*arguments, expect=0):
    done = subprocess.run([RNICSIM, "bench", *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == expect, f"status {done.returncode}: {done.stdout}{done.stderr}"
    return done


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text, name="w.toml"):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return path

    def results(self, *arguments):
        path = pathlib.Path(self.folder.name) / "results.json"
        bench(*arguments, "--json", path)
        return json.loads(path.read_text())

    def test_the_same_results_at_every_run(self):
        path = self.file(MIXED)
        first, second = self.results(path), self.results(path)
        other = self.results(path, "--seed", 2)
        for result in (first, second, other):
            self.assertGreater(result.pop("simulator")["wqes_per_cpu_s"], 0)
        self.assertEqual(first, second)
        self.assertNotEqual(first["flows"], other["flows"])
        self.assertEqual(first["hosts"]["h1"]["counters"]["nic.rx.malformed"], 0)
        self.assertGreater(first["flows"][0]["operations"], 100)
        self.assertEqual(first["parameters"]["switch.latency"], "300 ns")
        self.assertEqual(len(first["nic"]["crc32"]), 8)

    def test_neighbours_change_nothing(self):
        flow = """[[flow]]
from = "h{}"
to = "h{}"
op = "write"
size = "64 B"
threads = 8
qps = 16
window = 8
"""
        head = 'schema = 1\ntopology = "star:6"\n[measure]\nwarmup = "5 us"\nduration = "150 us"\n'
        alone, beside = (self.results(self.file(head + "".join(flow.format(i, i + 1) for i in hosts)))
                         for hosts in ((0,), (0, 2, 4)))
        self.assertEqual(alone["flows"][0], beside["flows"][0])
        for host in ("h0", "h1"):
            self.assertEqual(alone["hosts"][host], beside["hosts"][host])
        self.assertGreater(alone["flows"][0]["operations"], 100)

    def test_every_shipped_workload_runs(self):
        for path in sorted(WORKLOADS.glob("*.toml")):
            with self.subTest(path.stem):
                # A ping-pong has a single QP; other workloads would take long with all of their QPs.
                qps = [] if "ping_pong" in path.read_text() else ["--set", "flow.qps=2"]
                result = self.results(path.stem, "--set", "measure.warmup=0 s", "--set", "measure.duration=20 us", *qps)
                self.assertGreater(sum(flow["posted"] for flow in result["flows"]), 0)

    def test_doorbell_pages_are_shared_when_they_are_used_up(self):
        """The queue pairs of 256 contexts need more doorbell pages than the device has."""
        workload = 'schema = 1\n[measure]\nwarmup = "0 s"\nduration = "20 us"\n[[flow]]\nfrom = "h0"\nto = "h1"\n' \
                   'op = "write"\nsize = "8 B"\nthreads = 256\nqps = 5\nuars = "per_thread"\nwindow = 1\n'
        self.assertGreater(self.results(self.file(workload))["flows"][0]["posted"], 256)

    def test_what_follows_from_counters(self):
        result = self.results(self.file(MIXED))
        for host in result["hosts"].values():
            derived = host["derived"]
            for cache in ("qpc", "cqc", "srqc", "mpt", "mtt"):
                for rate in ("l0_hit_rate", "l1_hit_rate", "hit_rate"):
                    self.assertIn(f"nic.contexts.{cache}.{rate}", derived)
            for path, value in derived.items():
                if path.endswith("_share") or path.endswith("hit_rate") and value is not None:
                    self.assertTrue(0 <= value <= 1, (path, value))
            self.assertIsNone(derived["nic.contexts.srqc.hit_rate"])  # no lookups
        self.assertGreater(result["hosts"]["h1"]["derived"]["nic.contexts.qpc.l0_hit_rate"], 0.5)
        self.assertGreater(result["switches"]["s0"]["counters"]["frames"], 100)
        # A host that answers atomics has no agent.
        ends = {(agent["flow"], agent["host"], agent["end"]) for agent in result["agents"]}
        self.assertEqual(ends, {(0, "h0", "from"), (1, "h3", "from")} | {(0, f"h{host}", "to") for host in range(1, 5)})
        for agent in result["agents"]:
            self.assertTrue(0 < agent["cpu_busy_share"] <= 1, agent)

    def test_latencies_are_in_order(self):
        latency = self.results("read-8", "--set", "measure.duration=50 us")["flows"][0]["latency_ps"]
        steps = [latency[key] for key in ("min", "p50", "p99", "p99.9", "max")]
        self.assertEqual(steps, sorted(steps))

    def test_text(self):
        out = bench(self.file(MIXED)).stdout
        for part in ("h0->h1..h4 write 1 KiB", "goodput", "CPU busy", "nic.tx.packets", "mtt.l1_hit_rate",
                     "simulator: "):
            self.assertIn(part, out)
        self.assertRegex(out, r"\n +s0\n(.*\n)*frames +\d+  frames\n")

    def test_a_cpu_that_limits(self):
        path = self.file('schema = 1\n[[flow]]\nfrom = "h0"\nto = "h1"\nop = "send"\nsize = "8 B"\nqps = 16\n'
                         'window = 16\n')
        self.assertRegex(bench(path).stdout, r"\nlimited by: h0's CPU, (100|9\d) % busy \(flow\[0\]\.from\)\n")
        limit = self.results(path)["limit"]
        self.assertEqual((limit["host"], limit["resource"]), ("h0", "flow[0].from.cpu"))
        idle = bench(path, "--set", "flow.qps=1", "--set", "flow.window=1").stdout
        self.assertRegex(idle, r"\nlimited by: latency: no resource is fully used; the busiest is used \d+ %\n")

    def test_raw_packets(self):
        quick = ("raw-rss", "--set", "measure.duration=50 us", "--set", "flow.rx_queues=2")
        first, second = self.results(*quick), self.results(*quick)
        received = first["flows"][0]["received"]
        self.assertEqual(first["flows"], second["flows"])
        self.assertEqual(received["frames"], sum(queue["frames"] for queue in received["queues"]))
        self.assertEqual([queue["queue"] for queue in received["queues"]], [0, 1])
        self.assertGreater(received["rate_per_s"], 1e7)
        self.assertEqual(first["flows"][0]["parameters"]["rx_queues"], 2)
        self.assertRegex(bench(*quick).stdout,
                         r"flow 0: \d+ frames received, .*\n  h0 queue 0 +\d+ frames\n  h0 queue 1 ")

    def test_loss(self):
        capture, record = (pathlib.Path(self.folder.name) / name for name in ("wire.pcapng", "run.trace"))
        longer = MIXED.replace('duration = "30 us"', 'duration = "500 us"')
        lossy = self.file('faults = ["drop=1e-3"]\n' + longer.replace("[[flow]]", "[[flow]]\ntimeout = 4"))
        result = self.results(lossy, "--pcap", capture, "--record", record)
        self.assertEqual(result["faults"], ["drop=1e-3"])
        dropped = sum(host["counters"]["link.dropped"] for host in result["hosts"].values())
        again = sum(host["counters"]["nic.engine.packet_seq_err"] + host["counters"]["nic.engine.local_ack_timeout_err"]
                    for host in result["hosts"].values())
        self.assertGreater(dropped, 0)
        self.assertGreater(again, 0)
        self.assertTrue(all(flow["operations"] > 0 for flow in result["flows"]))
        self.assertIn(b"dropped by fault rule 1", capture.read_bytes())
        done = subprocess.run([RNICSIM, "diff", record, record], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done)
        both = self.results(lossy, "--fault", "corrupt=1e-3")
        self.assertEqual(both["faults"], ["drop=1e-3", "corrupt=1e-3"])

    def test_waterfall(self):
        path = self.file(MIXED)
        plain, followed = self.results(path), self.results(path, "--waterfall")
        waterfall = followed.pop("waterfall")
        for result in (plain, followed):
            del result["simulator"]
        self.assertEqual(plain, followed)  # the waterfall changes nothing else
        self.assertEqual((waterfall["failed"], waterfall["irregular"]), (0, 0))
        names = {(entry["operation"], entry["one_way"]) for entry in waterfall["operations"]}
        self.assertEqual(names, {("WRITE", False), ("WRITE", True), ("SEND", False), ("SEND", True), ("READ", False),
                                 ("FETCH_ADD", False)})
        for entry in waterfall["operations"]:
            self.assertEqual(sum(stage["sum_ps"] for stage in entry["stages"].values()), entry["latency"]["sum_ps"])
        whole = [entry["work_requests"] for entry in waterfall["operations"] if not entry["one_way"]]
        self.assertGreaterEqual(sum(whole), sum(flow["operations"] for flow in plain["flows"]))
        self.assertIn("\n    READ, ", bench(path, "--waterfall").stdout)
        self.assertNotIn("--- waterfall", bench(path).stdout)

    def test_perfetto(self):
        timeline = pathlib.Path(self.folder.name) / "timeline.json"
        out = bench(self.file(MIXED), "--perfetto", timeline, "--perfetto-wqes", 7).stdout
        self.assertNotIn("--- waterfall", out)
        events = json.loads(timeline.read_text())["traceEvents"]
        self.assertEqual(sum(event["ph"] == "s" for event in events), 7)
        bench(self.file(MIXED), "--perfetto", "/nowhere/file", expect=2)

    def test_a_contradiction_is_a_line_and_status_2(self):
        for text, options in ((MIXED, ["--set", "nic.pcie.read_bytes=256B"]),
                              ('set = { nic.pcie.read_bytes = "256 B" }\n' + MIXED, [])):
            path = self.file(text)
            says = "nic.pcie.read_bytes: 256 B is less than nic.pcie.max_read_request, 512 B"
            self.assertEqual(bench(path, *options, expect=2).stderr, f"rnicsim: {path}: {says}\n")

    def test_mistakes_are_a_line_and_status_2(self):
        bad = self.file(MIXED.replace("window = 4", "window = 0"))
        error = bench(bad, expect=2).stderr
        self.assertEqual(error, f"rnicsim: {bad}: flow[0].window: 1..32768 is needed, not 0\n")
        for arguments in (["none.toml"], ["write-4"], ["write-4k", "--set", "flow[7].qps=1"],
                          ["write-4k", "--nic", "none"], ["write-4k", "--json", "/none/results.json"],
                          ["write-4k", "--set", "topology=ring"], []):
            with self.subTest(arguments):
                error = bench(*arguments, expect=2).stderr
                self.assertEqual(error.count("\n"), 1, error)

    def test_options_that_are_none(self):
        quick = ("read-8", "--set", "measure.duration=5 us", "--set", "flow.qps=2")
        for seed in ("-1", "9223372036854775808", "18446744073709551616", "1e3", ""):
            done = bench(*quick, "--seed", seed, expect=2)
            self.assertRegex(done.stderr, r"^rnicsim: --seed: 0\.\.9223372036854775807 is needed, not '.*'\n$")
        self.assertEqual(self.results(*quick, "--seed", 2**63 - 1)["seed"], 2**63 - 1)
        for option in ("--json", "--pcap", "--record", "--perfetto", "--fst"):
            self.assertEqual(bench(*quick, option, "", expect=2).stderr, f"rnicsim: {option}: the name is empty\n")
        bench(*quick, "--vary", "flow.window=1,2", "--out", "", expect=2)
        bench(*quick, "--vary", "flow.window=1,2", "--log", "debug", expect=2)

    def test_what_cannot_be_written_is_status_2(self):
        quick = ("read-8", "--set", "measure.duration=5 us", "--set", "flow.qps=2")
        for option in ("--json", "--pcap", "--record", "--perfetto"):
            self.assertRegex(bench(*quick, option, "/dev/full", expect=2).stderr, r"^rnicsim: /dev/full: [^\n]*\n$")
        for command in (("bench", *quick), ("describe", "counters"), ("bench", *quick, "--json", "-")):
            with open("/dev/full", "w") as full:
                done = subprocess.run([RNICSIM, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
                self.assertEqual(done.returncode, 2, done)
                self.assertRegex(done.stderr, r"(^|\n)rnicsim: [^\n]*No space left on device\n$")
                self.assertEqual(subprocess.run([RNICSIM, "bench", "nosuch"], stderr=full, timeout=600).returncode, 2)

    def test_what_the_system_refuses_is_status_2(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))

        done = subprocess.run([RNICSIM, "bench", "read-8", "--vary", "flow.qps=1,2", "--out", self.folder.name],
                              capture_output=True, text=True, preexec_fn=few, timeout=600)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done)

    def test_what_stands_still_is_status_1(self):
        last = 'op = "send"\nsize = "8 B"\nrecv_depth = 0\ntimeout = 4\n'
        path = self.file(MIXED.replace('op = "fetch_add"\n', last))
        error = bench(path, expect=1).stderr
        self.assertIn("flow[1] makes no progress", error)
        self.assertIn("h3's NIC:", error)

    def test_who_has_no_part_in_a_workload_is_not_told_of(self):
        flow = 'from = "h0"\nto = "h2"\nop = "send"\nsize = "8 B"\nrecv_depth = 0\ntimeout = 4\n'
        path = self.file(f'schema = 1\ntopology = "star:4"\n[measure]\noperations = 1\n[[flow]]\n{flow}')
        error = bench(path, expect=1).stderr
        self.assertEqual([line for line in error.splitlines() if "NIC:" in line], ["h0's NIC:", "h2's NIC:"])


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
