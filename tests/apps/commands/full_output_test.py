#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written: each command that prints reports one line, with exit status 2.

usage: full_output_test.py path/to/rnicsim
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[3]
TRACE = SOURCES / "traces" / "golden" / "rc_read.trace"
CAPTURE = SOURCES / "traces" / "wire" / "ud-h0.pcap"
CASE = 'schema = 1\nsimulator = "true"\n'


class FullOutput(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = pathlib.Path(folder.__enter__())
        self.addCleanup(folder.__exit__, None, None, None)

    def assert_says_so(self, *arguments):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([apps.rnicsim(), *map(str, arguments)], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        # With `--json -` all other output goes to stderr.
        lines = done.stderr.splitlines()
        self.assertRegex(lines[-1], r"\Arnicsim: standard output: (No space left|some of the output|cannot be written)",
                         arguments)
        if "-" not in arguments:
            self.assertEqual(len(lines), 1, (arguments, done.stderr))

    def test_traces(self):
        for arguments in (["show", TRACE], ["show", TRACE, "--columns", "time,kind"], ["stat", TRACE],
                          ["follow", TRACE, "--host", "h0", "--qp", "0x40", "--wqe", "0"], ["export", TRACE],
                          ["export", TRACE, "--format", "csv"], ["export", TRACE, "--format", "perfetto"],
                          ["import", "--pcap", CAPTURE, "-o", self.path / "a.trace"]):
            with self.subTest(arguments[0]):
                self.assert_says_so("trace", *arguments)
        self.assert_says_so("diff", TRACE, TRACE)
        self.assert_says_so("replay", "--wire", CAPTURE, "--as", "10.0.0.1")
        self.assert_says_so("replay", self.path / "a.trace")

    def test_configuration_and_results(self):
        self.assert_says_so("describe")
        self.assert_says_so("describe", "counters")
        results = self.path / "results.json"
        quick = ("--set", "measure.warmup=0 s", "--set", "measure.duration=5 us")
        self.assertEqual(apps.call("bench", "write-4k", *quick, "--json", results).status, 0)
        self.assert_says_so("bench", "write-4k", *quick)
        self.assert_says_so("bench", "write-4k", *quick, "--json", "-")
        self.assert_says_so("report", results, "-o", "-")
        self.assert_says_so("report", results, "-o", self.path / "page.html")
        self.assert_says_so("run", "--", "true")

    def test_check(self):
        (self.path / "a.toml").write_text(CASE)
        self.assert_says_so("check", self.path)
        self.assert_says_so("check", self.path, "--json", "-")

    def test_help(self):
        self.assert_says_so("--help")
        self.assert_says_so("--version")
        self.assert_says_so("trace", "--help")


if __name__ == "__main__":
    apps.main()
