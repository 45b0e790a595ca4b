#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A peer dies while it receives requests. As on Linux, registered pages stay pinned until the process's queue pairs are
destroyed: the requester gets good answers, and then none; no NAK, and no wrong byte.

usage: dead_peer_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "dead_peer.c"
RETRIES_MS = 4 * 4.19  # timeout 10; sent once and repeated three times


class DeadPeer(LeavesNothing):
    def check(self, end, request, *options):
        program = built("dead_peer", SOURCE.read_text(), "-libverbs")
        result = self.call("run", *options, "--on", "h0", f"{program} {end} {request}",
                           "--on", "h1", f"{program} {end} {request} 10.0.0.1")
        shown = re.fullmatch(r"(.*) after ([\d.]+) ms, (\d+) good, (\d+) wrong", "\n".join(result.lines("h1")))
        self.assertTrue(shown, result)
        status, ms, good, wrong = shown.groups()
        self.assertEqual(status, "transport retry counter exceeded", result)
        self.assertEqual(int(wrong), 0, result)
        self.assertGreater(int(good), 10, result)
        self.assertTrue(0.9 * RETRIES_MS < float(ms) < 3 * RETRIES_MS, result)

    def test_it_exits(self):
        for request in ("write", "read", "atomic", "send", "many"):
            with self.subTest(request):
                self.check("exit", request)

    def test_it_is_killed(self):
        for request in ("write", "read", "atomic", "send", "many"):
            with self.subTest(request):
                self.check("kill", request)

    def test_it_aborts(self):
        for request in ("atomic", "many"):
            with self.subTest(request):
                self.check("abort", request)

    def test_another_image_takes_its_place(self):
        for request in ("write", "atomic", "many"):
            with self.subTest(request):
                self.check("exec", request)

    def test_its_queue_pair_goes(self):
        self.check("destroy", "many")


if __name__ == "__main__":
    apps.main()
