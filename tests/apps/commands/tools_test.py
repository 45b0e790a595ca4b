#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Programs under gdb and valgrind: simulated time waits for them. A test is skipped where its tool is not installed.

usage: tools_test.py path/to/rnicsim
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

PROGRAM = "ibv_rc_pingpong -d rnic0 -g 1 -n 2".split()


class Tools(apps.TestCase):
    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_valgrind(self):
        result = apps.call("run", "--valgrind", "h1", "--", *PROGRAM)
        self.assert_succeeded(result)
        self.assertRegex(result.errors("h1"), r"ERROR SUMMARY: \d+ errors")
        self.assertRegex(result.text("h1"), r"2 iters in ")

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_gdb(self):
        commands = "set breakpoint pending on\nbreak ibv_modify_qp\nrun\nbacktrace 1\ndelete\ncontinue\nquit\n"
        done = subprocess.run([apps.rnicsim(), "run", "--gdb", "h1", "--", *PROGRAM], input=commands, text=True,
                              capture_output=True, timeout=apps.RUN_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("#0 ", done.stdout, done)
        self.assertIn("ibv_modify_qp", done.stdout, done)
        self.assertIn("2 iters in ", done.stdout, done)

    CRASH = "int touch(int* where) { return *where = 1; }\nint main(void) { return touch((int*)16); }\n"
    HANDLED = """
        #include <signal.h>
        #include <unistd.h>
        static void handle(int number) { (void)number; write(1, "handled\\n", 8); _exit(0); }
        int main(void) { signal(SIGSEGV, handle); return *(volatile int*)16; }
    """

    def in_gdb(self, program, commands):
        return subprocess.run([apps.rnicsim(), "run", "--gdb", "h0", "--on", "h0", str(program)], input=commands,
                              text=True, capture_output=True, timeout=apps.RUN_SECONDS, check=False)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_gdb_stops_at_a_segmentation_fault(self):
        """gdb stops at the faulting instruction, and the program then ends as without gdb. Counter reads also raise
        SIGSEGV, but gdb does not stop there."""
        done = self.in_gdb(apps.built("crashes", self.CRASH, "-g", "-O0"), "run\nbacktrace\ncontinue\nquit\n")
        self.assertRegex(done.stdout, r"(?m)^(\(gdb\) )?#0 +0x\w+ in touch \(where=0x10\)", done)
        self.assertRegex(done.stdout, r"(?m)^#1 +0x\w+ in main \(\)", done)
        self.assertIn("SIGSEGV at address 0x10", done.stderr + done.stdout, done)
        self.assertIn("Program terminated with signal SIGSEGV", done.stdout, done)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_gdb_stops_before_a_handler(self):
        done = self.in_gdb(apps.built("handles", self.HANDLED, "-g", "-O0"), "run\nbacktrace\ncontinue\nquit\n")
        self.assertRegex(done.stdout, r"(?m)^(\(gdb\) )?#\d+ +.* in main \(\)", done)
        self.assertIn("handled", done.stdout, done)
        self.assertEqual(done.returncode, 0, done)


if __name__ == "__main__":
    apps.main()
