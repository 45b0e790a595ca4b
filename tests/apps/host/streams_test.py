#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The C library's streams (stdio) on pipes and sockets wait in simulated time; so do tools that read by streams.

usage: streams_test.py path/to/rnicsim     (needs gcc)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "streams.c"


class Streams(apps.LeavesNothing):
    def lines_of(self, command):
        result = self.assert_succeeded(self.run_on(("h0", command)))
        self.assertNotIn("not reproducible", result.summary())
        return result.lines("h0")

    def test_program(self):
        self.assertEqual(self.lines_of(str(built("streams", SOURCE.read_text(), "-pthread"))), [
            "1000 ms: one", "2000 ms: two", "closed 0",
            "ff727011cd0d105dc4ef354baeb9c6a3  -", "written at 1000 ms, closed 0",
            "1 at 1 ms", "2 at 2 ms", "3 at 3 ms", "end: 1", "to nobody: -1, error 1"])

    def test_pipelines(self):
        self.assertEqual(self.lines_of("sh -c '(sleep 1; echo b; echo a) | sort; yes | head -100000 | uniq -c'"),
                         ["a", "b", " 100000 y"])


if __name__ == "__main__":
    apps.main()
