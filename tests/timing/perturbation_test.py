#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A changed parameter moves the calibration's curves as its mechanism predicts: the direction, and the approximate amount.

usage: perturbation_test.py path/to/rnicsim
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""


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


def latency(workload, *settings):
    return run(workload, *settings)["flows"][0]["latency_ps"]["mean"] / 1000


class Perturbation(unittest.TestCase):
    def assert_between(self, low, value, high):
        self.assertTrue(low <= value <= high, f"{value} is not in {low} .. {high}")

    def test_inline_step_is_a_pcie_read(self):
        """CAL-2: doubled read time raises the latency of messages that are not inline, and of no others."""
        slow = "nic.pcie.read_latency=806ns"
        for size, rise in (("128 B", 0), ("256 B", 403)):
            with self.subTest(size=size):
                base, doubled = (latency("cal-1", f"flow.size={size}", *more) for more in ((), (slow,)))
                self.assertAlmostEqual(doubled - base, rise, delta=1)

    def test_miss_slots_bound_a_small_cache(self):
        """CAL-6: with a very small second level, the slots bound the fills: half the slots, half the rate."""
        small = ("flow.qps=9", "nic.contexts.qpc.l1_entries=256")
        four = rate("cal-6", *small, "nic.contexts.qpc.miss_slots=4")
        two = rate("cal-6", *small, "nic.contexts.qpc.miss_slots=2")
        self.assert_between(0.4, two / four, 0.75)

    def test_fill_latency_bounds_a_small_cache(self):
        small = ("flow.qps=9", "nic.contexts.qpc.l1_entries=256")
        slow = rate("cal-6", *small, "nic.pcie.read_latency=866ns")  # twice as long, with read_internal
        self.assert_between(0.4, slow / rate("cal-6", *small), 0.75)

    def test_first_level_size(self):
        """CAL-6: half the first level at 308 QPs loses as much as the whole first level at about 616."""
        halved = rate("cal-6", "flow.qps=2", "nic.contexts.qpc.l0_entries=128") / rate("cal-6")
        self.assertLess(halved, rate("cal-6", "flow.qps=3") / rate("cal-6") + 0.02)

    def test_send_wqe_slots(self):
        """CAL-7: where each WQE is read again, the reads per second are the slots divided by a read's time; the rate is
        no higher."""
        def far(*settings):
            results = run("cal-7", "flow.window=64", *settings)
            misses = results["hosts"]["h0"]["counters"]["nic.send_wqes.misses"]
            return results["flows"][0]["rate_per_s"], misses / 200e-6

        full, _ = far()
        # miss_slots is for each of eight units; the read time is in s.
        for slots, read, share in ((3, 760e-9, 0.5), (1, 760e-9, None), (6, 1520e-9, 0.5)):
            with self.subTest(slots=slots, read=read):
                latency = f"nic.pcie.read_latency={read * 1e9 - 60:.0f}ns"  # without the 60 ns of read_internal
                rate, misses = far(f"nic.send_wqes.miss_slots={slots}", latency)
                self.assertAlmostEqual(misses / (8 * slots / read), 1, delta=0.04)
                if share is not None:
                    self.assertAlmostEqual(rate / full, share, delta=0.05)

    def test_send_wqe_cache_size(self):
        """CAL-7: half the cache overflows with half the outstanding operations."""
        self.assertLess(rate("cal-7", "flow.window=16", "nic.send_wqes.entries=640"), 0.85 * rate("cal-7"))

    def test_lanes(self):
        """CAL-3: half the lanes carry less than the line."""
        self.assert_between(0.5, goodput("cal-3", "nic.pcie.lanes=8") / goodput("cal-3"), 0.65)

    def test_tags(self):
        """CAL-3: reads of 1 KiB take two tags; with few tags, the rate is the tags divided by a read's time."""
        few, fewer = (goodput("cal-3", f"nic.pcie.read_tags={tags}") for tags in (8, 4))
        self.assertLess(few, 0.9 * goodput("cal-3"))
        self.assert_between(0.4, fewer / few, 0.6)

    def test_lock_is_held_for_a_read(self):
        """CAL-8: a single address; 400 ns more for each atomic."""
        slow = rate("cal-8", "nic.pcie.read_latency=800ns")
        self.assertAlmostEqual(1e9 / slow - 1e9 / rate("cal-8"), 400, delta=20)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
