#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
perftest's bandwidth programs with commonly used options, over a good cable, a lossy cable and a reordering cable.

usage: rc_matrix_test.py path/to/rnicsim [--full]
"""
import itertools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

PROGRAMS = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw -A FETCH_AND_ADD", "ib_atomic_bw -A CMP_AND_SWAP"]
MTUS = ["256", "512", "1024", "2048", "4096"]
FAULTS = {"good": [], "lossy": ["--fault", "drop=1e-3"], "reordering": ["--fault", "reorder=1e-2,by=2"]}
CABLES = list(FAULTS)
ALL_SIZES = 23  # 2 B to 8 MiB


class Matrix:
    """Tests for every kind of cable; a subclass names the cable."""
    cable = None

    def share(self, cases):
        """Part of `cases` for this cable: all cases with --full, else every case on one of the cables."""
        return cases if apps.full() else cases[CABLES.index(self.cable)::len(CABLES)]

    def transfer(self, program, options, *sets, rows=1):
        with self.subTest(f"{program} {options}"):
            result, results = apps.run_with_results(f"{program} {options}", *FAULTS[self.cable], *sets)
            self.assert_succeeded(result)
            self.assertEqual(len(apps.perftest_rows(result.lines("h1"))), rows, result)
            for host in results["hosts"].values():
                for counter, value in host["counters"].items():
                    self.counted[counter] = self.counted.get(counter, 0) + value

    def setUp(self):
        self.counted = {}

    # Counters are summed over the runs of a test: a short run may see no fault.
    def tearDown(self):
        if not self.counted:  # the test was skipped
            return
        if self.cable == "good":
            for counter in ("out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err"):
                self.assertEqual(self.counted[f"nic.engine.{counter}"], 0, counter)
        else:
            self.assertGreater(self.counted["nic.engine.out_of_sequence"], 0)
            retries = ("packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err")
            self.assertGreater(sum(self.counted[f"nic.engine.{counter}"] for counter in retries), 0)
        self.assertEqual(self.counted["nic.engine.req_cqe_error"], 0)

    def test_every_mtu(self):
        for program, mtu in self.share(list(itertools.product(PROGRAMS, MTUS))):
            self.transfer(program, f"-m {mtu} -n 200")

    def test_both_directions(self):
        for program in PROGRAMS:
            self.transfer(program, "-b -n 1000")

    def test_eight_queue_pairs(self):
        for program, ways in self.share(list(itertools.product(PROGRAMS, ["", "-b"]))):
            self.transfer(program, f"-q 8 {ways} -n 200")

    def test_inline(self):
        for program in ("ib_write_bw", "ib_send_bw"):
            self.transfer(program, "-I 60 -s 60 -n 2000")

    def test_all_sizes(self):
        for program in self.share(PROGRAMS[:3]):
            self.transfer(program, "-a -n 32 -t 16", rows=ALL_SIZES)

    @unittest.skipUnless("--full" in sys.argv, "long")
    def test_all_sizes_both_ways_on_many_queue_pairs(self):
        for program in PROGRAMS[:3]:
            self.transfer(program, "-a -b -q 8 -n 32 -t 16", rows=ALL_SIZES)

    def test_a_second(self):
        if not apps.full() and self.cable != "lossy":
            self.skipTest("long")
        # A tenth of the rate: fewer packets in the same time suffice.
        slow = [] if apps.full() else ["--set", "nic.port.rate=10Gb/s"]
        for program in PROGRAMS if apps.full() else PROGRAMS[:1]:
            # Millions of atomics fit in a second: a single outstanding atomic suffices.
            self.transfer(program, "-D 1 -t 1" if "atomic" in program else "-D 1", *slow)


class GoodCable(Matrix, apps.TestCase):
    cable = "good"


class LossyCable(Matrix, apps.TestCase):
    cable = "lossy"


class ReorderingCable(Matrix, apps.TestCase):
    cable = "reordering"


if __name__ == "__main__":
    apps.main()
