#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/system-calls.md lists every system call of the compiler's table once, in the section that agrees with
sim/host/shim/call_table.cpp and real_calls.cpp.

usage: system_calls.py --compiler CC
"""
import argparse
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = "cc"


def table():
    """The names of all calls."""
    defined = subprocess.run([COMPILER, "-dM", "-E", "-"], input="#include <asm/unistd_64.h>", capture_output=True,
                             text=True, check=True).stdout
    return set(re.findall(r"__NR_(\w+) \d+", defined))


def sections():
    """Section title of the page -> names in the section's tables."""
    text = (ROOT / "docs" / "system-calls.md").read_text()
    found = {}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        rows = [line for line in body.splitlines() if line.startswith("|")]
        found[title] = [word for row in rows for word in re.findall(r"`(\w+)`", row)]
    return found


class SystemCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        source = (ROOT / "sim" / "host" / "shim" / "real_calls.cpp").read_text()
        harmless = re.search(r"kHarmless\[\] = \{(.*?)\};", source, re.DOTALL)[1]
        cls.passed_on = set(re.findall(r"SYS_(\w+)", harmless))
        rows = (ROOT / "sim" / "host" / "shim" / "call_table.cpp").read_text()
        cls.answered = set(re.findall(r"^    \{SYS_(\w+),", rows, re.MULTILINE)) | set(
            re.findall(r"case SYS_(\w+):", source))
        cls.sections = sections()
        cls.documented = {title: set(words) for title, words in cls.sections.items()}

    def test_each_call_stands_once(self):
        words = [word for title in self.sections for word in self.sections[title]]
        self.assertEqual(sorted(words), sorted(set(words)))
        self.assertEqual(table() - set(words), set(), "not on the page")

    def test_each_stands_where_it_belongs(self):
        simulated, passed_on = self.documented["Simulated"], self.documented["Passed on"]
        self.assertEqual(simulated - self.answered - {"rt_sigreturn"}, set())
        self.assertEqual(passed_on, self.passed_on - {"rt_sigreturn"})
        # The simulated host answers these calls and reports by itself that the run is not reproducible.
        ending = self.documented["End reproducibility"]
        say_so = {"clone3", "inotify_add_watch", "pidfd_open", "ptrace"}
        self.assertLessEqual(self.answered - simulated, say_so & ending)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    options, rest = parser.parse_known_args()
    COMPILER = options.compiler
    unittest.main(argv=["system_calls.py", *rest])
