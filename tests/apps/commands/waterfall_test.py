#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
run --waterfall and --perfetto: latencies that stock programs measure, split into stages.

usage: waterfall_test.py path/to/rnicsim
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

CLOCK_READ = 25_000  # ps: perftest's clock read is a part of the latency that it prints


class Waterfall(apps.TestCase):
    def follow(self, program, *options, **more):
        result, results = apps.run_with_results(program, "--waterfall", *options, **more)
        self.assert_succeeded(result)
        return result, results["waterfall"]

    def operation(self, waterfall, name, one_way=False):
        found = [entry for entry in waterfall["operations"]
                 if entry["operation"] == name and entry["one_way"] == one_way]
        self.assertEqual(len(found), 1, waterfall)
        return found[0]

    def assert_adds_up(self, waterfall):
        self.assertEqual((waterfall["failed"], waterfall["irregular"]), (0, 0))
        for entry in waterfall["operations"]:
            self.assertEqual(sum(stage["sum_ps"] for stage in entry["stages"].values()), entry["latency"]["sum_ps"])
            self.assertGreaterEqual(min(stage["least_ps"] for stage in entry["stages"].values()), 0)

    def assert_printed(self, result, entry, more=0):
        """The typical latency that perftest printed is the stages' sum: it counts nanoseconds, and prints hundredths
        of a microsecond."""
        typical = apps.Latency(*apps.perftest_rows(result.lines("h1"))[0]).typical
        stages = sum(stage["p50_ps"] for stage in entry["stages"].values())
        self.assertEqual(stages, entry["latency"]["p50_ps"])
        self.assertLess(abs(typical - (stages + more) / 1e6), 0.0051 + 0.001)


class Latencies(Waterfall):
    def test_write(self):
        result, waterfall = self.follow("ib_write_lat -n 200")
        self.assert_adds_up(waterfall)
        entry = self.operation(waterfall, "WRITE", one_way=True)
        self.assertEqual(entry["latency"]["p50_ps"], 924_862)  # docs/timing.md
        self.assert_printed(result, entry)
        self.assertEqual(self.operation(waterfall, "WRITE")["work_requests"], 400)
        self.assertIn("\n    WRITE, one way, 400 work requests\n", result.out)
        self.assertRegex(result.out, r"\n      in all +[\d.]+ +924\.862 +924\.862\n")

    def test_read(self):
        result, waterfall = self.follow("ib_read_lat -n 200")
        self.assert_adds_up(waterfall)
        entry = self.operation(waterfall, "READ")
        self.assertEqual(entry["latency"]["p50_ps"] + CLOCK_READ, 1_863_512)
        self.assert_printed(result, entry, CLOCK_READ)

    def test_send(self):
        result, waterfall = self.follow("ib_send_lat -n 200")
        self.assert_adds_up(waterfall)
        entry = self.operation(waterfall, "SEND", one_way=True)
        self.assertEqual(entry["latency"]["p50_ps"], 959_341)
        self.assert_printed(result, entry)

    def test_send_in_the_completion(self):
        result, waterfall = self.follow("ib_send_lat -n 200", env=dict(os.environ, RNICSIM_SCATTER_TO_CQE="1"))
        self.assert_adds_up(waterfall)
        entry = self.operation(waterfall, "SEND", one_way=True)
        # Without a write of 2 bytes, and with a copy by the CPU.
        self.assertEqual(entry["latency"]["p50_ps"], 959_341 - 1_702 + 10_000)
        self.assertEqual(entry["stages"]["remote dma"]["p50_ps"], 0)
        self.assert_printed(result, entry)

    def test_events_and_atomics(self):
        for program in ("ib_send_lat -e -n 50", "ib_atomic_lat -n 50", "ib_write_lat -n 20 -I 32"):
            with self.subTest(program=program):
                _, waterfall = self.follow(program)
                self.assert_adds_up(waterfall)
                self.assertEqual(waterfall["unfinished"], 0)


class Streams(Waterfall):
    def test_it_changes_nothing(self):
        for program in ("ib_write_bw -n 500 -s 4096", "ib_send_bw -n 300 -b -q 2 -s 64", "ib_read_bw -n 300 -l 4"):
            with self.subTest(program=program):
                plain = self.assert_succeeded(apps.run(program))
                followed, waterfall = self.follow(program)
                self.assert_adds_up(waterfall)
                self.assertEqual(followed.out.split("--- waterfall")[0], plain.out)

    def test_loss(self):
        _, waterfall = self.follow("ib_write_bw -n 500 -s 8192", "--fault", "drop=0.01")
        self.assert_adds_up(waterfall)
        entry = self.operation(waterfall, "WRITE")
        self.assertEqual((entry["work_requests"], waterfall["unfinished"]), (500, 0))
        self.assertGreater(entry["stages"]["retry"]["mean_ps"], 0)

    def test_real_time_has_none(self):
        result = apps.run("ib_write_lat", "--waterfall", "--time", "real")
        self.assertEqual(result.status, 2, result)
        self.assertIn("measure simulated time", result.err)


class Perfetto(Waterfall):
    def timeline(self, path, *options, program="ib_write_bw -n 100 -s 20000"):
        self.assert_succeeded(apps.run(program, "--perfetto", path, *options))
        return path.read_bytes()

    def test_a_file_that_opens(self):
        with apps.folder() as folder:
            text = self.timeline(folder / "a", "--perfetto-wqes", "40")
            self.assertEqual(text, self.timeline(folder / "b", "--perfetto-wqes", "40"))
            events = json.loads(text)["traceEvents"]
        slices = collections.defaultdict(list)
        flows = collections.defaultdict(list)
        names = {(event["pid"], event.get("tid")): event["args"]["name"] for event in events
                 if event["ph"] == "M" and event["name"].endswith("_name")}
        for event in events:
            self.assertIn(event["ph"], "MXstf")
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append(event)
            elif event["ph"] != "M":
                flows[event["id"]].append(event)
        self.assertEqual((names[1, None], names[2, None]), ("h0", "h1"))
        tracks = {re.sub(r" \d+$", "", names[track]) for track in slices}
        self.assertEqual(tracks, {"work requests", "CPU", "PCIe", "NIC tx", "wire", "NIC rx"})
        for track in slices.values():
            for earlier, later in zip(track, track[1:]):
                self.assertLessEqual(earlier["ts"] + earlier["dur"], later["ts"] + 1e-9)
        self.assertEqual(len(flows), 40)
        for events in flows.values():
            self.assertEqual([event["ph"] for event in events], ["s"] + ["t"] * (len(events) - 2) + ["f"])
            for event in events:
                begins = [piece["ts"] for piece in slices[event["pid"], event["tid"]]]
                self.assertIn(event["ts"], begins)

    def test_a_place_that_cannot_be_written(self):
        result = apps.run("ib_write_lat -n 5", "--perfetto", "/nowhere/file")
        self.assertEqual(result.status, 2, result)
        self.assertIn("No such file or directory", result.err)
        result = apps.run("ib_write_lat -n 5", "--perfetto-wqes", "5")
        self.assertEqual(result.status, 2, result)


if __name__ == "__main__":
    apps.main()
