#!/usr/bin/env python3
"""Programs under gdb and valgrind: simulated time waits for them. Each is skipped where the tool is not installed.

usage: tools_test.py path/to/rnicsim
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402

PROGRAM = "ibv_rc_pingpong -d rnic0 -g 1 -n 2".split()
SECONDS = 100


class Tools(apps.TestCase):
    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_valgrind(self):
        result = apps.call("run", "--valgrind", "h1", "--", *PROGRAM, timeout=SECONDS)
        self.assert_succeeded(result)
        self.assertRegex(result.errors("h1"), r"ERROR SUMMARY: \d+ errors")
        self.assertRegex(result.text("h1"), r"2 iters in ")

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_gdb(self):
        commands = "set breakpoint pending on\nbreak ibv_modify_qp\nrun\nbacktrace 1\ndelete\ncontinue\nquit\n"
        done = subprocess.run([apps.rnicsim(), "run", "--gdb", "h1", "--", *PROGRAM], input=commands, text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("#0 ", done.stdout, done)
        self.assertIn("ibv_modify_qp", done.stdout, done)
        self.assertIn("2 iters in ", done.stdout, done)


if __name__ == "__main__":
    apps.main()
