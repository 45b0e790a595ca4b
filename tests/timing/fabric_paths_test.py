#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Path selection: load balance of a leaf's uplinks, waiting times there, and reordered frames on reliable connections.

usage: fabric_paths_test.py RNICSIM
"""

import sys
import unittest

import fabric_bench
from fabric_bench import bench, flow, goodputs, of_hosts, refused

SPINES = 4
TOPOLOGY = f"leaf-spine:2,{SPINES},8"
# Single packets of unreliable connections: no retransmissions.
PACKETS = {"transport": "uc", "size": "4 KiB", "window": 16}


def pairs(**keys):
    """h0 ... h7 are at leaf0, h8 ... h15 at leaf1."""
    return [flow(f"h{i}", f"h{i + 8}", **{**PACKETS, **keys}) for i in range(8)]


def run(path, flows=None, **sets):
    sets = {"switch.path": path, **{f"switch.{key.replace('__', '.')}": value for key, value in sets.items()}}
    return bench(flows or pairs(pace="20 Gb/s"), sets, TOPOLOGY, "20 us", "200 us", ("--all-counters",))


def leaf0(results):
    return results["switches"]["leaf0"]["counters"]


def loads(results):
    return [leaf0(results).get(f"port.spine{i}.tx_busy", 0) for i in range(SPINES)]


def unevenness(results):
    """Largest load of a link divided by the mean load: 1 is even, SPINES is a single used link."""
    busy = loads(results)
    return max(busy) * SPINES / sum(busy)


class Loads(unittest.TestCase):
    def test_spray_is_more_even_than_ecmp(self):
        ecmp = run("ecmp")
        self.assertGreater(unevenness(ecmp), 1.4, loads(ecmp))
        for name, most in (("random", 1.12), ("round_robin", 1.02)):
            spray = run("spray", spray__order=name)
            self.assertLess(unevenness(spray), most, (name, loads(spray)))
            self.assertLess(abs(sum(loads(spray)) / sum(loads(ecmp)) - 1), 0.02)
            self.assertEqual(leaf0(spray)["path_changes"], 0)

    # Each queue pair has a different UDP source port: both hashes distinguish queue pairs, and distribute them
    # differently.
    def test_more_queue_pairs_are_more_even(self):
        of_hash = {}
        for name in ("flow", "qp"):
            one, many = (run("ecmp", pairs(pace="20 Gb/s", qps=qps), ecmp__hash=name) for qps in (1, 32))
            self.assertLess(unevenness(many), 1.25, (name, loads(many)))
            self.assertLess(unevenness(many), unevenness(one), (name, loads(many), loads(one)))
            of_hash[name] = loads(many)
        self.assertNotEqual(of_hash["flow"], of_hash["qp"])

    def test_the_default_is_ecmp_of_flows(self):
        bare = bench(pairs(pace="20 Gb/s"), {}, TOPOLOGY, "20 us", "200 us", ("--all-counters",))
        self.assertEqual(bare["switches"], run("ecmp", ecmp__hash="flow")["switches"])

    # At 20 Gb/s a pair sends a packet every 1.6 us.
    def test_flowlets(self):
        kept, drawn = run("flowlet"), run("flowlet", flowlet__gap="500 ns")
        self.assertEqual(leaf0(kept)["path_changes"], 0)
        self.assertGreater(leaf0(drawn)["path_changes"], 100)
        self.assertLess(unevenness(drawn), 1.15, loads(drawn))
        self.assertLess(unevenness(drawn), unevenness(kept), (loads(drawn), loads(kept)))


class Overtaking(unittest.TestCase):
    """Four pairs of hosts with one queue pair each, over four paths: the line's rate needs all paths."""
    LINE = 4 * 97.5e9  # goodput of four hosts in b/s; an address in each packet makes packets longer
    KEEPS = {"nic.transport.reorder_window": 1024, "nic.transport.nak_gap": 1024, "nic.transport.reth": "each"}

    def goodput(self, path, sets):
        flows = [flow(f"h{i}", f"h{i + 4}", size="256 KiB", window=8) for i in range(4)]
        results = bench(flows, {"switch.path": path, **sets}, f"leaf-spine:2,{SPINES},4", "500 us", "1 ms")
        return sum(goodputs(results)), results

    def test_going_back_loses_what_spraying_wins(self):
        for path in ("spray", "adaptive"):
            rate, results = self.goodput(path, {})
            self.assertLess(rate, 0.7 * self.LINE, path)
            self.assertGreater(of_hosts(results, "nic.engine.packet_seq_err"), 100)

    def test_a_nic_that_places_out_of_order_uses_all_ways(self):
        for path in ("spray", "adaptive"):
            rate, results = self.goodput(path, self.KEEPS)
            self.assertGreater(rate, 0.95 * self.LINE, path)
            self.assertGreater(of_hosts(results, "nic.engine.out_of_sequence"), 100)
            self.assertEqual(of_hosts(results, "nic.engine.packet_seq_err"), 0)

    # Without an address in each packet, the packets behind a late first packet wait in the receive buffer.
    def test_placing_needs_an_address(self):
        sets = {**self.KEEPS, "nic.transport.reth": "first"}
        rate, _ = self.goodput("spray", sets)
        self.assertLess(rate, 0.9 * self.goodput("spray", self.KEEPS)[0])


class Waits(unittest.TestCase):
    # 90 % of the uplinks' capacity. A random path meets queues; the less loaded of two paths has shorter queues.
    def test_the_less_loaded_way_waits_less(self):
        def wait(path, **sets):
            results = run(path, pairs(pace="44 Gb/s"), **sets)
            self.assertEqual(leaf0(results)["tx_discards"], 0)
            self.assertLess(unevenness(results), 1.1, (path, loads(results)))
            return leaf0(results)["tx_wait"]

        spray, two = wait("spray"), wait("adaptive")
        self.assertLess(two, 0.5 * spray)
        self.assertLess(wait("adaptive", adaptive__choices=SPINES), two)


class Mistakes(unittest.TestCase):
    def test_what_cannot_be(self):
        for text, path in (("switch.path=rps", "switch.path"),
                           ("switch.ecmp.hash=tuple", "switch.ecmp.hash"),
                           ("switch.spray.order=least", "switch.spray.order"),
                           ("switch.flowlet.gap=20", "switch.flowlet.gap"),
                           ("switch.flowlet.entries=0", "switch.flowlet.entries"),
                           ("switch.adaptive.choices=0", "switch.adaptive.choices"),
                           ("switch.adaptive.load=link", "switch.adaptive.load"),
                           ("switch.spray.hash=qp", "switch.spray.hash")):
            self.assertIn(path, refused(text))


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
