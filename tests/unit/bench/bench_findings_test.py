#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The conclusions of `rnicsim bench`: the limit, pauses, senders without progress, and dependence on the seed.

usage: bench_findings_test.py RNICSIM [TESTS]
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]
SENDERS = 6
INCAST = """schema = 1
topology = "{topology}"
[measure]
{measure}
[[flow]]
from = "{senders}"
to = "h0"
op = "write"
size = "64 KiB"
window = 8
"""
PFC = ("switch.port_buffer=100 KiB", "switch.pfc.priorities=1", "nic.port.pfc=1")


class Findings(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def bench(self, text, *sets, options=()):
        """The text and the JSON of a run."""
        path, results = self.folder / "w.toml", self.folder / "r.json"
        path.write_text(text)
        command = [RNICSIM, "bench", path, "--json", results, *options]
        for entry in sets:
            command += ["--set", entry]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(results.read_text())

    def incast(self, *sets, topology=f"star:{SENDERS + 1}", senders=f"h1..h{SENDERS}", options=(),
               measure='warmup = "100 us"\nduration = "200 us"'):
        return self.bench(INCAST.format(topology=topology, senders=senders, measure=measure), *sets, options=options)

    def test_a_port_of_a_switch_is_the_limit(self):
        text, results = self.incast()
        limit = results["limit"]
        self.assertEqual((limit["host"], limit["resource"]), ("s0", "port.h0.tx"))
        self.assertGreater(limit["use"], 0.95)
        self.assertGreater(limit["queue"], 1)
        self.assertRegex(text, r"\nlimited by: s0 port\.h0\.tx (100|9\d) %, [\d.]+ waiting")
        uses = {(use["host"], use["resource"]): use["use"] for use in results["utilization"]}
        # The answers to each sender leave by the sender's port.
        for number in range(1, SENDERS + 1):
            self.assertLess(uses["s0", f"port.h{number}.tx"], 0.1)
            self.assertLess(uses[f"h{number}", "nic.port.tx"], 0.5)
        derived = results["switches"]["s0"]["derived"]
        self.assertAlmostEqual(derived["port.h0.tx_busy_share"], limit["use"], places=9)
        self.assertAlmostEqual(derived["port.h0.tx_busy_share"], derived["tx_busiest_share"], places=9)
        counters = results["switches"]["s0"]["counters"]
        ports = [value for path, value in counters.items() if re.fullmatch(r"port\.h\d\.tx_busy", path)]
        self.assertEqual(sum(ports), counters["tx_busy"])

    def test_of_ports_in_a_row_the_one_with_the_queue_is_the_limit(self):
        # All traffic of h4..h7 uses a single uplink, and the ports behind are as busy.
        _, results = self.incast(*PFC, topology="leaf-spine:2,1,4", senders="h4..h7")
        limit = results["limit"]
        self.assertEqual((limit["host"], limit["resource"]), ("leaf1", "port.spine0.tx"))
        self.assertEqual({pause["by"] for pause in results["pauses"]}, {"leaf1"})
        # A single sender fills its own cable, and thereby the next.
        _, results = self.incast(topology="star:2", senders="h1")
        limit = results["limit"]
        self.assertEqual((limit["host"], limit["resource"]), ("h1", "nic.port.tx"))

    def test_shares_of_switches_are_not_cut(self):
        text, results = self.incast()
        share = results["switches"]["s0"]["derived"]["tx_busy_share"]
        self.assertTrue(0 < share < 1)
        self.assertRegex(text, rf"\ntx_busy_share +{share:.4f}  of 1\n")

    def test_lost_frames_are_told_with_the_limit(self):
        text, results = self.incast("switch.port_buffer=100 KiB", measure='warmup = "1 us"\nduration = "200 us"')
        discards = results["switches"]["s0"]["counters"]["tx_discards"]
        self.assertGreater(discards, 0)
        use = next(use for use in results["utilization"] if (use["host"], use["resource"]) == ("s0", "port.h0.tx"))
        self.assertEqual(use["discards"], discards)

    def test_who_pauses_whom(self):
        text, results = self.incast(*PFC)
        self.assertEqual(results["limit"]["resource"], "port.h0.tx")
        pauses = results["pauses"]
        self.assertEqual({(pause["by"], pause["priority"]) for pause in pauses}, {("s0", 0)})
        self.assertEqual({pause["paused"] for pause in pauses}, {f"h{number}" for number in range(1, SENDERS + 1)})
        for pause in pauses:
            self.assertEqual(pause["because"], "port.h0.tx")
            self.assertTrue(0.5 < pause["share"] <= 1, pause)
        self.assertEqual([pause["share"] for pause in pauses], sorted((p["share"] for p in pauses), reverse=True))
        self.assertRegex(text, r"\ns0 pauses h\d, priority 0, for [\d.]+ % of the time, because of port\.h0\.tx\n")

    def test_pauses_go_on_from_switch_to_switch(self):
        # h1..h3 are at h0's leaf, h4..h7 at leaf1; all hops but the last are paused.
        _, results = self.incast(*PFC, topology="leaf-spine:2,1,4", senders="h1..h7")
        pauses = {(pause["by"], pause["paused"]): pause for pause in results["pauses"]}
        self.assertEqual(pauses["leaf0", "spine0"]["because"], "port.h0.tx")
        self.assertEqual(pauses["spine0", "leaf1"]["because"], "port.leaf0.tx")
        self.assertEqual(pauses["leaf1", "h4"]["because"], "port.spine0.tx")
        uses = {(use["host"], use["resource"]): use for use in results["utilization"]}
        paused = uses["spine0", "port.leaf0.tx.p0"]
        self.assertEqual(paused["paused_by"], "leaf0")
        counters = results["switches"]["spine0"]["counters"]
        self.assertEqual(counters["port.leaf0.p0.tx_paused"], counters["tx_paused"])

    def test_a_slow_receiver_that_pauses_is_found(self):
        # h0's PCIe link is slow; the senders have the same link.
        _, results = self.incast(*PFC, "nic.receive_buffer.pfc=1", "nic.receive_buffer.xoff=32 KiB",
                                 "nic.receive_buffer.xon=16 KiB", "nic.pcie.lanes=2")
        pauses = {(pause["by"], pause["paused"]): pause for pause in results["pauses"]}
        self.assertEqual(pauses["h0", "s0"]["because"], "nic.receive_buffer")
        uses = {(use["host"], use["resource"]): use for use in results["utilization"]}
        port = uses["s0", "port.h0.tx.p0"]
        self.assertGreater(port["use"] + port["paused"], 0.9)
        self.assertEqual(port["paused_by"], "h0")

    def test_senders_that_stand_still(self):
        # Without jitter the senders stay synchronized, and some of them find all the freed space.
        text, results = self.incast("switch.port_buffer=200 KiB", "switch.jitter=off",
                                    measure='warmup = "1 ms"\nduration = "1 ms"')
        flow = results["flows"][0]
        fairness = flow["fairness"]
        self.assertEqual(fairness["senders"], SENDERS)
        self.assertGreater(fairness["silent"], 0)
        self.assertEqual(fairness["await_ack"], fairness["silent"] + fairness["halted"])
        self.assertEqual(fairness["least_per_s"], 0)
        self.assertLess(fairness["jain"], 0.9)
        self.assertIs(flow["steady"], False)
        self.assertIs(results["steady"], False)
        self.assertIn(f"{fairness['silent']} of {SENDERS} senders completed nothing in the measured time\n", text)
        self.assertIn("wait for answers or for their ACK timeouts (67.11 ms)\n", text)
        self.assertIn("flow 0 is not steady: ", text)

    def test_a_warm_up_waits_for_those_who_stand_still(self):
        # Silent senders continue after a timeout of 0.5 ms; an earlier steady sum must not end the warm-up.
        _, results = self.incast("switch.port_buffer=200 KiB", "flow.timeout=7", "measure.limit=2 ms", measure="")
        measured_to = results["from_ps"] + results["interval_ps"]
        self.assertGreater(measured_to, 1_000_000_000)

    def test_equal_senders_are_fair(self):
        text, results = self.incast()
        fairness = results["flows"][0]["fairness"]
        self.assertGreater(fairness["jain"], 0.98)
        self.assertEqual((fairness["silent"], fairness["halted"]), (0, 0))
        self.assertRegex(
            text, rf"\nflow 0: {SENDERS} senders, from .*op/s to .*op/s each, Jain's index (1\.000|0\.9\d+)\n")

    def test_a_stock_of_receives_is_used_up_first(self):
        def goodput(depth, *sets):
            _, results = self.bench(raw, f"flow.recv_depth={depth}", *sets)
            return results["flows"][0]
        raw = (ROOT / "sim" / "workloads" / "raw-rss.toml").read_text()
        sets = ("flow.rx_queues=2",)
        few, many = goodput(256, *sets), goodput(2048, *sets)
        self.assertAlmostEqual(many["goodput_bits_per_s"], few["goodput_bits_per_s"],
                               delta=0.03 * few["goodput_bits_per_s"])
        self.assertIs(many["backlog_grows"], False)
        early = goodput(2048, *sets, "measure.warmup=20 us", "measure.duration=100 us")
        self.assertIs(early["backlog_grows"], True)
        self.assertIs(early["steady"], False)
        self.assertGreater(early["goodput_bits_per_s"], 1.1 * many["goodput_bits_per_s"])

    def test_a_seed_that_changes_nothing(self):
        plain = 'schema = 1\n[measure]\nwarmup = "5 us"\nduration = "20 us"\n[[flow]]\nfrom = "h0"\nto = "h1"\n' \
                'op = "read"\nsize = "64 B"\nqps = 64\nthreads = 2\n'
        text, results = self.bench(plain)
        self.assertIn(", seed 1 (nothing is random); ", text)
        self.assertEqual(results["random"], [])
        small = ("nic.contexts.qpc.l0_entries=8", "nic.contexts.qpc.l1_entries=32",
                 "nic.contexts.qpc.replacement=random")
        runs = {}
        for seed in ("1", "2", "1"):
            text, results = self.bench(plain, *small, options=("--seed", seed))
            self.assertNotIn("nothing is random", text)
            self.assertEqual(results["random"], ["nic.contexts.qpc.replacement"])
            results = {part: results[part] for part in ("flows", "hosts")}
            self.assertEqual(runs.setdefault(seed, results), results, "a seed is a run")
        self.assertNotEqual(runs["1"], runs["2"])

    def test_a_seed_changes_the_ways_of_flows(self):
        fabric = 'schema = 1\ntopology = "leaf-spine:2,4,4"\n[measure]\nwarmup = "5 us"\nduration = "20 us"\n' \
                 '[[flow]]\nfrom = "h0..h3"\nto = "h4..h7"\nop = "write"\nsize = "4 KiB"\nqps = 2\nwindow = 4\n'
        ways = {}
        for seed in range(1, 5):
            _, results = self.bench(fabric, options=("--seed", str(seed)))
            self.assertEqual(results["random"], ["path choices of switches"])
            counters = results["switches"]["leaf0"]["counters"]
            ways[seed] = tuple(counters.get(f"port.spine{number}.tx_busy", 0) for number in range(4))
        self.assertGreater(len(set(ways.values())), 1, ways)

    def test_many_switches_and_hosts_are_summed_up(self):
        fabric = 'schema = 1\ntopology = "fat-tree:4"\n[measure]\nwarmup = "5 us"\nduration = "20 us"\n' \
                 '[[flow]]\nfrom = "h0..h7"\nto = "h8..h15"\nop = "write"\nsize = "4 KiB"\nwindow = 4\n'
        short, results = self.bench(fabric)
        self.assertLess(len(short.splitlines()), 160)
        for layer, count in (("edge", 8), ("agg", 8), ("core", 4), ("hosts", 16)):
            self.assertRegex(short, rf"\n{layer}: {count} +mean +least +most  where most\n")
        frames = [results["switches"][f"core{number}"]["counters"]["frames"] for number in range(4)]
        core = short[short.index("\ncore: "):]
        mean, least, most, where = re.search(r"\nframes +([\d.e+]+) +(\d+) +(\d+)  (core\d) ", core).groups()
        self.assertAlmostEqual(float(mean), sum(frames) / 4, delta=0.01 * sum(frames))
        self.assertEqual((int(least), int(most), where), (min(frames), max(frames), f"core{frames.index(max(frames))}"))
        every, _ = self.bench(fabric, options=("--all-counters",))
        for name in ("h0", "h15", "edge7", "core3"):
            self.assertRegex(every, rf"\n +(\S+ +)*{name}\b")


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
