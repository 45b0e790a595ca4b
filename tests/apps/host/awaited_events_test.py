#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A thread that waits for an event of a completion channel gets the event, whatever else happens in between.

usage: awaited_events_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SOURCE = apps.PROGRAMS / "awaited_events.c"
EXPECTED = """\
interrupted: Interrupted system call
interrupted by what makes the event: Interrupted system call
then: Success
the same, restarted: Success
after one event 1 of two threads went on
after another 2
a child that inherited the channel took it
not blocking: Resource temporarily unavailable, polled: 1, Success, Resource temporarily unavailable""".splitlines()


class AwaitedEvents(apps.TestCase):
    def run_program(self):
        program = apps.built("awaited_events", SOURCE.read_text(), "-libverbs", "-pthread")
        return self.assert_succeeded(apps.run_on([("h0", str(program))]))

    def test_each_comes_and_at_the_same_time_each_time(self):
        result = self.run_program()
        self.assertEqual(result.lines("h0"), EXPECTED, result)
        self.assertEqual(self.run_program().out, result.out)


if __name__ == "__main__":
    apps.main()
