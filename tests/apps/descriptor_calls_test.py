#!/usr/bin/env python3
"""Reads, writes and waits of descriptors within a simulated host take simulated time, however many they are.

usage: descriptor_calls_test.py path/to/rnicsim     (needs gcc)
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "descriptor_calls.c"


def program():
    return built("descriptor_calls", SOURCE.read_text(), "-lpthread")


class CallsTestCase(apps.TestCase):
    def on_h0(self, command):
        """Its lines, of a reproducible run."""
        result = self.assert_succeeded(apps.run_on([("h0", str(command))]))
        return result.lines("h0")

    def calls(self, mode):
        return self.on_h0(f"{program()} {mode}")


class Waits(CallsTestCase):
    def test_for_more_descriptors_than_a_message_carries(self):
        self.assertEqual(self.calls("many"), [
            "nothing: 0 after 7 ms", "the last is ready, poll: 1 after 5 ms", "select: 1 after 5 ms",
            "epoll: 1 after 5 ms"])


class Names(CallsTestCase):
    def test_of_datagram_sockets(self):
        expected = []
        for name in ("/tmp/descriptor_calls.a", "@descriptor_calls.a"):
            expected += [f"recvfrom from {name}", f"recvmsg from {name}", "answered 4"]
        self.assertEqual(self.calls("names"), expected)


if __name__ == "__main__":
    unittest.TestLoader.sortTestMethodsUsing = None
    apps.main()
