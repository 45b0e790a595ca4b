#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Each golden behaviour, recorded with the software's events: the recording has the golden's events, and `rnicsim replay`
drives the NICs without the programs to exactly the same events.

usage: replayed_test.py path/to/rnicsim path/to/golden_behaviour
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM, BEHAVIOUR = sys.argv[1:3]
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "traces" / "golden"
# Kinds of the software's events.
SOFTWARE = {"mmio_write", "mmio_read", "config_write", "config_read", "memory", "memory_pinned", "memory_absent",
            "memory_on_demand", "process", "awaited", "command_bytes", "posted", "polled", "tlp"}


def call(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


class Replayed(unittest.TestCase):
    def events(self, trace):
        """Sorted lines: this recording and the goldens' writer have different orders for events of the same time."""
        shown = call(RNICSIM, "trace", "show", trace)
        self.assertEqual(shown.returncode, 0, shown)
        return sorted(shown.stdout.splitlines())

    def replay(self, name, folder):
        trace = folder / f"{name}.trace"
        made = call(BEHAVIOUR, name, trace, "--software")
        self.assertEqual(made.returncode, 0, made)
        events = self.events(trace)
        device = [line for line in events if line.split()[3] not in SOFTWARE]
        self.assertGreater(len(events), len(device))
        self.assertEqual(device, self.events(GOLDEN / trace.name))
        for pace in ([], ["--as-possible"]):
            again = call(RNICSIM, "replay", trace, *pace)
            self.assertEqual((again.returncode, again.stderr), (0, ""), again.stdout)
            self.assertRegex(again.stdout, r"equal: \d+ events")

    def test_each_golden(self):
        names = sorted(path.stem for path in GOLDEN.glob("*.trace"))
        self.assertGreater(len(names), 15)
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                with self.subTest(name):
                    self.replay(name, pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
