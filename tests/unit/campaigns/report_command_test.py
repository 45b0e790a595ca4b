#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim report` as a user runs it: inputs, refusals, exit status.

usage: report_command_test.py RNICSIM [TESTS]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import sweep_folder  # noqa: E402

RNICSIM = ""
AXES = {"nic.contexts.qpc.l1_entries": (["256", "512"], "geometric"), "flow.qps": (["4", "8"], "list")}


def run(at, seed):
    rate = 1e6 * int(at["flow.qps"]) + 1e4 * seed
    uses = [("h0", "nic.units.transmit", 0.9), ("h1", "nic.port.rx", 0.4)]
    return sweep_folder.run_results(seed, rate, uses=uses if at["flow.qps"] == "4" else uses[:1], parameters=at,
                                    counters={"nic.tx.packets": int(at["flow.qps"]), "nic.dull": 0})


def data_of(page):
    """The data in the page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.page = self.folder / "report.html"

    def report(self, *results, expect=0, output=None):
        done = subprocess.run([RNICSIM, "report", *map(str, results), "-o", str(output or self.page)],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def sweep(self, name="a", **more):
        return sweep_folder.write_sweep(self.folder / name, AXES, run, name=name, **more)

    def set_of(self, *results):
        self.report(*results)
        return data_of(self.page.read_text())["sets"][0]

    def test_all_of_a_sweep_is_in_the_page(self):
        written = self.sweep(failed=[1], missing=[2])
        told = self.set_of(self.folder / "a")
        self.assertEqual([axis["key"] for axis in told["axes"]], list(AXES))
        self.assertEqual([point["values"] for point in told["points"]],
                         [list(point["values"].values()) for point in written["points"]])
        self.assertEqual([[run["status"] for run in point["runs"]] for point in told["points"]],
                         [["done"] * 3, ["failed"] * 3, ["missing"] * 3, ["done"] * 3])
        self.assertEqual(told["points"][1]["runs"][0]["error"], "no such luck at 1")
        rate = next(metric for metric in told["metrics"] if metric["name"] == "flow[0].rate_per_s")
        self.assertEqual(rate["mean"], [4.02e6, None, None, 8.02e6])
        expected = written["points"][0]["metrics"]["flow[0].rate_per_s"]
        self.assertAlmostEqual(rate["low"][0] / expected["low"], 1, 4)
        self.assertAlmostEqual(rate["high"][0] / expected["high"], 1, 4)
        self.assertEqual(rate["n"], [3, 0, 0, 3])
        self.assertEqual(told["points"][0]["limit"]["text"], "h0 nic.units.transmit 90 %")
        self.assertIsNone(told["points"][1]["limit"])

    def test_counters_resources_and_configuration_come_from_the_runs(self):
        self.sweep()
        told = self.set_of(self.folder / "a")
        metrics = {metric["name"]: metric for metric in told["metrics"]}
        self.assertEqual(metrics["h0.nic.tx.packets"]["mean"], [4, 8, 4, 8])
        self.assertNotIn("h0.nic.dull", metrics, "what counts nothing tells nothing")
        uses = {(of["host"], of["resource"]): of for of in told["resources"]}
        self.assertEqual(uses["h0", "nic.units.transmit"]["use"], [0.9] * 4)
        self.assertEqual(uses["h0", "nic.units.transmit"]["queue"], [2.5] * 4)
        self.assertEqual(uses["h1", "nic.port.rx"]["use"], [0.4, 0, 0.4, 0], "what was never busy is not in a run")
        configuration = told["configuration"]
        self.assertEqual(configuration["baseline"]["flow.qps"], "4")
        self.assertEqual(configuration["differences"],
                         [{}, {"flow.qps": "8"}, {"nic.contexts.qpc.l1_entries": "512"},
                          {"flow.qps": "8", "nic.contexts.qpc.l1_entries": "512"}])
        self.assertEqual(configuration["shipped"]["nic"], "cx5-100g")
        self.assertEqual(configuration["shipped"]["differs"], {"nic.contexts.qpc.l1_entries": "2048"})

    def test_single_runs(self):
        path = self.folder / "one.json"
        subprocess.run([RNICSIM, "bench", "write-4k", "--set", "flow.qps=2", "--set", "measure.duration=20us",
                        "--waterfall", "--json", path], check=True, capture_output=True, timeout=600)
        told = self.set_of(path)
        self.assertEqual((told["name"], told["command"], len(told["points"])), ("one", "bench", 1))
        results = json.loads(path.read_text())
        rate = next(metric for metric in told["metrics"] if metric["name"] == "flow[0].rate_per_s")
        self.assertAlmostEqual(rate["mean"][0] / results["flows"][0]["rate_per_s"], 1, 4)
        self.assertIn({"host": "h0", "resource": "flow[0].from.cpu", "use": [unittest.mock.ANY]}, told["resources"],
                      "the host's CPU is a resource, too")
        self.assertEqual(told["points"][0]["limit"]["text"], results["limit"]["text"])
        self.assertEqual(told["configuration"]["shipped"]["differs"], {}, "a profile as it ships")
        stages = results["waterfall"]["operations"][0]["stages"]
        told_stages = {stage["name"]: stage["mean_ps"][0] for stage in told["waterfalls"][0]["stages"]}
        self.assertEqual(set(told_stages), {name for name, stage in stages.items() if stage["sum_ps"]})
        self.assertAlmostEqual(told_stages["wire"] / stages["wire"]["mean_ps"], 1, 4)

    def test_a_sweep_that_was_killed_is_shown_as_far_as_it_came(self):
        out = self.folder / "real"
        subprocess.run([RNICSIM, "bench", "write-4k", "--set", "flow.qps=2", "--set", "measure.duration=20us", "--vary",
                        "flow.window=1,2", "--out", out], check=True, capture_output=True, timeout=600)
        whole = self.set_of(out)
        self.assertEqual([run["status"] for point in whole["points"] for run in point["runs"]], ["done", "done"])
        (out / "results.json").unlink()
        (out / "points" / "1-1.json").unlink()
        part = self.set_of(out)
        self.assertEqual([run["status"] for point in part["points"] for run in point["runs"]], ["done", "missing"])

    def test_the_same_page_at_every_run(self):
        self.sweep()
        self.report(self.folder / "a")
        first = self.page.read_bytes()
        self.report(self.folder / "a")
        self.assertEqual(first, self.page.read_bytes())

    def test_hostile_names_stay_texts(self):
        hostile = "</script><script>alert(1)</script><!--<img src=x>&amp;"
        self.sweep()
        file = self.folder / "a" / "results.json"
        results = json.loads(file.read_text())
        results["name"] = hostile
        file.write_text(json.dumps(results))
        self.assertEqual(self.set_of(self.folder / "a")["name"], hostile)
        page = self.page.read_text()
        self.assertNotIn("alert(1)</script>", page)
        self.assertIn("<title>&lt;/script&gt;", page)

    def refused(self, path, *words, results=None):
        self.page.write_text("the page of before")
        done = self.report(results or path, expect=2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(f"rnicsim: {path}: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(self.page.read_text(), "the page of before")
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("report")],
                         ["report.html"])

    def test_bad_results_are_refused_in_a_line(self):
        folder = self.folder / "a"
        folder.mkdir()
        self.refused(folder, "no results.json")
        self.refused(self.folder / "none", "no such file")
        file = folder / "results.json"
        for text, words in (("", ["not JSON"]), ('{"schema": 1, "comm', ["not JSON", "byte 20"]), ("[]", ["no schema"]),
                            ('{"schema": 2, "command": "sweep"}', ["schema 2", "reads schema 1"]),
                            ('{"schema": "x"}', ["schema is not a whole number"]),
                            ('{"schema": 1, "command": "diff"}', ["command is not sweep"]),
                            ('{"schema": 1, "command": "sweep", "points": {}}', ["points is not a list"]),
                            ('{"schema": 1, "command": "sweep", "points": []}', ["points has none"]),
                            ('{"schema": 1, "command": "sweep", "points": [{}]}', ["points[0].number is missing"])):
            with self.subTest(text):
                file.write_text(text)
                self.refused(file, *words, results=folder)
        file.unlink()
        file.mkdir()
        self.refused(file, "not a file", results=folder)

    def test_bad_points_are_refused_in_a_line(self):
        self.sweep()
        folder = self.folder / "a"
        file, point = folder / "results.json", folder / "points" / "0-2.json"
        good, good_point = json.loads(file.read_text()), point.read_text()

        def with_point(change, *words):
            results = json.loads(json.dumps(good))
            change(results["points"][0])
            file.write_text(json.dumps(results))
            self.refused(file, *words, results=folder)

        with_point(lambda of: of["runs"][0].update(file="../../x"),
                   "points[0].runs[0].file is not a file of the folder")
        with_point(lambda of: of["runs"][0].update(status="odd"), "points[0].runs[0].status is none of")
        with_point(lambda of: of.update(runs=[]), "points[0].runs names no run")
        with_point(lambda of: of["values"].clear(), "points[0].values has none for nic.contexts.qpc.l1_entries")
        with_point(lambda of: of["metrics"]["flow[0].rate_per_s"].update(mean="x"), "mean is not a number")
        file.write_text(json.dumps(good))
        for text, word in (('{"schema": 7}', "schema 7"), ("{", "not JSON"), ('{"schema": 1}', "command is missing"),
                           (good_point.replace('"use": 0.9', '"use": null'), "utilization[0].use is missing")):
            with self.subTest(word):
                point.write_text(text)
                self.refused(point, word, results=folder)
        point.unlink()
        self.refused(point, "No such file", results=folder)
        self.refused(file, "results of a sweep: give the folder of the sweep", results=file)

    def test_a_page_that_cannot_be_written(self):
        self.sweep()
        done = self.report(self.folder / "a", output=self.folder / "none" / "x.html", expect=2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("none/x.html: ", done.stderr)
        done = self.report(self.folder / "a", output="/dev/full", expect=2)
        self.assertIn("/dev/full: cannot be written: No space left on device", done.stderr)

    def test_standard_output(self):
        self.sweep()
        done = self.report(self.folder / "a", output="-")
        self.assertTrue(done.stdout.startswith("<!DOCTYPE html>"))
        self.assertTrue(done.stdout.endswith("</html>\n"))

    def test_the_parts_of_the_page_are_missing(self):
        self.sweep()
        done = subprocess.run([RNICSIM, "report", self.folder / "a", "-o", self.page], capture_output=True, text=True,
                              timeout=600, env={**os.environ, "RNICSIM_DATA": str(self.folder)})
        self.assertEqual(done.returncode, 2)
        self.assertIn("report/", done.stderr)
        self.assertFalse(self.page.exists())


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
