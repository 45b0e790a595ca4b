#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--engine` and `--fst` of run, bench and replay, as a user gives them.

usage: engine_command_test.py RNICSIM [TESTS]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
CAPTURE = pathlib.Path(__file__).resolve().parents[3] / "traces" / "wire" / "rxe-two-guests.pcap"
BENCH = ("bench", "read-8", "--set", "flow.qps=2", "--set", "measure.duration=5 us")
REPLAY = ("replay", "--wire", str(CAPTURE), "--as", "10.0.0.1")
RUN = ("run", "--on", "h0", "true")
COMMANDS = (BENCH, REPLAY, RUN)


def call(*arguments):
    return subprocess.run([RNICSIM, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)


class Engine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, *arguments):
        done = call(*arguments)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        return done.stderr

    def test_mistakes_are_a_line_and_status_2(self):
        for command in COMMANDS:
            with self.subTest(command[0]):
                waves = self.folder / "waves.fst"
                self.assertIn("'verilog' is none of", self.refused(*command, "--engine", "verilog"))
                self.assertIn("--fst: the C++ engine has no signals", self.refused(*command, "--fst", waves))
                self.assertIn("--fst: ", self.refused(*command, "--engine", "model", "--fst", waves))
                self.assertFalse(waves.exists())

    def test_each_command_has_each_engine(self):
        if "without Verilator" in call(*REPLAY, "--engine", "rtl").stderr:
            self.skipTest(self.refused(*REPLAY, "--engine", "rtl"))
        for command in COMMANDS[:2]:
            for engine in ("model", "rtl", "lockstep"):
                with self.subTest(command=command[0], engine=engine):
                    results = self.folder / "results.json"
                    waves = () if engine == "model" else ("--fst", self.folder / f"{command[0]}-{engine}.fst")
                    done = call(*command, "--engine", engine, "--json", results, *waves)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertEqual(f", engine {engine}" in done.stdout, engine != "model")
                    found = json.loads(results.read_text())
                    told = found["engine"] if command is REPLAY else found["parameters"]["engine.kind"]
                    self.assertEqual(told, engine)
        files = {path.name for path in self.folder.glob("*.fst")}
        self.assertEqual(files, {"bench-rtl-h0.fst", "bench-rtl-h1.fst", "bench-lockstep-h0.fst",
                                 "bench-lockstep-h1.fst", "replay-rtl.fst", "replay-lockstep.fst"})
        self.assertIn("cannot be written", self.refused(*BENCH, "--engine", "rtl", "--fst", "/none/waves.fst"))


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
