#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Cost of posting in programs with threads: a doorbell page for each thread, or a shared page with a lock.

usage: posting_threads_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "posting_threads.c"
POSTS = 200
# Defaults of host.cpu, in ps.
CLOCK_READ, WQE, DOORBELL, STORE, LOCK = 25_000, 20_000, 40_000, 30_000, 10_000
CONTENDED, WAITING = 250_000, 130_000
ALONE = WQE + DOORBELL + STORE
CLOCK = CLOCK_READ // POSTS  # share of the measurement's clock read in each post


class PostingThreads(apps.TestCase):
    def posts(self, threads, *options, **variables):
        program = built("posting_threads", SOURCE.read_text(), "-libverbs", "-pthread")
        result = apps.run_on([("h0", f"{program} {threads} {POSTS}")], *options, env=dict(os.environ, **variables))
        self.assert_succeeded(result)
        self.assertNotIn("not reproducible", result.out, result)
        took = [int(line) for line in result.lines("h0")]
        self.assertEqual(len(took), threads, result)
        return took

    def test_pages_of_their_own(self):
        self.assertEqual(self.posts(4), [ALONE + CLOCK] * 4)

    def test_one_thread_with_a_shared_page(self):
        self.assertEqual(self.posts(1, RNICSIM_TOTAL_UUARS="1"), [ALONE + LOCK + CLOCK])

    def test_shared_pages_for_each(self):
        """Each thread has a lock without contention."""
        self.assertEqual(self.posts(4, RNICSIM_NUM_LOW_LAT_UUARS="0"), [ALONE + LOCK + CLOCK] * 4)

    def test_one_page_for_all(self):
        """The lock passes from thread to thread: each thread gets the lock once per round."""
        for threads in (2, 4):
            with self.subTest(threads=threads):
                took = self.posts(threads, RNICSIM_TOTAL_UUARS="1")
                round_trip = threads * (STORE + CONTENDED + (threads - 1) * WAITING)
                for each in took:
                    # Except for the first and the last rounds.
                    self.assertLess(abs(each - round_trip), round_trip * 2 * threads / POSTS, took)
                self.assertEqual(self.posts(threads, RNICSIM_TOTAL_UUARS="1"), took)

    def test_in_real_time(self):
        """Costs are not meaningful in real time, but each thread must end."""
        for variables in ({}, {"RNICSIM_TOTAL_UUARS": "1"}):
            with self.subTest(**variables):
                self.posts(8, "--time=real", **variables)


if __name__ == "__main__":
    apps.main()
