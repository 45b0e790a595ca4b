#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Help of rnicsim: commands, parameters, counters; and the existence of the files that the help names.

usage: help_test.py RNICSIM [TESTS]
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

RNICSIM = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def told(*arguments):
    status, out, err = run(RNICSIM, *arguments)
    assert status == 0, err
    return out


def command_lines(*words):
    """All command lines: the program, its commands, their tools."""
    listed = told(*words, "--help").partition("Subcommands:\n")[2].partition("\n\n")[0]
    return [words, *(line for name in re.findall(r"(?m)^  (\w+) ", listed) for line in command_lines(*words, name))]


class Help(unittest.TestCase):
    def test_help_fits_100_columns(self):
        lines = command_lines()
        self.assertIn(("trace", "stat"), lines)
        texts = {" ".join(("rnicsim", *words)): told(*words, "--help") for words in lines}
        texts["./rnicsim"] = run("sh", str(ROOT / "rnicsim"), "help")[1]
        for name, text in texts.items():
            with self.subTest(name):
                self.assertEqual([line for line in text.splitlines() if len(line) > 100 or line != line.rstrip()], [])
                self.assertRegex(text, r"(?i)usage:")

    def test_the_launcher_lists_every_command(self):
        listed = told("--help").split("Subcommands:")[1]
        commands = re.findall(r"(?m)^  (\w+) ", listed)
        self.assertIn("run", commands)
        status, usage, _ = run("sh", str(ROOT / "rnicsim"), "help")
        self.assertEqual(status, 0)
        for command in commands:
            with self.subTest(command):
                self.assertRegex(usage, rf"(?m)^  {command} ")

    def test_help_is_a_word_too(self):
        self.assertEqual(told("help"), told("--help"))
        self.assertEqual(told("help", "run"), told("run", "--help"))

    def test_what_is_no_command(self):
        for words, why in (((), "a command is missing"), (("rnu",), "'rnu'; did you mean run?"),
                           (("complet",), "unknown command 'complet'; see"), (("help", "rnu"), "did you mean run?"),
                           (("help", "run", "top"), "help needs at most one command"),
                           (("--log", "debug", "run"), "unknown option '--log' before a command"),
                           (("--versoin",), "unknown option '--versoin' before a command")):
            with self.subTest(words):
                status, out, err = run(RNICSIM, *words)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(why, err)

    def test_output_that_does_not_arrive(self):
        for words in (("--version",), ("--help",), ("run", "--help"), ("describe", "nic"), ("help",)):
            with self.subTest(words), open("/dev/full", "w") as full:
                done = subprocess.run([RNICSIM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"^rnicsim: standard output: .*\n$")

    def test_reader_that_has_gone(self):
        """The exit status is that of a program killed by SIGPIPE, as a shell reports it."""
        for words in (("--help",), ("describe", "nic"), ("run", "--", "true")):
            with self.subTest(words):
                reader, writer = os.pipe()
                os.close(reader)
                done = subprocess.run([RNICSIM, *words], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600)
                os.close(writer)
                status = done.returncode if done.returncode >= 0 else 128 - done.returncode
                self.assertEqual((status, done.stderr), (128 + signal.SIGPIPE, ""))

    def test_files_that_are_named_are_there(self):
        texts = [told("describe"), told("--help")]
        commands = ("run", "bench", "replay", "report", "calibrate", "describe", "diff")
        texts += [told(command, "--help") for command in commands]
        named = set(re.findall(r"[\w./-]+\.(?:md|toml|py|txt)\b", "\n".join(texts)))
        self.assertIn("docs/timing.md", named)
        for name in sorted(named):
            with self.subTest(name):
                self.assertTrue((ROOT / name).is_file(), name)

    def test_the_version_and_what_was_built(self):
        lines = told("--version").splitlines()
        self.assertRegex(lines[0], r"^rnicsim \d+\.\d+\.\d+(-\d+-g[0-9a-f]+)?(-dirty)?$")
        facts = dict(line.split(":", 1) for line in lines[1:])
        self.assertEqual(list(facts), ["commit", "compiler", "build type", "SystemC", "RTL engine"])
        for fact, value in facts.items():
            self.assertTrue(value.strip(), fact)

    def test_counters_have_unit_and_meaning(self):
        text = told("describe", "counters")
        host, switch = text.split("Of a switch:")
        for part, some in ((host, "nic.tx.packets"), (switch, "most_waiting")):
            table = part.split("\n\n")[1]
            self.assertIn(some, table)
            for line in table.splitlines():
                with self.subTest(line):
                    self.assertRegex(line, r"^[\w.]+ +\w+ +\S.+$")
        for counter in ("frames", "bytes", "unknown", "most_waiting"):
            self.assertRegex(switch, rf"(?m)^{counter} ")

    def test_an_environment_needs_a_server(self):
        name = f"rnicsim-nobody-{os.getpid()}"
        status, out, err = run(RNICSIM, "env", "h0", RNICSIM_SOCKET=name)
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(f"no simulation is running at {name}: start `rnicsim serve` first", err)
        for bad in ("", "x" * 200):
            self.assertEqual(run(RNICSIM, "env", "h0", RNICSIM_SOCKET=bad)[0], 2)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
