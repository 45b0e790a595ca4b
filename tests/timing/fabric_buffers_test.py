#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buffers and queues of switches and NICs: shared memory with thresholds, headroom, scheduling, and slow receivers.

usage: fabric_buffers_test.py RNICSIM
"""

import sys
import unittest

import fabric_bench
from fabric_bench import bench, flow, goodputs, incast, of_hosts, refused

FRAME = 4096 + 58
SIZE = 4_000_000
SHARED = {"switch.buffer.size": f"{SIZE} B", "switch.port_buffer": "64 MiB"}
TWO_CLASSES = {"switch.dscp_priority": "26:3", "nic.port.dscp_priority": "26:3"}
LOSSLESS = {"switch.pfc.priorities": 1, "nic.port.pfc": 1}


class SharedMemory(unittest.TestCase):
    """Choudhury and Hahne: a congested queue takes alpha / (1 + alpha) of the memory; n queues take alpha / (1 + n
    alpha) each."""

    def queues(self, flows, targets, log2, **more):
        sets = {**SHARED, "switch.buffer.lossy.dynamic_th": log2, **more}
        results = bench(flows, sets, "star:7", "0 us", "3 ms", ("--all-counters",))
        return [results["switches"]["s0"]["counters"][f"port.{target}.p0.tx_most_bytes"] for target in targets]

    def test_lossy_queues(self):
        one = incast(2)
        two = one + [flow(f"h{i}", "h3") for i in (4, 5)]
        for log2 in (-3, -1, 0, 2):
            alpha = 2 ** log2
            for flows, targets in ((one, ("h0",)), (two, ("h0", "h3"))):
                with self.subTest(log2=log2, queues=len(targets)):
                    wanted = alpha / (1 + len(targets) * alpha) * SIZE
                    for queue in self.queues(flows, targets, log2):
                        # A queue may grow beyond its share before the other queue has filled.
                        slack = FRAME if len(targets) == 1 else 0.3 * wanted
                        self.assertLess(abs(queue - wanted), slack, (queue, wanted))

    def test_a_static_threshold(self):
        queue, = self.queues(incast(2), ("h0",), 0, **{"switch.buffer.mode": "static",
                                                       "switch.buffer.lossy.static_th": "500 KB"})
        self.assertLess(abs(queue - 500_000), FRAME)

    def test_without_loss_the_senders_pause_at_the_threshold(self):
        for log2 in (-3, 0):
            alpha = 2 ** log2
            results = bench(incast(2), {**SHARED, **LOSSLESS, "switch.buffer.lossless.dynamic_th": log2}, "star:3",
                            "0 us", "2 ms", ("--all-counters",))
            counters = results["switches"]["s0"]["counters"]
            self.assertEqual(counters["rx_discards"] + counters["tx_discards"], 0)
            self.assertGreater(counters["tx_pause"], 0)
            wanted = alpha / (1 + 2 * alpha) * SIZE
            for port in ("h1", "h2"):
                held = counters[f"port.{port}.p0.rx_most_bytes"]
                self.assertGreater(held, 0.9 * wanted)
                self.assertLess(held, 1.1 * wanted + 65536)
            self.assertGreater(sum(goodputs(results)), 0.97e11)

    def test_a_headroom_pool_that_is_too_small_loses_frames(self):
        sets = {**SHARED, **LOSSLESS, "switch.buffer.size": "400 KB", "switch.buffer.lossless.xoff": "64 KB",
                "link.latency": "2 us"}
        flows = incast(6)
        plenty = bench(flows, {**sets, "switch.buffer.headroom_pool": "400 KB"}, "star:7", "0 us", "2 ms")
        scarce = bench(flows, {**sets, "switch.buffer.headroom_pool": "64 KB"}, "star:7", "0 us", "2 ms")
        self.assertEqual(plenty["switches"]["s0"]["counters"]["rx_discards"], 0)
        self.assertGreater(scarce["switches"]["s0"]["counters"]["rx_discards"], 0)
        self.assertLess(plenty["switches"]["s0"]["counters"]["buffer_most_headroom"], 400_000)


class Scheduling(unittest.TestCase):
    def shares(self, scheduler, urgent=None, **more):
        """Goodputs of two classes to h0: DSCP 26 (priority 3) and priority 0. Each wants the whole line, or the class
        of priority 3 wants `urgent`."""
        flows = [flow("h1", "h0", dscp=26, **({"pace": urgent} if urgent else {})), flow("h2", "h0")]
        pauses = {"switch.pfc.priorities": 9, "nic.port.pfc": 9}
        sets = {**TWO_CLASSES, **pauses, "switch.scheduler": scheduler, **more}
        one, other = goodputs(bench(flows, sets, "star:3", "1 ms", "3 ms"))
        self.assertGreater(one + other, 0.97e11)
        return one / (one + other)

    def test_strict(self):
        goodput = 100e9 * 4096 / (FRAME + 24)
        self.assertLess(abs(self.shares("strict", urgent="80 Gb/s") - 80e9 / goodput), 0.01)

    def test_dwrr(self):
        for weights, share in (("0:1 3:1", 0.5), ("0:30 3:70", 0.7), ("0:3 3:1", 0.25)):
            self.assertLess(abs(self.shares("dwrr", **{"switch.dwrr.weights": weights}) - share), 0.01, weights)

    def test_ets(self):
        for bandwidth, share in (("0:30 3:70", 0.7), ("0:90 3:10", 0.1)):
            self.assertLess(abs(self.shares("ets", **{"switch.ets.bandwidth": bandwidth}) - share), 0.01, bandwidth)

    # Two classes at the port of a NIC.
    def test_at_a_nic(self):
        flows = [flow("h1", "h0", dscp=26), flow("h1", "h2")]
        sets = {**TWO_CLASSES, "nic.port.scheduler": "ets", "nic.port.ets.bandwidth": "0:20 3:80"}
        one, other = goodputs(bench(flows, sets, "star:3", "200 us", "2 ms"))
        self.assertLess(abs(one / (one + other) - 0.8), 0.02)

    def test_thresholds_of_one_class(self):
        flows = [flow("h1", "h0", dscp=26), flow("h2", "h0", dscp=26), flow("h1", "h3"), flow("h2", "h3")]
        sets = {**TWO_CLASSES, "nic.congestion.ecn": "forced", "switch.ecn.priorities": 9, "switch.pfc.priorities": 9,
                "nic.port.pfc": 9, "switch.ecn.kmin": "50 MB", "switch.ecn.kmax": "60 MB",
                "switch.ecn.by_priority": "3:20KB:40KB:0.5"}
        counters = bench(flows, sets, "star:4", "0 us", "2 ms")["switches"]["s0"]["counters"]
        self.assertGreater(counters["port.h0.ecn_marked"], 100)
        self.assertNotIn("port.h3.ecn_marked", counters)


class Priorities(unittest.TestCase):
    # An incast of priority 3 to h0 pauses that priority at h1 most of the time. Priority 0 of h1 goes on.
    def test_a_paused_priority_holds_no_other_back(self):
        flows = [flow("h1", "h0", dscp=26), flow("h2", "h0", dscp=26), flow("h1", "h3")]
        for senders in (2, 8):
            congested = [flow(f"h{i}", "h0", dscp=26) for i in range(4, 3 + senders)]
            sets = {**TWO_CLASSES, "switch.pfc.priorities": 8, "nic.port.pfc": 8}
            results = bench(flows + congested, sets, f"star:{4 + senders}", "1 ms", "2 ms")
            rates = goodputs(results)
            self.assertGreater(rates[2] + rates[0], 0.97e11, rates)
            self.assertLess(rates[0], 0.6e11)


class PauseShare(unittest.TestCase):
    # A paused port is silent for less time than requested, because a frame in transmission is completed: the difference
    # per pause is the frame's remainder. The remainder follows from the round trip of a pause, because the frame whose
    # arrival triggers the pause and the frames behind that frame left without a gap.
    def test_a_frame_that_has_begun_leaves_in_each_pause(self):
        wire, pause, span = (FRAME + 24) * 80, 84 * 80, 4e9     # ps at 100 Gb/s; 4 ms
        for cable in (50, 90, 150, 163, 250):
            results = bench(incast(2), {**LOSSLESS, "link.latency": f"{cable} ns", "switch.pfc.headroom": "128 KiB"},
                            "star:3", "2 ms", "4 ms")
            for host in ("h1", "h2"):
                counters = results["hosts"][host]["counters"]
                asked = results["switches"]["s0"]["derived"][f"port.{host}.p0.rx_stopped_share"]
                pauses, silent = counters["nic.port.rx_pause"] / 2, span - counters["nic.port.tx_busy"]
                remainder = -(2000 * cable + pause) % wire
                self.assertLess(abs((asked * span - silent) / pauses - remainder), 5000, (cable, host))

    # Hence the share of paused time comes nearer to 1 - 1/N with longer pauses, that is, with more room between xoff
    # and xon.
    def test_longer_pauses_come_nearer_to_the_share(self):
        def excess(**more):
            derived = bench(incast(2), {**LOSSLESS, **more}, "star:3", "2 ms", "4 ms")["switches"]["s0"]["derived"]
            return derived["port.h1.p0.rx_stopped_share"] - 0.5
        near, default, far = (excess(**{"switch.pfc.xoff": f"{xoff} KiB", "switch.pfc.xon": f"{xon} KiB"})
                              for xoff, xon in ((64, 63), (64, 48), (256, 128)))
        self.assertGreater(near, 2 * default)
        self.assertGreater(default, 2 * far)
        self.assertLess(far, 0.006)


class Watchdog(unittest.TestCase):
    # Five switches in a ring: each host sends to the host two switches on, which deadlocks by pauses within 100 us.
    RING = ("".join(f'[[hosts]]\nname = "h{i}"\n[[switches]]\nname = "s{i}"\n' for i in range(5))
            + "".join(f'[[cables]]\nfrom = "h{i}"\nto = "s{i}"\n' for i in range(5))
            + "".join(f'[[cables]]\nfrom = "s{i}"\nto = "s{(i + 1) % 5}"\n' for i in range(5)))

    def run_ring(self, **watchdog):
        flows = [flow(f"h{i}", f"h{(i + 2) % 5}", retry=7) for i in range(5)]
        sets = {**LOSSLESS, "nic.adaptive_timeout": "100 us",
                **{f"switch.pfc.watchdog.{key}": value for key, value in watchdog.items()}}
        return fabric_bench.told(flows, sets, self.RING, duration="3 ms")

    def test_a_deadlock_ends(self):
        for action in ("drop", "forward"):
            with self.subTest(action):
                status, told, results = self.run_ring(detection_time="50 us", restoration_time="20 us", action=action)
                self.assertEqual(status, 0, told)
                self.assertIn("PFC storm at s", told)
                boxes = results["switches"].values()
                self.assertGreater(sum(box["counters"]["pfcwd_storms"] for box in boxes), 0)
                drops = sum(box["counters"]["pfcwd_discards"] for box in boxes)
                if action == "forward":
                    self.assertEqual(drops, 0)
                    continue
                self.assertGreater(drops, 0)
                self.assertGreater(sum(box["counters"]["pfcwd_restored"] for box in boxes), 0)

    def test_an_alert_changes_nothing(self):
        status, told, _ = self.run_ring(detection_time="30 us", action="alert")
        self.assertEqual(status, 1)
        self.assertIn("PFC deadlock", told)

    def test_congestion_is_no_storm(self):
        sets = {**LOSSLESS, "switch.pfc.watchdog.detection_time": "50 us"}
        counters = bench(incast(8), sets, "star:9", "0 us", "3 ms")["switches"]["s0"]["counters"]
        self.assertGreater(counters["tx_pause"], 0)
        self.assertEqual(counters["pfcwd_storms"], 0)


class SlowReceivers(unittest.TestCase):
    """Regions of 4 KiB pages are far larger than the translation cache: payload waits for the MTT in the receive
    buffer, and the NIC pauses its sender. With 2 MiB pages nothing waits."""

    def run_with(self, page):
        sets = {**LOSSLESS, "nic.receive_buffer.pfc": 1, "host.page_size": "4 KiB"}
        flows = incast(3, size="4 KiB", window=64, qps=8, mr_size="64 MiB", address="random", page=page)
        return bench(flows, sets, "star:4", "500 us", "1 ms")

    # Swift's endpoint window keeps the receiver's internal delay near its target, below the NIC's xoff.
    def test_the_window_of_the_endpoint_spares_the_pauses(self):
        sets = {**LOSSLESS, "nic.receive_buffer.pfc": 1, "host.page_size": "4 KiB", "nic.congestion.control": "swift"}
        flows = incast(3, size="4 KiB", window=64, qps=2, mr_size="64 MiB", address="random", page="4 KiB")
        without, with_it = (bench(flows, {**sets, "nic.congestion.swift.endpoint_target": target}, "star:4", "4 ms",
                                  "2 ms") for target in ("0 us", "10 us"))

        def pauses(results):
            return results["hosts"]["h0"]["counters"]["nic.receive_buffer.tx_pause"]
        self.assertGreater(pauses(without), 20)
        self.assertEqual(pauses(with_it), 0)
        self.assertEqual(with_it["switches"]["s0"]["counters"]["tx_pause"], 0)
        self.assertGreater(sum(goodputs(with_it)), 0.98 * sum(goodputs(without)))

    def test_small_pages_pause_the_sender(self):
        slow, fast = self.run_with("4 KiB"), self.run_with("2 MiB")
        self.assertGreater(slow["hosts"]["h0"]["counters"]["nic.receive_buffer.tx_pause"], 0)
        self.assertEqual(fast["hosts"]["h0"]["counters"]["nic.receive_buffer.tx_pause"], 0)
        self.assertEqual(of_hosts(slow, "nic.receive_buffer.rx_discards_phy"), 0)
        self.assertLess(sum(goodputs(slow)), sum(goodputs(fast)))


class Mistakes(unittest.TestCase):
    def test_what_cannot_be(self):
        for text, path in (("switch.buffer.size=1 MB; switch.buffer.headroom_pool=10 KB",
                            "switch.buffer.lossless.xoff"),
                           ("switch.buffer.size=1 MB; switch.buffer.headroom_pool=1001 KB",
                            "switch.buffer.headroom_pool: 1.001 MB is more than switch.buffer.size, 1 MB"),
                           ("switch.buffer.headroom_pool=1 MB", "is more than switch.buffer.size, 0 B"),
                           ("switch.buffer.size=1 MB; switch.pfc.priorities=1; switch.buffer.lossless.xoff=2 MB",
                            "switch.buffer.lossless.xoff: 2 MB is more than switch.buffer.size"),
                           ("switch.buffer.size=1 MB; switch.buffer.lossless.size=2 MB", "switch.buffer.lossless.size"),
                           ("switch.buffer.size=1 MB; switch.buffer.lossy.size=200 KB", "switch.buffer.size"),
                           ("switch.buffer.size=1 MB; switch.buffer.mode=static; switch.pfc.priorities=1; "
                            "switch.buffer.lossless.static_th=0 B", "switch.buffer.lossless.static_th"),
                           ("switch.buffer.lossy.dynamic_th=9", "switch.buffer.lossy.dynamic_th"),
                           ("switch.buffer.mode=some", "switch.buffer.mode"),
                           ("switch.pfc.watchdog.action=reset", "switch.pfc.watchdog.action"),
                           ("switch.scheduler=fifo", "switch.scheduler"),
                           ("switch.dwrr.weights=8:1", "switch.dwrr.weights"),
                           ("switch.ets.bandwidth=0:30", "switch.ets.bandwidth"),
                           ("nic.port.ets.bandwidth=0:101", "nic.port.ets.bandwidth"),
                           ("switch.ecn.by_priority=3:4KB:2KB:1", "switch.ecn.by_priority")):
            self.assertIn(path, refused(text))

    def test_priorities_that_no_frame_has(self):
        sets = {"switch.pfc.priorities": 33, "nic.port.pfc": 33, "switch.dscp_priority": "0-63:0",
                "nic.port.dscp_priority": "0-63:0"}
        status, told, _ = fabric_bench.told(incast(2), sets, "star:3")
        self.assertEqual(status, 0)
        for by in ("switch", "nic.port"):
            name = "switch.pfc.priorities" if by == "switch" else "nic.port.pfc"
            self.assertEqual(told.count(f"{name}: no frame has priority 5, because no DSCP has this priority "
                                        f"({by}.dscp_priority)"), 1, told)


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
