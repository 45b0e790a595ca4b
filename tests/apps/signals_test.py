#!/usr/bin/env python3
"""Signals between programs are real, and not in simulated time: a run in which one is sent says so.

usage: signals_test.py path/to/rnicsim     (needs gcc)
"""
import os
import pathlib
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().with_name("signals.c")
REASON = r"not reproducible: {} \(pid 1000\): a signal was sent between processes"


class Signals(LeavesNothing):
    def signals(self, how):
        return self.run_on(("h0", f"{built('signals', SOURCE.read_text())} {how}"))

    def sent(self, how, status, sender="signals"):
        """The line is there, and once."""
        result = self.signals(how)
        self.assertEqual(result.status, status, result)
        self.assertRegex(result.summary(), REASON.format(sender), result)
        self.assertEqual(result.out.count("not reproducible"), 1, result)

    def not_sent(self, how):
        result = self.signals(how)
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("not reproducible", result.out, result)

    def test_kill(self):
        self.sent("kill", signal.SIGTERM)

    def test_group(self):
        self.sent("killpg", signal.SIGKILL)

    def test_queued(self):
        self.sent("sigqueue", signal.SIGINT)

    def test_two(self):
        self.sent("twice", signal.SIGTERM)

    def test_from_a_handler(self):
        self.sent("handler", signal.SIGTERM)

    def test_before_an_exec(self):
        self.sent("exec", 0)

    def test_of_a_shell(self):
        result = self.run_on(("h0", "sh -c 'sleep 1000 & kill $!; wait $!'"))
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assertRegex(result.summary(), REASON.format("sh"), result)

    def test_to_itself(self):
        self.not_sent("self")

    def test_that_nobody_gets(self):
        self.not_sent("nobody")


if __name__ == "__main__":
    apps.main()
