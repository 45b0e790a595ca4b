#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
run --record and diff, as a user runs them.

usage: record_test.py path/to/rnicsim
"""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

PROGRAM = "ibv_rc_pingpong -d rnic0 -g 1 -n 20"
EQUAL, DIFFERENT, UNREADABLE = 0, 1, 2


class Record(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def record(self, name, *options, program=PROGRAM):
        file = self.path / name
        self.assert_succeeded(apps.run(program, "--record", file, *options))
        return file

    def diff(self, a, b, status):
        result = apps.call("diff", a, b)
        self.assertEqual(result.status, status, result)
        return result.out + result.err

    def test_the_same_run_twice(self):
        first, second = self.record("first"), self.record("second")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertRegex(self.diff(first, second, EQUAL), r"\nequal: \d{3,} events\n$")

    def test_a_nanosecond_more(self):
        first, second = self.record("first"), self.record("second", "--set", "nic.rx.latency=171ns")
        text = self.diff(first, second, DIFFERENT)
        self.assertIn("\n  nic.rx.latency: 170 ns | 171 ns\n", text)
        self.assertRegex(text, r"\nevent \d+: time \+1 ns\n  the last events of QP 0x[0-9a-f]+ of h[01], ")
        self.assertRegex(text, r"\n  A:  [\d.]+ us  h[01]  packet_received  qp ")

    def test_a_parameter_without_effect(self):
        first, second = self.record("first"), self.record("second", "--set", "nic.port.least_frame=61B")
        text = self.diff(first, second, EQUAL)
        self.assertIn("the headers differ", text)
        self.assertIn("nic.port.least_frame: 60 B | 61 B", text)

    def test_files_that_are_none(self):
        good, bad = self.record("good"), self.path / "bad"
        self.assertIn("absent: No such file or directory", self.diff(good, self.path / "absent", UNREADABLE))
        for content, why in ((b"", "an empty file"), (b"#!/bin/sh\n", "not a trace"),
                             (good.read_bytes()[:-8], "is truncated")):
            bad.write_bytes(content)
            self.assertRegex(self.diff(good, bad, UNREADABLE), why)

    def test_a_place_that_cannot_be_written(self):
        result = apps.run(PROGRAM, "--record", self.path / "no such folder" / "file")
        self.assertEqual(result.status, 2, result)
        self.assertIn("No such file or directory", result.err)
        for option in ("--record", "--pcap", "--perfetto"):
            result = apps.run(PROGRAM, option, "/dev/full")
            self.assertEqual(result.status, 2, result)
            self.assertRegex(result.err, r"^rnicsim: /dev/full: .*\n$")

    def test_a_run_that_is_killed(self):
        file = self.path / "killed"
        process = apps.start("run", "--record", file, "--", "ib_send_lat", "-n", "1000000")
        while not file.exists() or file.stat().st_size < 20_000:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        apps.finish(process)
        text = self.diff(file, file, UNREADABLE)
        self.assertGreater(int(re.search(r"after (\d+) events", text).group(1)), 1000)
        self.assertIn("the run was killed, or the file is truncated", text)

    def test_the_audit(self):
        for program in ("ib_write_bw -n 200", "ib_send_lat -e -n 50", "ib_read_bw -n 100"):
            result = self.assert_succeeded(apps.run(program, "--audit"))
            self.assertNotIn("audit", result.err)


if __name__ == "__main__":
    apps.main()
