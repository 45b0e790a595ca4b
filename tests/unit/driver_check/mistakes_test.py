#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`--check`: each mistake of mistakes.txt is found, and a million accesses of the project's own driver have no finding.

usage: mistakes_test.py path/to/rnicsim path/to/unit_driver_check [TESTS]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

MISTAKES = pathlib.Path(__file__).resolve().with_name("mistakes.txt")
ACCESSES = 1_000_000
# READs of 8 bytes: the driver rings a doorbell for each.
WORKLOAD = """
schema = 1
topology = "back-to-back"
[measure]
warmup = "10 us"
duration = "17 ms"
[[flow]]
from = "h0"
to = "h1"
op = "read"
size = "8 B"
threads = 8
qps = 4
window = 16
uars = "per_thread"
"""


class Mistakes(unittest.TestCase):
    program = None

    def test_each_is_found(self):
        lines = [line.split() for line in MISTAKES.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual([int(line[0]) for line in lines], list(range(1, 18)))
        tests = {word for line in lines for word in line if "." in word}
        with apps.folder() as folder:
            done = subprocess.run([self.program, f"--gtest_filter={':'.join(sorted(tests))}",
                                   f"--gtest_output=json:{folder / 'results'}"], capture_output=True, text=True)
            results = apps.read_json(folder / "results")
        self.assertEqual(done.returncode, 0, done.stdout)
        passed = {f"{test['classname']}.{test['name']}" for suite in results["testsuites"]
                  for test in suite["testsuite"] if test["result"] == "COMPLETED" and "failures" not in test}
        self.assertEqual(passed, tests, json.dumps(sorted(tests - passed)))

    def test_a_million_accesses_of_the_right_driver(self):
        with apps.folder() as folder:
            (folder / "reads.toml").write_text(WORKLOAD)
            result = apps.call("bench", "--check", folder / "reads.toml")
        self.assertEqual(result.status, 0, result)
        accesses = [int(count) for count in re.findall(r"check: h\d: (\d+) accesses, 0 findings", result.err)]
        self.assertEqual(len(accesses), 2, result)
        self.assertGreater(sum(accesses), ACCESSES, result)


if __name__ == "__main__":
    Mistakes.program = os.path.abspath(sys.argv.pop(2))
    apps.main()
