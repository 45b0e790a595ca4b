#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Programs with threads, on simulated and on real time: the first call of a thread is not lost, and resources of an ended
thread are used again.

usage: threads_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "threads.c"
KEPT = 8192  # most threads of a process that the simulator tracks at one time


class Threads(apps.LeavesNothing):
    OPTIONS = ()

    def check(self, count, rounds, idle=""):
        program = built("threads", SOURCE.read_text(), "-libverbs", "-pthread")
        result = apps.run_on([("h0", f"{program} {count} {rounds} {idle}")], *self.OPTIONS, env=self.environment)
        self.assert_succeeded(result)
        self.assertEqual(result.lines("h0"), [f"{count * rounds} threads"], result)

    def test_a_threads_first_calls(self):
        for _ in range(3):
            self.check(count=8, rounds=3)

    def test_more_threads_one_behind_the_other_than_at_one_time(self):
        self.check(count=4, rounds=KEPT // 4 + 4, idle="idle")

    def test_many_at_one_time(self):
        self.check(count=400, rounds=1)

    def lines_with(self, mode):
        program = built("threads", SOURCE.read_text(), "-libverbs", "-pthread")
        result = apps.run_on([("h0", f"{program} {mode}")], *self.OPTIONS, env=self.environment)
        return self.assert_succeeded(result).lines("h0")

    def test_a_lock_that_is_taken_again_at_once(self):
        self.assertEqual(self.lines_with("lock"), ["had the lock"])

    def test_one_that_was_waited_for_ends_and_another_has_its_place(self):
        line, = self.lines_with("join")
        self.assertIn(line, [f"joined after {ms} ms" for ms in ((1,) if not self.OPTIONS else range(1, 90))])


class ThreadsInRealTime(Threads):
    OPTIONS = ("--time=real",)


if __name__ == "__main__":
    apps.main()
