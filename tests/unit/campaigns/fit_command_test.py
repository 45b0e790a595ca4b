#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim calibrate --fit` as a user runs it: results, files, refusals.

usage: fit_command_test.py RNICSIM [TESTS]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

RNICSIM = ""
NIC = "cx5-100g"
ROWS = ("CAL-1", "CAL-2")  # these rows run for milliseconds


def calibrate(*arguments):
    done = subprocess.run([RNICSIM, "calibrate", *map(str, arguments)], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


class Fit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        status, cls.text, err = calibrate("--fit", NIC, *ROWS, "--out", cls.folder, "--jobs", 2)
        assert (status, err) == (0, ""), err
        cls.json = json.loads((cls.folder / f"{NIC}-fit.json").read_text())
        cls.profile = cls.folder / f"{NIC}-fit.toml"

    def number(self, row, at=0):
        return next(of for of in self.json["experiments"] if of["id"] == row)["numbers"][at]

    def test_says_the_same_every_time(self):
        status, text, _ = calibrate("--fit", NIC, *ROWS, "--jobs", 1)
        self.assertEqual((status, text), (0, self.text))

    def test_fits_better_than_the_profile(self):
        rounds = self.json["rounds"]
        self.assertLess(min(of["misfit"] for of in rounds[1:]), rounds[0]["misfit"])
        one_way = self.number("CAL-1")
        self.assertLess(abs(one_way["fitted"] - 0.95), abs(one_way["profile"] - 0.95))

    def test_stays_between_the_bounds(self):
        nanoseconds = [of for of in self.json["estimates"] if of["low"].endswith(" ns")]
        self.assertTrue(nanoseconds)
        for of in nanoseconds:
            low, fitted, high = (float(of[key].removesuffix(" ns")) for key in ("low", "fitted", "high"))
            self.assertTrue(low <= fitted <= high, of)

    def test_says_what_is_not_searched_and_why(self):
        why = {of["parameter"]: of["why"] for of in self.json["not_searched"]}
        self.assertEqual(why["nic.units.send"], "as a WRITE")
        self.assertEqual(why["nic.atomics.service"], "changes no number of these experiments")
        for parameter, reason in why.items():
            self.assertRegex(self.text, rf"\n{parameter} +\S.*  {reason}\n")

    def test_what_it_found_is_a_profile(self):
        with open(self.profile, "rb") as file:
            found = tomllib.load(file)
        self.assertEqual(found["base"], NIC)
        self.assertIn("latency", found["nic"]["tx"])
        done = subprocess.run([RNICSIM, "bench", "cal-1", "--set", f"nic={self.profile}", "--json", "-"],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        latency = json.loads(done.stdout)["flows"][0]["latency_ps"]["mean"]
        self.assertAlmostEqual(latency / 1e6, self.number("CAL-1")["fitted"])

    def test_a_row_is_held_out(self):
        # CAL-2's step does not depend on a time that is added to all sizes.
        one_way = self.number("CAL-1")
        self.assertGreater(abs(one_way["held_out"] - 0.95), abs(one_way["fitted"] - 0.95))
        self.assertIn("fitted_to_the_others", self.json["experiments"][0])

    def test_nothing_is_held_out_of_one_row(self):
        status, text, _ = calibrate("--fit", NIC, "CAL-1", "--rounds", 1, "--json", self.folder / "one.json")
        self.assertEqual(status, 0)
        self.assertNotIn("other experiments", text)
        written = json.loads((self.folder / "one.json").read_text())
        self.assertNotIn("held_out", written["experiments"][0]["numbers"][0])

    def test_refuses(self):
        for arguments, said in ((("--fit", "cx9"), "no NIC profile is called 'cx9'"),
                                (("--fit", ""), "no NIC profile is called ''"),
                                (("--fit", "cx7-400g"), "no experiment uses cx7-400g"),
                                (("--fit", NIC, "CAL-1", "CAL-6"), f"CAL-6 is not an experiment of {NIC}"),
                                (("--fit", NIC, "CAL-99"), "there is no experiment 'CAL-99'"),
                                (("--fit", NIC, "CAL-1", "--sensitivity"), "excludes"),
                                (("--fit", NIC, "--rounds", "0"), "--rounds"),
                                (("--rounds", "2"), "--rounds requires --fit")):
            with self.subTest(arguments):
                status, out, err = calibrate(*arguments)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(said, err)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
