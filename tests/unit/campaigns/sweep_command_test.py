#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim sweep` as a user runs it: its folder, continued sweeps, damaged files.

usage: sweep_command_test.py RNICSIM [TESTS]
"""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RNICSIM = ""
QUICK = ("--set", "measure.warmup=0 s", "--set", "measure.duration=20 us")
SWEEP = """schema = 1
workload = "write-4k"
seeds = 2
metrics = ["h0.nic.contexts.qpc.hit_rate"]
[set]
measure.warmup = "0 s"
measure.duration = "20 us"
[vary]
flow.qps = [1, 2]
flow.window = "1..4*2"
"""


def call(*arguments, expect=0, **more):
    done = subprocess.run([RNICSIM, *map(str, arguments)], capture_output=True, text=True, timeout=600, **more)
    assert done.returncode == expect, f"status {done.returncode}: {done.stdout}{done.stderr}"
    return done


class Sweep(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.out = self.folder / "out"

    def file(self, text=SWEEP):
        path = self.folder / "own.toml"
        path.write_text(text)
        return path

    def results(self):
        return json.loads((self.out / "results.json").read_text())

    def points(self):
        return {path.name: path.read_text() for path in (self.out / "points").iterdir()}

    def recording(self):
        trace = self.folder / "own.trace"
        call("bench", "write-4k", *QUICK, "--record", trace, "--record-software")
        return trace

    def test_a_recording(self):
        """A sweep file and `replay --vary` give the same sweep. A point without a change equals the recorded run."""
        trace = self.recording()
        file = self.file('schema = 1\nrecording = "own.trace"\n[vary]\nlink.latency = ["90 ns", "5 us"]\n')
        call("sweep", file, "--out", self.out)
        results = self.results()
        self.assertEqual(results["base"]["recording"], str(trace))
        points = [point["metrics"] for point in results["points"]]
        duration = [point["duration_ps"]["mean"] for point in points]
        rate = [point["flow[0].rate_per_s"]["mean"] for point in points]
        latency = [point["flow[0].latency_ps.p50"]["mean"] for point in points]
        run = json.loads((self.out / results["points"][0]["runs"][0]["file"]).read_text())
        self.assertEqual((run["command"], run["pace"]), ("replay", "as possible"))
        self.assertEqual(run["end_ps"], run["recorded_end_ps"])
        self.assertEqual(run["flows"][0]["parameters"]["from"], "h0")
        self.assertGreater(duration[1], duration[0])
        self.assertLess(rate[1], rate[0])
        self.assertGreater(min(latency), 0)
        again = self.folder / "again"
        call("replay", trace, "--vary", "link.latency=90 ns,5 us", "--out", again)
        for name, text in self.points().items():
            self.assertEqual((again / "points" / name).read_text(), text)
        page = self.folder / "page.html"
        call("report", self.out, "-o", page)
        self.assertIn("duration_ps", page.read_text())

    def test_the_results_of_one_replay(self):
        trace, file = self.recording(), self.folder / "results.json"
        call("replay", trace, "--json", file)
        results = json.loads(file.read_text())
        self.assertEqual((results["command"], results["pace"], results["nic"]), ("replay", "recorded", "recorded"))
        self.assertEqual(results["recording"]["file"], "own.trace")
        call("report", file, "-o", self.folder / "page.html")

    def test_what_a_recording_cannot_be(self):
        def refused(text, why):
            done = call("sweep", self.file("schema = 1\n" + text), "--out", self.out, expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(why, done.stderr)

        self.recording()
        of = 'recording = "own.trace"\n'
        refused(of + "[vary]\nflow.qps = [1, 2]\n", "flow.qps: the recording already sets this value")
        refused(of + 'topology = "star:4"\n', "topology: the recording already sets this value")
        refused(of + 'workload = "write-4k"\n', "cannot be combined with workload")
        refused(of + "waterfall = true\n", "waterfall: the replay of a recording has no waterfall")
        refused(of + "[vary]\nnic.no_such_key = [1, 2]\n", "nic.no_such_key")
        refused('recording = "missing.trace"\n', "missing.trace")
        refused('recording = "own.toml"\n', "not a trace")
        self.assertFalse(self.out.exists())

    def test_what_it_leaves(self):
        done = call("sweep", self.file(), "--out", self.out)
        self.assertIn("own: 12 of 12 runs done, 0 failed, 6 points", done.stdout)
        results = self.results()
        self.assertEqual([axis["key"] for axis in results["axes"]], ["flow.qps", "flow.window"])
        self.assertEqual(len(results["points"]), 6)
        self.assertEqual(results["points"][4]["values"], {"flow.qps": "2", "flow.window": "2"})
        point = results["points"][4]
        runs = [json.loads((self.out / run["file"]).read_text()) for run in point["runs"]]
        self.assertEqual([run["seed"] for run in runs], [1, 2])
        self.assertEqual(runs[0]["flows"][0]["parameters"]["window"], 2)
        rate = point["metrics"]["flow[0].rate_per_s"]
        self.assertAlmostEqual(rate["mean"], sum(run["flows"][0]["rate_per_s"] for run in runs) / 2)
        self.assertEqual((rate["n"], rate["unit"]), (2, "op/s"))
        self.assertIn("h0.nic.contexts.qpc.hit_rate", point["metrics"])
        self.assertIn("text", point["limit"])
        with open(self.out / "results.csv") as table:
            rows = list(csv.DictReader(table))
        self.assertEqual(len(rows), 12)
        self.assertEqual((rows[9]["flow.qps"], rows[9]["flow.window"], rows[9]["seed"]), ("2", "2", "2"))
        self.assertAlmostEqual(float(rows[9]["flow[0].rate_per_s"]), runs[1]["flows"][0]["rate_per_s"], delta=1)

    def test_seeds_that_change_nothing_are_no_confidence(self):
        done = call("bench", "write-4k", "--set", "measure.warmup=5 us", "--set", "measure.duration=100 us", "--vary",
                    "flow.qps=1,2", "--seeds", 3, "--out", self.out)
        self.assertIn("the seeds have no effect at 2 of 2 points", done.stdout)
        point = self.results()["points"][0]
        self.assertIs(point["equal_runs"], True)
        run = json.loads((self.out / "points" / "0-1.json").read_text())
        rate, own = point["metrics"]["flow[0].rate_per_s"], run["flows"][0]["rate_interval"]
        self.assertEqual((rate["low"], rate["high"], rate["by"]), (own["low"], own["high"], "batches"))
        self.assertLess(rate["low"], rate["mean"])
        latency = point["metrics"]["flow[0].latency_ps.mean"]
        self.assertEqual((latency["low"], latency["high"], latency["n"]), (None, None, 3))

    def test_the_table_has_intervals_and_limits(self):
        call("bench", "write-4k", "--set", "measure.warmup=5 us", "--set", "measure.duration=100 us", "--vary",
             "flow.qps=1", "--out", self.out)
        run = json.loads((self.out / "points" / "0-1.json").read_text())
        with open(self.out / "results.csv") as table:
            row = next(csv.DictReader(table))
        for side in ("low", "high"):
            self.assertAlmostEqual(float(row[f"flow[0].rate_interval.{side}"]), run["flows"][0]["rate_interval"][side],
                                   delta=1)
        self.assertEqual(row["limited by"], run["limit"]["text"])
        self.assertEqual(row["steady"], {True: "true", False: "false", None: ""}[run["steady"]])

    def test_seeds_that_differ_give_an_interval(self):
        # Half of the pages fit in the cache.
        call("bench", "write-4k", "--set", "measure.warmup=20 us", "--set", "measure.duration=100 us", "--set",
             "flow.address=random", "--set", "flow.mr_size=1MiB", "--set", "nic.contexts.mtt.l0_entries=8", "--set",
             "nic.contexts.mtt.l1_entries=128", "--vary", "flow.qps=4", "--seeds", 3, "--out", self.out)
        point = self.results()["points"][0]
        self.assertNotIn("equal_runs", point)
        rate = point["metrics"]["flow[0].latency_ps.mean"]
        self.assertEqual(rate["by"], "seeds")
        self.assertLess(rate["low"], rate["mean"])

    def test_no_operation_has_no_latency(self):
        call("bench", "write-4k", "--set", "measure.warmup=0 s", "--set", "measure.duration=1 ns", "--vary",
             "flow.qps=1,2", "--out", self.out)
        self.assertEqual(list(self.results()["points"][0]["metrics"]),
                         ["flow[0].rate_per_s", "flow[0].goodput_bits_per_s"])
        latency = json.loads((self.out / "points" / "0-1.json").read_text())["flows"][0]["latency_ps"]
        self.assertEqual((latency["samples"], latency["min"], latency["mean"]), (0, None, None))

    def test_jobs_change_nothing(self):
        path = self.file()
        call("sweep", path, "--out", self.out, "--jobs", 1)
        alone = self.points()
        self.out = self.folder / "again"
        call("sweep", path, "--out", self.out, "--jobs", 3)
        self.assertEqual(self.points(), alone)

    def test_of_bench(self):
        call("bench", "write-4k", *QUICK, "--vary", "flow.qps=1,2", "--seeds", 2, "--out", self.out)
        self.assertEqual(len(self.points()), 4)
        self.assertEqual(self.results()["invocation"][1:3], ["bench", "write-4k"])
        for refused in (("--pcap", "x"), ("--seed", "3"), ("--limit", "1s")):
            call("bench", "write-4k", "--vary", "flow.qps=1,2", *refused, expect=2)
        call("bench", "write-4k", "--seeds", 2, expect=2)

    def test_goes_on_where_it_was_killed(self):
        path = self.file(SWEEP.replace("20 us", "300 us").replace("seeds = 2", "seeds = 12"))
        killed = subprocess.Popen([RNICSIM, "sweep", path, "--out", self.out, "--jobs", "1"], stdout=subprocess.DEVNULL)
        points = self.out / "points"
        while not (points.exists() and len(list(points.glob("*.json"))) >= 3) and killed.poll() is None:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        done = self.points()
        self.assertTrue(3 <= len(done) < 72, len(done))
        times = {name: (points / name).stat().st_mtime_ns for name in done}
        self.assertFalse((self.out / "results.json").exists())
        call("sweep", "--out", self.out)
        after = self.points()
        self.assertEqual(len([name for name in after if name.endswith(".json")]), 72)
        for name in times:
            if name.endswith(".json"):
                self.assertEqual((points / name).stat().st_mtime_ns, times[name], name)

    def test_a_broken_point(self):
        done = call("bench", "write-4k", *QUICK, "--vary", "flow.qps=1,0,2", "--out", self.out, expect=1)
        self.assertIn("flow.qps=0 seed=1: ", done.stderr)
        self.assertIn("2 of 3 runs done, 1 failed", done.stdout)
        point = self.results()["points"][1]
        self.assertEqual(point["runs"][0]["status"], "failed")
        self.assertIn("qps", point["runs"][0]["error"])
        self.assertEqual(point["metrics"], {})

    def test_metrics_that_there_are_not(self):
        metrics = '"h0.nic.contexts.qpc.hit_rate", "h0.nic.no_such"'
        path = self.file(SWEEP.replace('"h0.nic.contexts.qpc.hit_rate"', metrics))
        self.assertRegex(call("sweep", path, "--out", self.out).stderr, r"^rnicsim: metrics: .*'h0\.nic\.no_such'.*\n$")

    def test_nothing_can_be_run(self):
        for axis in ("nic.no.such_key=1,2", "flow.qps", "flow.qps=4..1", "flow.no_such_key=1,2", "workload=none,no"):
            done = call("bench", "write-4k", "--vary", axis, "--out", self.out, expect=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertFalse(self.out.exists())

    def test_folders(self):
        call("sweep", self.file(), "--out", self.out)
        other = call("sweep", self.file(SWEEP.replace("[1, 2]", "[1, 3]")), "--out", self.out, expect=2)
        self.assertIn("another sweep", other.stderr)
        plan = self.out / "plan.json"
        kept = plan.read_text()
        plan.write_text(kept.replace('"schema": 1', '"schema": 7'))
        self.assertIn("another version", call("sweep", "--out", self.out, expect=2).stderr)
        plan.write_text(kept[:200])
        self.assertIn("plan.json: not JSON", call("sweep", "--out", self.out, expect=2).stderr)
        plan.write_text(kept)
        (self.out / "points" / "2-1.json").write_text("{")
        self.assertIn("2-1.json: not JSON", call("sweep", "--out", self.out, expect=2).stderr)
        call("sweep", "--out", self.folder, expect=2)
        call("sweep", expect=2)

    def test_files_that_change(self):
        nic = self.folder / "nic.toml"
        nic.write_text('base = "own-base.toml"\n')
        (self.folder / "own-base.toml").write_text('base = "cx5-100g"\n')
        path = self.file(SWEEP.replace("[set]", f'nic = "{nic}"\n[set]', 1))
        call("sweep", path, "--out", self.out)
        (self.out / "points" / "2-1.json").unlink()
        (self.folder / "own-base.toml").write_text('base = "cx5-100g"\nnic.tx.latency = "171 ns"\n')
        for again in (("sweep", path, "--out", self.out), ("sweep", "--out", self.out)):
            done = call(*again, expect=2)
            self.assertIn("own-base.toml has changed since this sweep began", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        (self.out / "results.json").unlink()
        call("report", self.out, "-o", self.folder / "page.html")  # report only reads the folder
        (self.folder / "own-base.toml").write_text('base = "cx5-100g"\n')
        call("sweep", "--out", self.out)

    def test_no_results_of_a_run(self):
        call("sweep", self.file(), "--out", self.out)
        point = self.out / "points" / "2-1.json"
        mine = json.loads(point.read_text())
        for text in ("[]", "null", "{}", json.dumps({**mine, "schema": 2}), json.dumps({**mine, "flows": 1}),
                     json.dumps({**mine, "flows": [{}]})):
            point.write_text(text)
            done = call("sweep", "--out", self.out, expect=2)
            self.assertRegex(done.stderr, r"^rnicsim: .*2-1\.json: [^\n]*\n$")
            self.assertNotIn("exception", done.stderr)

    def test_values_that_look_like_formulas(self):
        """The table has quotes around such texts, and none around numbers."""
        names = ["=mine.toml", "+mine.toml", "-mine.toml", "@mine.toml"]
        for name in names:
            (self.folder / name).write_text('base = "cx5-100g"\n')
        path = self.file(f'schema = 1\nworkload = "write-4k"\n[set]\nmeasure.warmup = "0 s"\n'
                         f'measure.duration = "5 us"\n[vary]\nnic = {["cx5-100g", *names]}\n')
        call("sweep", path, "--out", self.out, cwd=self.folder)
        lines = (self.out / "results.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[1] for line in lines], ["nic", "cx5-100g"] + [f'"{name}"' for name in names])
        # The last column, the limit of the run, contains a comma.
        self.assertNotIn('"', "".join(line.split(",", 2)[2].split(',"h0')[0] for line in lines))

    def test_a_point_changed_by_hand(self):
        call("sweep", self.file(), "--out", self.out)
        before = (self.out / "results.json").read_text()
        point = self.out / "points" / "2-1.json"
        mine = point.read_text()
        rate = json.loads(mine)["flows"][0]["rate_per_s"]
        for text in (mine.replace(json.dumps(rate), json.dumps(rate * 2), 1), mine.replace('"crc32": "', '"crc32": "0'),
                     mine[:mine.rindex(',\n "crc32"')] + "\n}\n", mine + "\n"):
            self.assertNotEqual(text, mine)
            point.write_text(text)
            done = call("sweep", "--out", self.out, expect=2)
            self.assertRegex(done.stderr, r"^rnicsim: .*2-1\.json: the file was changed after its run [^\n]*\n$")
        point.unlink()
        call("sweep", "--out", self.out)
        self.assertEqual(point.read_text(), mine)
        self.assertEqual((self.out / "results.json").read_text(), before)

    def test_what_cannot_be_written(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        done = call("sweep", self.file(), "--out", blocked / "out", expect=2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_shares(self):
        path = self.file()
        for rank in range(3):
            done = call("sweep", path, "--out", self.out, "--share", f"{rank}/3")
            self.assertEqual((self.out / "results.json").exists(), rank == 2, done)
        self.assertEqual(len(self.points()), 12)
        call("sweep", path, "--out", self.out, "--share", "3/3", expect=2)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main(verbosity=2)
