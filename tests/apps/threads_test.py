#!/usr/bin/env python3
"""Programs with threads, on the simulation's clock and on the real one: what a thread calls first is not lost, and what
it had is another's when it has ended.

usage: threads_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
KEPT = 256  # threads of a process at one time that the simulator knows


class Threads(apps.LeavesNothing):
    OPTIONS = ()

    def run_program(self, name, *arguments, **variables):
        program = built(name, (FOLDER / f"{name}.c").read_text(), "-libverbs", "-pthread")
        command = " ".join(map(str, (program, *arguments)))
        return self.assert_succeeded(apps.run_on([("h0", command)], *self.OPTIONS,
                                                 env=dict(self.environment, **variables)))

    def check(self, count, rounds):
        result = self.run_program("threads", count, rounds)
        self.assertEqual(result.lines("h0"), [f"{count * rounds} threads"], result)

    def test_a_threads_first_calls(self):
        for _ in range(3):
            self.check(count=8, rounds=3)

    def test_more_threads_one_behind_the_other_than_at_one_time(self):
        self.check(count=4, rounds=KEPT // 4 + 4)

    def test_threads_that_post(self):
        for variables in ({}, {"RNICSIM_TOTAL_UUARS": "1"}):
            result = self.run_program("posting_threads", 8, 200, **variables)
            self.assertEqual(len(result.lines("h0")), 8, result)


class ThreadsInRealTime(Threads):
    OPTIONS = ("--time=real",)


if __name__ == "__main__":
    apps.main()
