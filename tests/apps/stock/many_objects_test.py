#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Very many queue pairs, regions and completion queues in one process: time to create them, and memory that they take.

usage: many_objects_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "many_objects.c"
QPS, REGIONS, QUEUES = 10_000, 10_000, 1_000
MOST_BYTES_AT_REST = 2048


class ManyObjects(apps.TestCase):
    def test_made_used_and_destroyed(self):
        program = f"{built('many_objects', SOURCE.read_text(), '-libverbs')} {QPS} {REGIONS} {QUEUES}"
        result = self.assert_succeeded(apps.run_on([("h0", program), ("h1", f"{program} h0")]))
        for host in ("h0", "h1"):
            *took, rest = result.lines(host)
            took = [int(line) for line in took]
            self.assertEqual(len(took), 10, result)
            self.assertLess(max(took), 1.1 * min(took), "what a queue pair costs grows with their number")
            word, weight = rest.split()
            self.assertEqual(word, "rest", result)
            self.assertLess(int(weight), MOST_BYTES_AT_REST, "bytes of the simulator a queue pair at rest")


if __name__ == "__main__":
    apps.main()
