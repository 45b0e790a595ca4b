#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Payload in programs' memory: written in order, whatever the device's caches hold, and visible to every process that
shares the memory.

usage: payload_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402


class Payload(apps.TestCase):
    def on_h0(self, name, *arguments):
        program = built(name, (apps.PROGRAMS / "verbs" / f"{name}.c").read_text(), "-libverbs")
        return self.assert_succeeded(apps.run_on([("h0", " ".join([str(program), *arguments]))])).lines("h0")

    def test_later_messages_are_there_later(self):
        for seed in ("1", "4", "8", "10", "14"):
            self.assertEqual(self.on_h0("overlapping_messages", seed), ["in order"], seed)

    def test_whoever_shares_it_sees_it(self):
        self.assertEqual(self.on_h0("shared_target"), ["the child saw it: 3"])


if __name__ == "__main__":
    apps.main()
