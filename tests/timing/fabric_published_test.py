#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Experiments of papers about congestion: the better scheme, and its least advantage, are as published.

usage: fabric_published_test.py RNICSIM
"""

import sys
import unittest

import fabric_bench
from fabric_bench import bench, cabled, flow, goodputs, incast

PFC = {"switch.pfc.priorities": 1, "nic.port.pfc": 1, "switch.pfc.xoff": "1 MiB", "switch.pfc.xon": "900 KiB"}
SLOW = {"nic.port.rate": "40 Gb/s"}
DCQCN = {"nic.congestion.control": "dcqcn_paper", "nic.congestion.ecn": "forced",
         "nic.congestion.np.moderation": "qp", "nic.congestion.np.min_time_between_cnps": "50 us",
         "switch.ecn.priorities": 1, "switch.ecn.kmin": "5 KB", "switch.ecn.kmax": "200 KB", "switch.ecn.pmax": 0.01}

# Responses of four hosts arrive at a single host.
READS = [flow("h0", f"h{i}", op="read") for i in range(1, 5)]


def with_control(name, **parameters):
    return {**PFC, "nic.congestion.control": name,
            **{f"nic.congestion.{name}.{key}": value for key, value in parameters.items()}}


class Dcqcn(unittest.TestCase):
    """Zhu et al., SIGCOMM 2015."""

    # Three senders share a port of the receiver's switch; the fourth has a separate port.
    def test_pauses_are_fair_to_ports_and_dcqcn_to_flows(self):
        topology = cabled(("h1", "s0"), ("h2", "s0"), ("h3", "s0"), ("h4", "s1"), ("h0", "s1"), ("s0", "s1"))
        paused = goodputs(bench(incast(4), {**PFC, **SLOW}, topology, "5 ms", "10 ms"))
        self.assertGreater(paused[3], 0.48 * sum(paused))
        controlled = goodputs(bench(incast(4), {**PFC, **SLOW, **DCQCN}, topology, "20 ms", "40 ms"))
        self.assertGreater(sum(controlled), 0.97 * sum(paused))
        for rate in controlled:
            self.assertLess(abs(rate * 4 / sum(controlled) - 1), 0.15, controlled)

    # If a switch pauses its senders before the queue reaches kmin, there are no marks, and DCQCN changes nothing.
    def test_marks_must_come_before_pauses(self):
        topology = cabled(("h1", "s0"), ("h2", "s0"), ("h3", "s0"), ("h4", "s1"), ("h0", "s1"), ("s0", "s1"))
        late = {**PFC, **SLOW, **DCQCN, "switch.pfc.xoff": "24 KB", "switch.pfc.xon": "22 KB",
                "switch.ecn.kmin": "120 KB"}
        results = bench(incast(4), late, topology, "20 ms", "20 ms")
        rates = goodputs(results)
        self.assertEqual(sum(box["counters"]["ecn_marked"] for box in results["switches"].values()), 0)
        self.assertGreater(rates[3], 0.48 * sum(rates), rates)

    # The first flow crosses two congested ports and gets marks from both.
    def test_a_parking_lot(self):
        topology = cabled(("h0", "s0"), ("h1", "s0"), ("h2", "s1"), ("h3", "s1"), ("h4", "s2"), ("h5", "s2"),
                          ("s0", "s1"), ("s1", "s2"))
        flows = [flow("h0", "h4"), flow("h1", "h2"), flow("h3", "h5")]
        far, *near = goodputs(bench(flows, {**PFC, **SLOW, **DCQCN}, topology, "20 ms", "40 ms"))
        for rate in near:
            self.assertGreater(rate + far, 0.96 * 39.2e9)
            self.assertTrue(0.4 * rate < far < rate, (far, near))


class Timely(unittest.TestCase):
    """Zhu et al., CoNEXT 2016: TIMELY has no fixed point; patched TIMELY has a fixed point with equal rates."""

    def test_patched_it_is_fair(self):
        flows = [flow("h1", "h0"), flow("h2", "h0", start="2 ms")]

        def unfairness(**parameters):
            one, other = goodputs(bench(flows, with_control("timely", **parameters), "star:3", "40 ms", "10 ms"))
            self.assertGreater(one + other, 88e9)
            return abs(one - other) / (one + other)
        plain, patched = unfairness(), unfairness(patched="true", beta=0.008)
        self.assertLess(patched, 0.02)
        self.assertLess(patched, plain)


class Swift(unittest.TestCase):
    """Kumar et al., SIGCOMM 2020: with many more flows than packets fit into the fabric, each flow sends less than a
    packet per round trip."""

    def test_a_large_incast(self):
        flows = [flow(f"h{i}", "h0", qps=16, window=2, size="64 KiB") for i in range(1, 32)]
        results = bench(flows, with_control("swift", min_rate="1 Mb/s"), "star:32", "20 ms", "2 ms")
        self.assertGreater(sum(goodputs(results)), 97e9)
        counters = results["switches"]["s0"]["counters"]
        self.assertEqual(counters["tx_pause"], 0)
        # 120 us at the line's rate are the largest target of flow scaling.
        self.assertLess(results["switches"]["s0"]["derived"]["port.h0.tx_queue"], 1500)


class Hpcc(unittest.TestCase):
    """Li et al., SIGCOMM 2019: short messages pass large flows without waiting."""

    def test_mice_beside_elephants(self):
        flows = [flow("h1", "h0"), flow("h2", "h0"), flow("h3", "h0", size="1 KiB", window=1, pace=100000)]

        def latency_us(sets, which):
            results = bench(flows, sets, "star:4", "5 ms", "5 ms")
            self.assertGreater(sum(goodputs(results)), 88e9)
            return results["flows"][2]["latency_ps"][which] / 1e6
        alone = bench(flows[2:], PFC, "star:4", "10 us", "1 ms")["flows"][0]["latency_ps"]["p50"] / 1e6
        self.assertLess(latency_us(with_control("hpcc"), "p99"), 1.5 * alone)
        marks = {"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1}
        self.assertGreater(latency_us({**with_control("dcqcn"), **marks}, "p50"), 5 * alone)
        self.assertGreater(latency_us(PFC, "p50"), 30 * alone)


    # A second flow shares the line from 3 to 4 ms. HPCC's flow then uses the line again within some round trips,
    # DCQCN's by steps of rpg_time_reset.
    def test_a_line_that_becomes_free_is_used(self):
        flows = [flow("h1", "h0", size="64 KiB", window=16),
                 flow("h2", "h0", size="64 KiB", window=16, start="3 ms", stop="4 ms")]
        marks = {"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1, "nic.congestion.np.moderation": "qp"}

        def alone_again(sets):
            return goodputs(bench(flows, sets, "star:3", "4400 us", "200 us"))[0]
        hpcc = alone_again({**with_control("hpcc"), "nic.congestion.ack_every": 1})
        dcqcn = alone_again({**with_control("dcqcn"), **marks})
        print(f"0.4 ms after the other flow's end: HPCC {hpcc / 1e9:.1f} Gb/s, DCQCN {dcqcn / 1e9:.1f} Gb/s")
        self.assertGreater(hpcc, 90e9)
        self.assertLess(dcqcn, 0.8 * hpcc)

    # HPCC's senders learn the length of the queue; DCQCN's learn that there is a queue.
    def test_an_incast_of_sixteen(self):
        def run(sets):
            results = bench(incast(16), {**PFC, **sets}, "star:17", "20 ms", "2 ms")
            switch = results["switches"]["s0"]
            return goodputs(results), switch["derived"]["port.h0.tx_queue"], switch["counters"]["tx_pause"]
        marks = {"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1, "nic.congestion.np.moderation": "qp"}
        rates, queue, pauses = run({**with_control("hpcc"), "nic.congestion.ack_every": 1})
        marked_rates, marked_queue, _ = run({**with_control("dcqcn"), **marks})
        print(f"16:1: HPCC {sum(rates) / 1e9:.1f} Gb/s, {queue:.1f} frames wait; "
              f"DCQCN {sum(marked_rates) / 1e9:.1f} Gb/s, {marked_queue:.0f} frames")
        self.assertGreater(sum(rates), 85e9)
        self.assertEqual(pauses, 0)
        self.assertGreater(min(rates), 0.8 * max(rates), rates)
        self.assertLess(queue, 8)
        self.assertGreater(marked_queue, 50)


class Permutation(unittest.TestCase):
    """Raiciu et al., SIGCOMM 2011; Dixit et al., INFOCOM 2013: each host of a fat tree sends to another host. With ECMP
    some paths carry several flows, and half of the capacity is used. Packets of a flow on all paths use nearly all."""

    def test_one_path_or_all(self):
        flows = [flow(f"h{i}", f"h{(i + 5) % 16}", size="256 KiB") for i in range(16)]
        place = {"nic.transport.reorder_window": 1024, "nic.transport.nak_gap": 1024, "nic.transport.reth": "each"}

        def share(path):
            return sum(goodputs(bench(flows, {**PFC, **place, "switch.path": path}, "fat-tree:4", "500 us",
                                      "1 ms"))) / (16 * 98.04e9)
        shares = {path: share(path) for path in ("ecmp", "adaptive", "spray")}
        print("permutation:", ", ".join(f"{path} {share:.0%}" for path, share in shares.items()))
        self.assertTrue(0.4 < shares["ecmp"] < 0.65, shares)
        self.assertGreater(shares["adaptive"], 0.85)
        self.assertGreater(shares["spray"], 0.88)


class Irn(unittest.TestCase):
    """Mittal et al., SIGCOMM 2018: IRN without pauses is better than RoCE with pauses; pauses do not improve IRN; RoCE
    needs pauses."""

    FLOWS = ([flow(f"h{i}", f"h{(5 * i + 3) % 16}", size="256 KiB") for i in range(16) if (5 * i + 3) % 16 != i]
             + [flow(f"h{i}", "h0", size="256 KiB", window=2) for i in (5, 9, 13)])
    LOSSY = {"switch.port_buffer": "240 KB"}
    IRN = {"nic.transport.recovery": "selective", "nic.transport.reorder_window": 512,
           "nic.transport.most_in_flight": 40, "nic.transport.rto_low": "100 us", "nic.transport.rto_high": "320 us"}
    PAUSES = {"switch.pfc.priorities": 1, "nic.port.pfc": 1}

    def test_who_needs_pauses(self):
        def rates(*sets):
            merged = {key: value for one in sets for key, value in one.items()}
            return goodputs(bench(self.FLOWS, merged, "fat-tree:4", "1 ms", "2 ms"))
        irn, paused = rates(self.LOSSY, self.IRN), rates(self.PAUSES)
        self.assertGreater(sum(irn), 1.02 * sum(paused))
        self.assertGreater(sum(irn), 1.02 * sum(rates(self.PAUSES, self.IRN)))
        self.assertEqual(min(rates(self.LOSSY)), 0)
        self.assertGreater(min(irn), 10e9)

    # The paper's switches have a buffer of 240 KB for each input, these switches one for each output. If the buffer
    # holds the windows of all senders, nothing is lost. In a smaller buffer packets that are sent again are lost again,
    # and each such loss waits for rto_high.
    def test_an_incast_without_pauses(self):
        def rate(sets):
            flows = incast(10, mtu=1024, size="4 MiB", window=1, page="2 MiB")
            return sum(goodputs(bench(flows, {**sets, **SLOW}, "star:11", "5 ms", "10 ms")))
        limited = {**self.IRN, "nic.transport.most_in_flight": 110, "nic.transport.rto_high": "2 ms"}
        paused = rate(self.PAUSES)
        room = rate({**limited, "switch.port_buffer": "2400 KB"})
        little = rate({**limited, "nic.transport.rto_high": "320 us", "switch.port_buffer": "240 KB"})
        print(f"10:1, over the rate with pauses: IRN {room / paused:.0%}; with 240 KB for all {little / paused:.0%}")
        self.assertGreater(room, 0.99 * paused)
        self.assertTrue(0.4 * paused < little < 0.9 * paused)

    # Read acknowledgements: BDP-FC also limits responses.
    def test_a_limit_of_packets_in_flight_counts_for_responses(self):
        sets = {**self.IRN, "switch.port_buffer": "2 MB", "nic.transport.most_in_flight": 110,
                "nic.transport.reorder_window": 2048}

        def read(acks):
            results = bench(READS, {**sets, "nic.transport.read_acks": acks}, "star:5", "2 ms", "5 ms")
            return sum(goodputs(results)), results["switches"]["s0"]["counters"]["tx_discards"]
        (without, lost), (with_it, none) = read("false"), read("true")
        self.assertGreater(lost, 500)
        self.assertEqual(none, 0)
        self.assertGreater(with_it, 0.99 * 98.04e9)
        self.assertGreater(with_it, without)


class Livelock(unittest.TestCase):
    """Guo et al., SIGCOMM 2016: a switch loses one of 256 packets. Long messages that begin again at each loss (go back
    0) hardly ever complete, although the line is busy. With go-back-N they complete."""

    def test_messages_that_begin_again_never_end(self):
        def run(mode, op):
            sender = "h1" if op == "read" else "h0"
            sets = {"nic.transport.recovery": mode, "nic.adaptive_timeout": "100 us"}
            results = bench([flow("h0", "h1", op=op, mtu=1024, size="1 MB", retry=7)], sets, "star:2", "1 ms", "20 ms",
                            ("--fault", f"drop=0.00390625,host={sender}"))
            return (results["flows"][0]["rate_per_s"] * 8e6,
                    results["hosts"][sender]["derived"]["nic.port.tx_busy_share"])
        again, busy = run("go_back_0", "read")
        self.assertGreater(busy, 0.9)
        self.assertLess(again, 10e9)
        told = {op: run("go_back_n", op)[0] for op in ("read", "write")}
        print(f"one of 256 packets lost, messages of 1 MB: go back 0 {again / 1e9:.1f} Gb/s, go-back-N "
              f"{told['read'] / 1e9:.1f} (READ) and {told['write'] / 1e9:.1f} (WRITE)")
        for op, rate in told.items():
            self.assertGreater(rate, 65e9, op)


class Reads(unittest.TestCase):
    """Controls that react to acknowledgements work for READ responses as for WRITEs."""

    def test_an_incast_of_responses(self):
        marks = {"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1, "switch.ecn.kmin": "300 KB",
                 "switch.ecn.kmax": "300 KB"}
        for name, rate in (("dctcp", 97e9), ("timely", 88e9), ("swift", 97e9), ("hpcc", 90e9)):
            with self.subTest(name):
                sets = {**with_control(name), **(marks if name == "dctcp" else {})}

                def pauses(acks, sets=sets, rate=rate):
                    results = bench(READS, {**sets, "nic.transport.read_acks": acks}, "star:5", "10 ms", "2 ms")
                    self.assertGreater(sum(goodputs(results)), rate)
                    return results["switches"]["s0"]["counters"]["tx_pause"]
                self.assertGreater(pauses("false"), 100)
                self.assertEqual(pauses("true"), 0)


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
