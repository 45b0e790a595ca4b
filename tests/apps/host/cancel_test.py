#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Threads that are cancelled while they wait, in every call that is a cancellation point.

usage: cancel_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "calls" / "cancel.c"
WAYS = ("nanosleep", "sleep", "pause", "read", "poll", "select", "epoll_wait", "accept", "recv", "sem_wait", "cond",
        "join", "waitpid", "sigwait", "sigsuspend", "msgrcv", "mq", "F_SETLKW", "cq event", "async event", "cm event")
EXPECTED = [f"{way} {when}: cancelled, cleaned 1, ms {milliseconds}"
            for way in WAYS for when, milliseconds in (("at once", 1), ("later", 3))] + [
                "condition: the other took", "semaphore: the other took", "unwilling: whole, ms 4"]


class Cancel(apps.LeavesNothing):
    def test_each_way(self):
        program = built("cancel", SOURCE.read_text(), "-lrdmacm", "-libverbs", "-pthread")
        result = self.assert_succeeded(self.run_on(("h0", str(program))))
        self.assertEqual(result.lines("h0"), EXPECTED)


if __name__ == "__main__":
    apps.main()
