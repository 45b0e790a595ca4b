#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
rnicsim in a shell: manual pages and bash completion, both generated from the command line's own tables.

usage: shell_test.py RNICSIM [TESTS]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]

# Like bash at the tab key: splits the line into words, and calls the completion function with the command's name.
TAB = r"""
source "$1"
read -ra COMP_WORDS <<<"$(sed -E 's/([=:])/ \1 /g' <<<"$2")"
[[ $2 == *' ' || ${#COMP_WORDS[@]} == 1 ]] && COMP_WORDS+=('')
COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_rnicsim "${COMP_WORDS[0]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


def told(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout


def commands():
    return re.findall(r"(?m)^  (\w+) ", told(RNICSIM, "--help").split("Subcommands:")[1])


def names(folder):
    return sorted(path.stem for path in (ROOT / "sim" / folder).glob("*.toml"))


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rnicsim-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        told(RNICSIM, "manual", cls.folder)

    def test_a_page_a_command(self):
        pages = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(pages, sorted(["rnicsim.1", *(f"rnicsim-{command}.1" for command in commands())]))

    def test_a_page_says_what_help_says(self):
        for command in commands():
            page = (self.folder / f"rnicsim-{command}.1").read_text().replace("\\-", "-").replace("\\&", "")
            text = told(RNICSIM, command, "--help")
            with self.subTest(command):
                self.assertIn(text.splitlines()[0], page)
                for option in re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", text):
                    self.assertRegex(page, rf"\\fB(-\w, )?{option}\b")
                footer = text.rstrip().rsplit("\n\n", 1)[-1]
                if not footer.startswith("Options:"):
                    self.assertIn(footer.splitlines()[-1], page)

    def test_pages_are_roff(self):
        for path in self.folder.iterdir():
            done = subprocess.run(["groff", "-man", "-ww", "-z", path], capture_output=True, text=True, timeout=600,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path.name)


class Completion(unittest.TestCase):
    def at(self, line):
        """Completions that bash offers for a typed line."""
        script = ROOT / "sim" / "completion" / "rnicsim.bash"
        line = line.replace("rnicsim", RNICSIM, 1)
        return told("bash", "--norc", "-c", TAB, "bash", script, line).split()

    def test_commands(self):
        self.assertEqual(sorted(self.at("rnicsim ")), sorted([*commands(), "--help", "--version"]))
        self.assertEqual(self.at("rnicsim cal"), ["calibrate"])
        self.assertEqual(self.at("rnicsim nonsense "), [])

    def test_options(self):
        options = re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", told(RNICSIM, "run", "--help"))
        self.assertEqual(sorted(self.at("rnicsim run -")), sorted(options))
        self.assertEqual(self.at("rnicsim run --seed 3 --wat"), ["--waterfall"])

    def test_names_of_files_of_ours(self):
        self.assertEqual(self.at("rnicsim run --nic "), names("nics"))
        self.assertEqual(self.at("rnicsim run --host-profile "), names("hosts"))
        self.assertEqual(self.at("rnicsim run --topology "), names("topologies"))
        self.assertEqual(self.at("rnicsim bench "), names("workloads"))
        self.assertEqual(self.at("rnicsim bench write-4k --nic cx6"), ["cx6-200g"])

    def test_words_that_bash_cuts(self):
        self.assertEqual(self.at("rnicsim run --nic="), names("nics"))
        self.assertEqual(self.at("rnicsim run --nic=cx6"), ["cx6-200g"])
        self.assertEqual(self.at("rnicsim run --set nic.pcie.read_lat"), ["nic.pcie.read_latency="])
        self.assertEqual(self.at("rnicsim run --set nic.pcie.read_latency=1us --nic cx6"), ["cx6-200g"])
        self.assertEqual(self.at("rnicsim run --topology star:4 --engine l"), ["lockstep"])

    def test_the_rest_is_left_to_the_shell(self):
        self.assertEqual(self.at("rnicsim run --pcap "), [])
        self.assertIn("true", self.at("rnicsim run --nic cx5-100g -- tru"))


if __name__ == "__main__":
    RNICSIM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
