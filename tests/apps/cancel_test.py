#!/usr/bin/env python3
"""Threads that are cancelled while they wait, by every call that is a cancellation point, on the simulation's clock and
on the real one.

usage: cancel_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().with_name("cancel.c")
WAYS = ("nanosleep", "sleep", "pause", "read", "poll", "select", "epoll_wait", "accept", "recv", "sem_wait", "cond",
        "join", "waitpid", "sigwait", "sigsuspend", "msgrcv", "mq", "F_SETLKW", "cq event", "async event", "cm event")
EXPECTED = [f"{way} {when}: cancelled, cleaned 1, ms {milliseconds}"
            for way in WAYS for when, milliseconds in (("at once", 1), ("later", 3))] + ["unwilling: whole, ms 4"]


class Cancel(apps.LeavesNothing):
    def lines_with(self, *options):
        program = built("cancel", SOURCE.read_text(), "-lrdmacm", "-libverbs", "-pthread")
        result = self.assert_succeeded(apps.run_on([("h0", str(program))], *options, env=self.environment))
        return result.lines("h0")

    def test_in_simulated_time(self):
        self.assertEqual(self.lines_with(), EXPECTED)

    def test_in_real_time(self):
        def without_time(lines):
            return [re.sub(r"ms \d+", "", line) for line in lines]
        self.assertEqual(without_time(self.lines_with("--time=real")), without_time(EXPECTED))


if __name__ == "__main__":
    apps.main()
