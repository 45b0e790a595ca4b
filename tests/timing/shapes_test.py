#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The curve of each mechanism around the points to which it was fitted.

usage: shapes_test.py path/to/rnicsim
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
MIXED = """
schema = 1
set = {{ nic.timing_only = true }}
[measure]
warmup = "50 us"
duration = "200 us"
[[flow]]
from = "h0"
to = "h1"
mix = [{}]
threads = 8
qps = 4
window = 16
uars = "per_thread"
address = "random"
mr_size = "64 KiB"
"""
BESIDE = """
schema = 1
[[flow]]
from = "h0"
to = "h1"
op = "write"
size = "64 B"
threads = 4
window = 16
[[flow]]
from = "h0"
op = "reg_mr"
size = "{}"
threads = {}
"""
SENDS = """
schema = 1
set = {{ nic.timing_only = true }}
[measure]
warmup = "200 us"
duration = "300 us"
[[flow]]
from = "h0"
to = "h1"
op = "send"
size = "8 B"
inline = "8 B"
qps = {}
threads = 16
window = 64
window_per = "thread"
pick = "random"
uars = "per_thread"
recv_depth = 64
signal_every = 4
"""
PROFILES = ("cx3-40g", "connectib-2xfdr", "cx5-100g", "cx6-200g", "cx7-400g")


def run(workload, *settings):
    """Results of `rnicsim bench --json`."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "results.json")
        options = [word for setting in settings for word in ("--set", setting)]
        subprocess.run([RNICSIM, "bench", workload, *options, "--json", out], check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())


def rate(workload, *settings):
    return run(workload, *settings)["flows"][0]["rate_per_s"]


def goodput(workload, *settings):
    return run(workload, *settings)["flows"][0]["goodput_bits_per_s"]


class Shapes(unittest.TestCase):
    def assert_between(self, low, value, high):
        self.assertTrue(low <= value <= high, f"{value} is not in {low} .. {high}")

    def assert_falls(self, values, slack=0.01):
        for one, next_one in itertools.pairwise(values):
            self.assertLessEqual(next_one, one * (1 + slack), values)

    def test_a_larger_mtu_is_never_slower(self):
        """A QP's limit for READ responses is in bytes, and does not depend on packets."""
        for profile, op, qps in itertools.product(PROFILES, ("read", "write"), (1, 2)):
            with self.subTest(profile=profile, op=op, qps=qps):
                curve = [goodput("cal-9", f"nic={profile}", f"flow.op={op}", f"flow.qps={qps}",
                                 "flow.max_rd_atomic=16", f"flow.mtu={mtu}") for mtu in (4096, 2048, 1024, 512)]
                self.assert_falls(curve)

    def test_send_wqes_have_a_steady_state(self):
        """CAL-7 and CAL-13: no rate depends on the time of the measurement."""
        for workload, window in itertools.product(("cal-7", "cal-13"), (8, 12, 16, 32)):
            with self.subTest(workload=workload, window=window):
                early, late = (rate(workload, f"flow.window={window}", "measure.duration=400 us",
                                    f"measure.warmup={warmup} ms") for warmup in (1, 2))
                self.assertAlmostEqual(late / early, 1, delta=0.02)

    def test_send_wqes_are_lost_gracefully(self):
        """With more outstanding WQEs the rate falls to a floor, without a steep step."""
        for qps in (1, 2, 4):
            with self.subTest(qps=qps):
                curve = [rate("cal-7", f"flow.window={window}", f"flow.qps={qps}")
                         for window in (8, 12, 14, 16, 20, 24, 32)]
                self.assert_falls(curve, 0.03)
                self.assert_between(0.4, curve[-1] / curve[0], 0.65)
                self.assert_between(0.6, curve[3] / curve[0], 0.95)

    def test_lists_are_never_slower_than_wqes_one_by_one(self):
        """CAL-16: one doorbell for eight WQEs saves CPU time, and the ring is read ahead."""
        for threads in (1, 4, 8):
            with self.subTest(threads=threads):
                lists, singly = (rate("cal-16", f"flow.threads={threads}", f"flow.batch={batch}") for batch in (8, 1))
                self.assertGreaterEqual(lists, singly)

    def test_threads_on_one_page_wait_longer_the_more_they_are(self):
        """CAL-14: past its peak the rate falls with every thread."""
        curve = [rate("cal-14", f"flow.threads={threads}") for threads in (16, 24, 32, 48, 64, 96)]
        self.assert_falls(curve)
        self.assertLess(curve[-1], 0.61 * curve[0])

    def test_atomics_of_a_qp_take_turns(self):
        """CAL-17: atomics of a QP are serialized whatever their addresses; atomics of other QPs pass."""
        one, apart, two = (rate("cal-17", *more) for more in ((), ("flow.mr_size=64 KiB",), ("flow.qps=2",)))
        self.assertAlmostEqual(apart / one, 1, delta=0.01)
        self.assertAlmostEqual(two / one, 2, delta=0.05)
        faster = rate("cal-17", "nic.atomics.qp_interval=172.5ns")
        self.assert_between(1.7, faster / one, 2.02)

    def test_atomics_among_reads_raise_nothing(self):
        """Atomics occupy the units as READs do."""
        def rate_of(*mix):
            with tempfile.TemporaryDirectory() as folder:
                workload = pathlib.Path(folder, "mix.toml")
                workload.write_text(MIXED.format(", ".join(mix)))
                return rate(workload)

        reads = '{ op = "read", size = "8 B", weight = 3 }'
        alone = rate_of(reads)
        for weight in (1, 3):
            with self.subTest(weight=weight):
                self.assertLessEqual(rate_of(reads, f'{{ op = "cmp_swap", weight = {weight} }}'), 1.01 * alone)

    def test_reads_of_one_line_take_turns_at_the_host(self):
        """Reads of a cache line are serialized, also over many QPs; reads of other lines pass."""
        many = ("flow.op=read", "flow.size=8 B", "flow.threads=8", "flow.qps=4", "flow.uars=per_thread",
                "flow.mr_size=64 B", "flow.window=16")
        for agents in (1, 2):  # each agent has a separate line
            with self.subTest(agents=agents):
                few = rate("cal-17", *many, f"flow.threads={agents}", "nic.pcie.line_read=400ns")
                self.assertAlmostEqual(few / (agents / 400e-9), 1, delta=0.03)
        unlimited = rate("cal-17", *many, "nic.pcie.line_read=0ns")
        self.assertGreater(rate("cal-17", *many), 0.9 * unlimited)

    def test_a_blocking_cache_falls_at_once(self):
        """CAL-12: the rate falls as soon as the QPs exceed the cache, to the rate of fills."""
        sizes = ((6, 1), (10, 1), (9, 2), (10, 3), (10, 9))
        curve = [rate("cal-12", f"flow.to=h1..h{peers}", f"flow.qps={qps}") for peers, qps in sizes]
        self.assert_falls(curve)
        passing = rate("cal-12", "flow.to=h1..h9", "flow.qps=2", "nic.contexts.qpc.hit_under_miss=true")
        self.assertGreater(passing, 1.2 * curve[2])


    def test_registrations_hold_up_data(self):
        """Registrations delay data for the time of their table flushes: longer for more registrations, and for more
        pages."""
        def rate_beside(size, threads, *settings):
            with tempfile.TemporaryDirectory() as folder:
                workload = pathlib.Path(folder, "beside.toml")
                workload.write_text(BESIDE.format(size, threads))
                return rate(workload, *settings)

        curve = [rate_beside("4 KiB", 1), rate_beside("4 KiB", 4), rate_beside("1 MiB", 4), rate_beside("4 MiB", 4)]
        self.assert_falls(curve)
        self.assertLess(curve[-1], 0.9 * curve[0])
        free = rate_beside("4 MiB", 4, "nic.translation.flush=0ns", "nic.translation.flush_page=0ns")
        self.assertGreater(free, curve[0])

    def test_the_receive_rate_over_queues_has_a_maximum_inside(self):
        """A few queues wait for their reads; with many queues the cache has no room for entries read ahead, which are
        read again."""
        def rate_of(qps, *settings):
            with tempfile.TemporaryDirectory() as folder:
                workload = pathlib.Path(folder, "sends.toml")
                workload.write_text(SENDS.format(qps))
                results = run(workload, *settings)
                return results["flows"][0]["rate_per_s"], results["hosts"]["h1"]["counters"]["nic.wqe_fetch.fetches"]

        curve = [rate_of(qps)[0] for qps in (1, 2, 4, 8, 16)]
        self.assertNotIn(curve.index(max(curve)), (0, 4), curve)
        self.assert_falls(curve[curve.index(max(curve)):])
        rates, fetches = zip(*(rate_of(16, f"nic.receive_wqes.queues={queues}") for queues in (256, 64, 16)))
        self.assert_falls((rates[0], rates[2]))
        self.assertGreater(fetches[1], 1.5 * fetches[0])

    def test_a_slow_host_holds_the_sender_to_its_rate(self):
        """With pauses nothing is lost; without pauses the buffer overflows, and lost packets are sent again."""
        slow = ("nic.pcie.write_issue=1us", "flow.mtu=4096", "flow.window=16")
        held = run("cal-3", *slow, "nic.port.pfc=1", "nic.receive_buffer.pfc=1")
        lossy = run("cal-3", *slow)
        lost = "nic.receive_buffer.rx_discards_phy"
        self.assertEqual(held["hosts"]["h1"]["counters"][lost], 0)
        self.assertGreater(lossy["hosts"]["h1"]["counters"][lost], 0)
        self.assertGreater(held["hosts"]["h1"]["counters"]["nic.receive_buffer.tx_pause"], 0)
        paused, again = (each["flows"][0]["goodput_bits_per_s"] for each in (held, lossy))
        most = 4096 * 8 / 1.272e-6  # b/s; a packet's time on PCIe, and the time between two writes
        self.assert_between(0.98 * most, paused, 1.01 * most)
        self.assertLess(again, 1.01 * most)
        held_frames, lossy_frames = (each["hosts"]["h0"]["counters"]["nic.port.tx_frames"] for each in (held, lossy))
        self.assertGreater(lossy_frames, 1.1 * held_frames)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
