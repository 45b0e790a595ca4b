#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests/support/times.py on build trees made here: the sums, the order, the limit, and the last lines of failed
tests."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIMES = pathlib.Path(__file__).resolve().with_name("times.py")


class Times(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)

    def times(self, *arguments):
        command = [sys.executable, TIMES, self.tree, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def tests(self, *cases):
        lines = [f'<testcase name="{name}" time="{seconds}" status="{status}">'
                 f'<system-out>{text}</system-out></testcase>' for name, seconds, status, text in cases]
        (self.tree / "tests.xml").write_text(f"<testsuite>{''.join(lines)}</testsuite>")

    def sources(self, *built):
        lines = ["# ninja log v5"]
        for begin, end, name in built:
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).touch()
            lines.append(f"{begin}\t{end}\t1\t{name}\thash")
        (self.tree / ".ninja_log").write_text("\n".join(lines) + "\n")

    def test_nothing_is_there(self):
        self.assertEqual(self.times(), "")

    def test_sums_and_order(self):
        self.tests(("unit.a", 1.5, "run", ""), ("apps.b", 4, "run", ""), ("unit.c", 3, "run", ""))
        self.sources((0, 2000, "sim/CMakeFiles/sim.dir/one.cpp.o"), (500, 5500, "sim/CMakeFiles/sim.dir/two.cpp.o"),
                     (0, 9000, "sim/libsim.a"))
        self.assertEqual(self.times(), "\ntests by rung, 8 s in all:\n     4.5 s  unit\n     4.0 s  apps\n"
                         "\nthe dearest tests, 8 s in all:\n"
                         "     4.0 s  apps.b\n     3.0 s  unit.c\n     1.5 s  unit.a\n"
                         "\nthe dearest sources to compile, 7 s in all:\n"
                         "     5.0 s  sim/sim: two.cpp\n     2.0 s  sim/sim: one.cpp\n")

    def test_a_source_that_is_built_no_more_is_left_out(self):
        self.sources((0, 2000, "a.dir/one.cpp.o"), (0, 7000, "a.dir/gone.cpp.o"))
        (self.tree / "a.dir/gone.cpp.o").unlink()
        self.assertNotIn("gone", self.times())

    def test_those_over_a_limit(self):
        self.sources(*((0, 1000 * n, f"a.dir/s{n}.cpp.o") for n in range(1, 31)))
        text = self.times("--over", "4")
        self.assertIn("26 of 30 sources over 4 s", text)
        self.assertEqual(text.count(".cpp"), 26)

    def test_the_end_of_what_failed(self):
        long = "\n".join(f"line {n}" for n in range(100))
        self.tests(("unit.a", 1, "run", "fine"), *((f"unit.f{n}", 1, "fail", long) for n in range(7)))
        text = self.times()
        self.assertNotIn("fine", text)
        self.assertEqual(text.count("failed:\n"), 5)
        self.assertEqual(text.count("  line 99\n"), 5)
        self.assertNotIn("line 79\n", text)
        self.assertTrue(text.endswith("2 more tests failed: see above\n"), text)

    def test_a_file_that_breaks_off(self):
        (self.tree / "tests.xml").write_text("<testsuite><testcase name='a' time")
        self.assertEqual(self.times(), "")


if __name__ == "__main__":
    unittest.main()
