#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Marks, CNPs and DCQCN in a fabric: queues and shares compared with the fluid model, victims of pauses, and captures.

usage: fabric_congestion_test.py RNICSIM     (needs tshark for one of its tests)
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import fabric_bench
from fabric_bench import bench, flow, goodputs, incast, of_hosts, refused

HEADERS = 58     # bytes; headers of a WRITE's middle packet over IPv4, with ICRC
LINE = 24        # bytes; FCS, preamble and gap
TELEMETRY = 42
# Zhu et al., SIGCOMM 2015: 40 Gb/s, the switch's thresholds, at most one CNP per 50 us and queue pair.
PAPER = {"nic.port.rate": "40 Gb/s", "nic.congestion.control": "dcqcn_paper", "nic.congestion.ecn": "forced",
         "nic.congestion.np.moderation": "qp", "nic.congestion.np.min_time_between_cnps": "50 us",
         "switch.ecn.priorities": 1, "switch.ecn.kmin": "5 KB", "switch.ecn.kmax": "200 KB",
         "switch.ecn.pmax": 0.01}
PFC = {"switch.pfc.priorities": 1, "nic.port.pfc": 1}
DCQCN = {"nic.congestion.control": "dcqcn", "nic.congestion.ecn": "forced", "switch.ecn.priorities": 1,
         "switch.ecn.kmin": "100 KB", "switch.ecn.kmax": "400 KB", "switch.ecn.pmax": 0.2}


def fixed_point(flows, packet, line=40e9):
    """Mean queue in bytes of the fluid model: equations 5 to 9 of the paper, combined as in CoNEXT 2016 (equation 11).
    `packet`: bytes on the line."""
    tau, tau_alpha, timer, byte_counter, stages, increase = 50e-6, 55e-6, 55e-6, 10e6, 5, 40e6
    kmin, kmax, pmax = 5e3, 200e3, 0.01
    rate, steps = line / 8 / packet / flows, byte_counter / packet

    def excess(mark):
        log = math.log1p(-mark)
        a, alpha = (-math.expm1(log * time * rate) for time in (tau, tau_alpha))
        b = mark / math.expm1(-steps * log)
        d = mark / math.expm1(-timer * rate * log)
        c, e = b * math.exp(stages * steps * log), d * math.exp(stages * timer * rate * log)
        return a * a * alpha / ((b + d) * (c + e)) - tau * tau * increase / 8 / packet * rate

    low, high = 1e-7, 0.5
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return kmin + low / pmax * (kmax - kmin)


class FluidModel(unittest.TestCase):
    def check(self, senders, mtu, duration):
        results = bench(incast(senders, mtu=mtu), PAPER, f"star:{senders + 1}", "100 ms", duration)
        port = results["switches"]["s0"]["derived"]
        queue = port["port.h0.p0.tx_queue"] * (mtu + HEADERS)
        wanted = fixed_point(senders, mtu + HEADERS + LINE)
        print(f"{senders} senders, MTU {mtu}: {queue / 1000:.0f} KB waiting, {wanted / 1000:.0f} KB by the fluid model")
        self.assertLess(abs(queue / wanted - 1), 0.25, (queue, wanted))
        self.assertGreater(port["port.h0.tx_busy_share"], 0.98)
        # Shares are equal over a long time; the measurement of many senders is short.
        rates = goodputs(results)
        for rate in rates:
            self.assertLess(abs(rate * senders / sum(rates) - 1), 0.05 if senders < 8 else 0.12, rates)

    def test_two_senders(self):
        self.check(2, 4096, "300 ms")

    def test_four_senders(self):
        self.check(4, 4096, "700 ms")

    def test_eight_senders_of_small_packets(self):
        self.check(8, 1024, "100 ms")

    def test_ten_senders_of_small_packets(self):
        self.check(10, 1024, "100 ms")


class Convergence(unittest.TestCase):
    # The second flow starts after the first flow has used the line alone for 20 ms.
    def test_two_flows_come_to_half_each(self):
        flows = [flow("h1", "h0"), flow("h2", "h0", start="20 ms")]
        one, other = goodputs(bench(flows, PAPER, "star:3", "150 ms", "150 ms"))
        self.assertLess(abs(one / (one + other) - 0.5), 0.03)

    def test_the_others_rate_comes_back_when_a_flow_ends(self):
        flows = [flow("h1", "h0"), flow("h2", "h0", stop="40 ms")]
        results = bench(flows, PAPER, "star:3", "100 ms", "20 ms")
        self.assertGreater(goodputs(results)[0], 0.97 * 40e9 * 4096 / (4096 + HEADERS + LINE))


class Controls(unittest.TestCase):
    """Controls that react to acknowledgements: several senders to one receiver, without loss."""

    def check(self, control, goodput, shares, queue, **more):
        # `goodput` in Gb/s, of the line's 98; `shares`: largest relative difference of a share; `queue`: least and most
        # KB that wait on average.
        told = []
        for senders in (2, 4, 8):
            sets = {**PFC, "switch.pfc.xoff": "2 MB", "switch.pfc.xon": "1.9 MB", "nic.congestion.control": control,
                    "switch.jitter": "on", **more}
            results = bench(incast(senders), sets, f"star:{senders + 1}", "20 ms", "20 ms")
            rates, port = goodputs(results), results["switches"]["s0"]["derived"]
            waiting = port["port.h0.tx_queue"] * (4096 + HEADERS) / 1000
            told.append((sum(rates) / 1e9, waiting))
            with self.subTest(control=control, senders=senders):
                self.assertGreater(sum(rates), goodput * 1e9, rates)
                for rate in rates:
                    self.assertLess(abs(rate * senders / sum(rates) - 1), shares, rates)
                self.assertTrue(queue[0] <= waiting <= queue[1], waiting)
        print(f"| `{control}` | {', '.join(f'{rate:.1f}' for rate, _ in told)} | "
              f"{', '.join(f'{waiting:.0f}' for _, waiting in told)} |")

    def test_dctcp_keeps_the_queue_at_its_threshold(self):
        self.check("dctcp", 97, 0.2, (200, 400), **{"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1,
                                                    "switch.ecn.kmin": "300 KB", "switch.ecn.kmax": "300 KB"})

    def test_swift_keeps_the_delay_at_its_target(self):
        self.check("swift", 97, 0.05, (200, 500))

    # TIMELY has no fixed point: the line is used, and the queue is bounded.
    def test_timely_bounds_the_queue(self):
        self.check("timely", 85, 0.3, (50, 300))

    HPCC = {"nic.congestion.control": "hpcc", "nic.congestion.hpcc.base_rtt": "13 us"}

    @staticmethod
    def step(senders):
        """w_ai by the paper's rule, for twice as many senders: with the exact number, the additive increase leaves the
        line no headroom."""
        return {"nic.congestion.hpcc.w_ai": f"{round(100e9 / 8 * 13e-6 * 0.05 / senders / 2)} B"}

    def check_hpcc(self, senders, **more):
        results = bench(incast(senders), {**PFC, **self.HPCC, **self.step(senders), "switch.jitter": "on", **more},
                        f"star:{senders + 1}", "10 ms", "10 ms")
        rates, port = goodputs(results), results["switches"]["s0"]["derived"]
        line = 100e9 * 4096 / (4096 + HEADERS + LINE + TELEMETRY)
        self.assertGreater(sum(rates), 0.93 * 0.95 * line, rates)
        self.assertLess(sum(rates), line, rates)
        for rate in rates:
            self.assertLess(abs(rate * senders / sum(rates) - 1), 0.1, rates)
        waiting = port["port.h0.tx_queue"] * (4096 + HEADERS + TELEMETRY) / 1000
        self.assertLess(waiting, 30, rates)            # KB; dctcp has 285
        return sum(rates) / 1e9, waiting

    def test_hpcc_keeps_the_queue_nearly_empty(self):
        for every in (4, 1):
            told = [self.check_hpcc(senders, **{"nic.congestion.ack_every": every}) for senders in (2, 4, 8)]
            print(f"| `hpcc`, ack_every {every} | {', '.join(f'{rate:.1f}' for rate, _ in told)} | "
                  f"{', '.join(f'{waiting:.0f}' for _, waiting in told)} |")

    # The default of w_ai is the paper's rule for 16 flows. Two flows stayed at 3 to 1 when switches recorded the port
    # at the time of a packet's last bit.
    def test_hpcc_s_default_makes_few_flows_equal(self):
        for every in (4, 1):
            for senders in (2, 4, 8):
                sets = {**PFC, **self.HPCC, "nic.congestion.ack_every": every}
                rates = goodputs(bench(incast(senders), sets, f"star:{senders + 1}", "20 ms", "10 ms"))
                fairness = sum(rates) ** 2 / senders / sum(rate * rate for rate in rates)
                print(f"hpcc by default, ack_every {every}, {senders} senders: {sum(rates) / 1e9:.1f} Gb/s, Jain's "
                      f"index {fairness:.3f}")
                with self.subTest(every=every, senders=senders):
                    self.assertGreater(fairness, 0.97, rates)

    # Two tiers with several paths: telemetry of up to three switches.
    def test_hpcc_with_two_tiers(self):
        flows = [flow(f"h{i}", "h0") for i in (4, 5, 6, 7)]
        sets = {**PFC, **self.HPCC, **self.step(4), "switch.jitter": "on"}
        results = bench(flows, sets, "leaf-spine:2,4,4", "10 ms", "10 ms")
        rates = goodputs(results)
        line = 100e9 * 4096 / (4096 + HEADERS + LINE + TELEMETRY)
        # Sum over the ports of each switch.
        waiting = [box["derived"]["tx_queue"] * (4096 + HEADERS + TELEMETRY) / 1000
                   for box in results["switches"].values()]
        print(f"hpcc, leaf-spine: {sum(rates) / 1e9:.1f} Gb/s, at most {max(waiting):.0f} KB waiting")
        self.assertGreater(sum(rates), 0.93 * 0.95 * line, rates)
        for rate in rates:
            self.assertLess(abs(rate * 4 / sum(rates) - 1), 0.1, rates)
        self.assertLess(max(waiting), 30)

    # The busiest port is in the middle of the path.
    def test_hpcc_hears_of_the_busiest_port(self):
        flows = [flow(f"h{i}", f"h{i - 4}") for i in (4, 5, 6, 7)]
        sets = {**PFC, **self.HPCC, **self.step(4), "switch.jitter": "on"}
        results = bench(flows, sets, "leaf-spine:2,1,4", "10 ms", "10 ms")
        rates, port = goodputs(results), results["switches"]["leaf1"]["derived"]
        self.assertGreater(sum(rates), 0.93 * 0.95 * 100e9 * 4096 / (4096 + HEADERS + LINE + TELEMETRY), rates)
        self.assertLess(port["port.spine0.tx_queue"] * (4096 + HEADERS + TELEMETRY), 30e3)

    # READ responses carry no telemetry: the control gets no feedback, and does not limit them.
    def test_hpcc_leaves_reads_alone(self):
        reads = [flow("h0", "h1", op="read")]
        told = [goodputs(bench(reads, sets, "star:2", "1 ms", "2 ms"))[0] for sets in ({}, self.HPCC)]
        self.assertEqual(told[0], told[1])

    def test_hpcc_with_several_processes(self):
        sets = {**PFC, **self.HPCC, **self.step(3)}
        one, other = (bench([flow(f"h{i}", "h0") for i in (1, 2, 3)], sets, "leaf-spine:2,2,2", "200 us", "500 us",
                            ("--processes", processes)) for processes in ("1", "2"))
        for part in ("flows", "hosts", "switches"):
            self.assertEqual(one[part], other[part])

    def test_marks_are_told_to_those_alone_who_want_to_know(self):
        sets = {"nic.congestion.ecn": "forced", "switch.ecn.priorities": 1, "switch.ecn.kmin": "100 KB",
                "switch.ecn.kmax": "200 KB", "nic.congestion.control": "dctcp"}
        without_echo = {**sets, "nic.congestion.np.ecn_echo": "off"}
        queues = [bench(incast(2), one, "star:3", "2 ms", "2 ms")["switches"]["s0"]["derived"]["port.h0.tx_queue"]
                  for one in (sets, without_echo)]
        self.assertLess(queues[0], 0.5 * queues[1])


class Pauses(unittest.TestCase):
    # With pauses only, the senders share the line equally, and each is stopped for the rest of the time.
    def test_lossless_incast(self):
        line = 100e9 * 1024 / (1024 + HEADERS + LINE)
        for senders in (2, 4, 8, 16):
            with self.subTest(senders):
                # A frame in transmission is completed: with shorter frames the share is more exact.
                results = bench(incast(senders, mtu=1024), PFC, f"star:{senders + 1}", "2 ms", "4 ms")
                rates = goodputs(results)
                self.assertLess(abs(sum(rates) / line - 1), 0.01)
                for rate in rates:
                    self.assertLess(abs(rate * senders / sum(rates) - 1), 0.02, rates)
                port = results["switches"]["s0"]["derived"]
                for i in range(1, senders + 1):
                    self.assertLess(abs(port[f"port.h{i}.p0.rx_stopped_share"] - (1 - 1 / senders)), 0.02)

    # Four flows to h0 congest its port. The flow from h6 to h1 has room at its end, but shares the path through the
    # spine with two of the four flows, and the spine is paused.
    def test_a_victim_of_pauses_comes_back_with_dcqcn(self):
        flows = [flow(f"h{i}", "h0") for i in (2, 3, 4, 5)] + [flow("h6", "h1")]
        topology = "leaf-spine:2,1,4"
        fast = {"cables.leaf0-spine0.port": "uplink", "cables.leaf1-spine0.port": "uplink",
                "ports.uplink.rate": "400 Gb/s", "switch.pfc.headroom": "128 KiB",
                # Marking starts long before pauses.
                "switch.pfc.xoff": "1 MiB", "switch.pfc.xon": "900 KiB"}
        alone = goodputs(bench(flows[-1:], {**PFC, **fast}, topology))[0]
        paused = goodputs(bench(flows, {**PFC, **fast}, topology))[-1]
        self.assertLess(paused, 0.6 * alone)
        controlled = bench(flows, {**PFC, **DCQCN, **fast}, topology, "20 ms", "20 ms")
        self.assertGreater(goodputs(controlled)[-1], 0.9 * alone)
        self.assertGreater(sum(goodputs(controlled)[:-1]), 0.9 * alone)


class Mistakes(unittest.TestCase):
    """Mistakes in flow control settings are reported."""

    def told(self, sets, flows=None, topology="star:3", status=0):
        came, told, _ = fabric_bench.told(flows or incast(2), sets, topology)
        self.assertEqual(came, status, told)
        return told

    def test_pauses_on_one_side(self):
        told = self.told({"switch.pfc.priorities": 1})
        self.assertIn("PFC on one side: s0 lets h1 pause priority 0 (switch.pfc.priorities), but h1 does not obey "
                      "(nic.port.pfc)", told)
        told = self.told({"nic.receive_buffer.pfc": 8})
        self.assertIn("h0 lets s0 pause priority 3 (nic.receive_buffer.pfc), but s0 does not obey "
                      "(switch.pfc.priorities)", told)
        self.assertEqual(self.told(PFC), "")

    def test_too_little_headroom(self):
        far = {"link.latency": "5 us", **PFC}
        self.assertIn("s0: headroom of 64 KiB (switch.pfc.headroom) is less than the bytes that h0 sends until a pause "
                      "acts", self.told(far))
        self.assertEqual(self.told({**far, "switch.pfc.headroom": "160 KiB"}), "")

    def test_a_parameter_of_another_control(self):
        told = self.told({"nic.congestion.dcqcn.rpg_ai_rate": "10 Mb/s", "nic.congestion.dcqcn.rpg_gd": 9})
        self.assertEqual(told, "rnicsim: warning: --set nic.congestion.dcqcn.rpg_ai_rate and 1 more of "
                               "nic.congestion.dcqcn have no effect, because nic.congestion.control is none\n")
        self.assertEqual(self.told({**DCQCN, "nic.congestion.dcqcn.rpg_gd": 9}), "")

    # Five switches in a ring: each host sends to the host two switches on. An even ring would have several shortest
    # paths.
    def test_a_deadlock_is_named(self):
        ring = "".join(f'[[hosts]]\nname = "h{i}"\n[[switches]]\nname = "s{i}"\n' for i in range(5))
        ring += "".join(f'[[cables]]\nfrom = "h{i}"\nto = "s{i}"\n' for i in range(5))
        ring += "".join(f'[[cables]]\nfrom = "s{i}"\nto = "s{(i + 1) % 5}"\n' for i in range(5))
        flows = [flow(f"h{i}", f"h{(i + 2) % 5}") for i in range(5)]
        told = self.told(PFC, flows, ring, status=1)
        self.assertIn("PFC deadlock", told)
        for i in range(5):
            self.assertIn(f"s{i}, from s{(i - 1) % 5}, priority 0: holds", told)


class Loss(unittest.TestCase):
    # Without jitter, synchronized senders would stay synchronized, and the same sender would always find the freed
    # space.
    def test_senders_in_step_lose_alike(self):
        lossy = {"switch.port_buffer": "2 MB", **DCQCN, "switch.ecn.priorities": 0,
                 "nic.congestion.np.cnp_on_loss": "true", "nic.congestion.np.moderation": "qp",
                 "nic.adaptive_timeout": "500 us"}
        results = bench(incast(2), lossy, "star:3", "100 ms", "100 ms")
        rates = goodputs(results)
        self.assertGreater(min(rates) / sum(rates), 0.35, rates)
        self.assertGreater(sum(rates), 50e9)
        self.assertGreater(of_hosts(results, "nic.congestion.np_cnp_sent"), 0)
        self.assertEqual(of_hosts(results, "nic.congestion.np_ecn_marked_roce_packets"), 0)


    # Measured values of a ConnectX-5: goodput, shares and lost packets of two senders, tail drop at 5.2 MB. The target
    # rates fall slowly from the line's rate to the rate at which losses keep them. Another length of the cable gives
    # the senders another phase.
    def test_a_lossy_incast_is_as_measured(self):
        for latency in ("90 ns", "290 ns"):
            with self.subTest(latency):
                self.check_lossy_incast(latency)

    def check_lossy_incast(self, latency):
        results = bench(incast(2), {"switch.port_buffer": "5.2 MB", "link.latency": latency}, "star:3", "2 s",
                        "200 ms", ("--nic", "cx5-100g-lossy"))
        rates = goodputs(results)
        frames = {host: counters["counters"] for host, counters in results["hosts"].items()}
        sent = sum(frames[host]["nic.port.tx_frames"] for host in ("h1", "h2"))
        lost = 1 - frames["h0"]["nic.port.rx_frames"] / sent
        print(f"lossy incast, {latency}: {sum(rates) / 1e9:.1f} Gb/s, shares {rates[0] / sum(rates):.3f}, "
              f"lost {lost:.2%}")
        self.assertTrue(68.9e9 < sum(rates) < 78.9e9, rates)
        self.assertTrue(0.48 < rates[0] / sum(rates) < 0.52, rates)
        self.assertTrue(0.0115 < lost < 0.0215, lost)


class SelectiveRecovery(unittest.TestCase):
    """Two senders to one receiver without PFC, tail drop at 2 MB (IRN, SIGCOMM 2018)."""
    LOSSY = {"switch.port_buffer": "2 MB"}
    SELECTIVE = {**LOSSY, "nic.transport.recovery": "selective", "nic.transport.reorder_window": 2048,
                 "nic.transport.rto_low": "100 us", "nic.transport.rto_high": "500 us"}

    def incast(self, sets):
        results = bench(incast(2), sets, "star:3", "5 ms", "20 ms")
        return sum(goodputs(results)), results

    def test_what_is_lost_alone_is_sent_again(self):
        back, _ = self.incast(self.LOSSY)
        alone, results = self.incast(self.SELECTIVE)
        self.assertGreater(alone, 1.5 * back)
        self.assertGreater(of_hosts(results, "nic.engine.selective_retransmits"), 1000)
        self.assertGreater(min(goodputs(results)) / alone, 0.4, goodputs(results))

    # BDP-FC: the queue is not longer than both limits together.
    def test_a_limit_of_packets_in_flight_loses_nothing(self):
        for most in (50, 110, 200):
            rate, results = self.incast({**self.SELECTIVE, "nic.transport.most_in_flight": most})
            counters = results["switches"]["s0"]["counters"]
            self.assertEqual(counters["tx_discards"], 0)
            self.assertGreater(rate, 0.99 * 98.04e9, most)
            self.assertLess(counters["most_bytes"], 2 * most * 4178)
            self.assertGreater(counters["most_bytes"], 1.4 * most * 4178)

    # SIGCOMM 2016 (Guo et al.): with go-back-0 messages start again and again.
    def test_going_back_to_a_message_s_beginning_costs_more(self):
        def rate(mode):
            faults = ("--fault", "drop=2e-3,host=h0")
            results = bench([flow("h0", "h1")], {"nic.transport.recovery": mode}, "star:2", "1 ms", "10 ms", faults)
            return results["flows"][0]["rate_per_s"]
        self.assertLess(rate("go_back_0"), 0.93 * rate("go_back_n"))


class Runs(unittest.TestCase):
    def test_the_same_twice(self):
        once, again = (bench(incast(3), DCQCN, "star:4") for _ in range(2))
        for part in ("flows", "hosts", "switches"):
            self.assertEqual(once[part], again[part])
        self.assertGreater(once["switches"]["s0"]["counters"]["ecn_marked"], 0)

    def test_the_seed_counts(self):
        results = [bench(incast(3), DCQCN, "star:4", options=("--seed", str(seed))) for seed in (1, 2)]
        self.assertNotEqual(results[0]["flows"], results[1]["flows"])
        self.assertEqual(results[0]["random"], ["switch.ecn", "switch.jitter"])

    # Congestion control without CNPs changes nothing.
    def test_without_marks_nothing_is_different(self):
        plain = bench(incast(1), {}, "star:2", "100 us", "1 ms")
        ready = bench(incast(1), DCQCN, "star:2", "100 us", "1 ms")
        del plain["flows"][0]["parameters"], ready["flows"][0]["parameters"]
        self.assertEqual(plain["flows"][0]["operations"], ready["flows"][0]["operations"])

    def test_two_classes(self):
        flows = [flow("h1", "h0", dscp=26, pace="60 Gb/s"), flow("h2", "h0")]
        results = bench(flows, {"switch.dscp_priority": "26:3", "nic.port.dscp_priority": "26:3"}, "star:3")
        urgent, other = goodputs(results)
        self.assertLess(abs(urgent / 60e9 - 1), 0.02)     # as without the other flow
        self.assertGreater(urgent + other, 0.97e11)
        self.assertGreater(results["switches"]["s0"]["counters"]["port.h0.p3.tx_busy"], 0)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_tshark_reads_marks_and_cnps(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "capture.pcapng")
            results = bench(incast(2), DCQCN, "star:3", "0 us", "300 us", ("--pcap", capture))
            fields = ("infiniband.bth.opcode", "ip.dsfield.dscp", "ip.dsfield.ecn", "infiniband.bth.psn",
                      "_ws.malformed", "ip.checksum.status")
            command = ["tshark", "-n", "-o", "ip.check_checksum:TRUE", "-r", capture, "-Y", "infiniband", "-T",
                       "fields"]
            for field in fields:
                command += ["-e", field]
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600,
                                   env=dict(os.environ, HOME=folder)).stdout.splitlines()
        rows = [line.split("\t") for line in shown]
        self.assertEqual({row[4] for row in rows}, {""})
        self.assertEqual({row[5] for row in rows}, {"1"})
        cnps = [row for row in rows if row[0] == "129"]
        self.assertGreater(len(cnps), 1)
        self.assertEqual({tuple(row[1:4]) for row in cnps}, {("48", "0", "0")})
        marked = sum(row[2] == "3" for row in rows)
        self.assertGreaterEqual(marked, results["switches"]["s0"]["counters"]["ecn_marked"] * 0.9)
        self.assertGreater(marked, 0)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_tshark_sees_telemetry_as_a_trailer(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "capture.pcapng")
            bench(incast(2), Controls.HPCC, "star:3", "0 us", "100 us", ("--pcap", capture))
            command = ["tshark", "-n", "-o", "eth.fcs:Never", "-r", capture, "-Y", "infiniband", "-T", "fields"]
            for field in ("infiniband.bth.opcode", "eth.trailer", "_ws.malformed"):
                command += ["-e", field]
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600,
                                   env=dict(os.environ, HOME=folder)).stdout.splitlines()
        rows = [line.split("\t") for line in shown]
        self.assertEqual({row[2] for row in rows}, {""})
        carried = {"10": set(), "17": set()}                 # RC WRITE Only or Last, and acknowledgements
        for opcode, trailer, _ in rows:
            carried.setdefault(opcode, set()).add(trailer.replace(":", ""))
        requests = {trailer for opcode, trailers in carried.items() if int(opcode) < 17 for trailer in trailers}
        self.assertEqual(requests, {"00" * 42})               # unchanged since their senders
        self.assertGreater(len(carried["17"]), 1)
        # An acknowledgement just after another one has no newer telemetry to return.
        answers = [trailer for opcode, trailer, _ in rows if opcode == "17"]
        self.assertLess(answers.count(""), 0.05 * len(answers))
        for trailer in carried["17"] - {""}:
            self.assertEqual((len(trailer), trailer[0]), (84, "9"))   # one record; the responder returns the telemetry

    def test_what_cannot_be(self):
        for text, path in (("switch.ecn.kmin=5 MB", "switch.ecn.kmin"),
                           ("switch.ecn.pmax=1.5", "switch.ecn.pmax"),
                           ("switch.ecn.at=never", "switch.ecn.at"),
                           ("switch.jitter=some", "switch.jitter"),
                           ("nic.congestion.control=cubic", "nic.congestion.control"),
                           ("nic.congestion.dcqcn.rpg_gain=1", "nic.congestion.dcqcn.rpg_gain"),
                           ("nic.congestion.dcqcn.rpg_ai_rate=5", "nic.congestion.dcqcn.rpg_ai_rate"),
                           ("nic.congestion.swift.fs_min_cwnd=200", "nic.congestion.swift.fs_min_cwnd"),
                           ("nic.congestion.timely.t_low=1 ms", "nic.congestion.timely.t_low"),
                           ("nic.congestion.hpcc.eta=2", "nic.congestion.hpcc.eta"),
                           ("nic.congestion.ack_every=0", "nic.congestion.ack_every"),
                           ("nic.congestion.np.moderation=host", "nic.congestion.np.moderation"),
                           ("nic.congestion.np.cnp_dscp=64", "nic.congestion.np.cnp_dscp"),
                           ("nic.congestion=dcqcn", "nic.congestion")):
            self.assertIn(path, refused(text))


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
