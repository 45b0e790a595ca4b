#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Results of --json: they validate against the published schema, and go to the requested place.

usage: results_test.py RNICSIM
"""

import json
import pathlib
import sys

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import apps  # noqa: E402  # pylint: disable=wrong-import-position

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[3] / "docs" / "results.schema.json").read_text())
QUICK = ("--set", "measure.warmup=0 s", "--set", "measure.duration=20 us")


class Results(apps.TestCase):
    def validated(self, *arguments, command):
        """Results that the command writes to standard output with `--json -`."""
        result = apps.call(*arguments, "--json", "-")
        self.assertEqual(result.status, 0, result)
        results = json.loads(result.out)
        jsonschema.Draft202012Validator(SCHEMA).validate(results)
        self.assertEqual(results["command"], command)
        return results, result

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_every_property_has_a_description(self):
        def missing(schema, path):
            for name, value in schema.get("properties", {}).items():
                if not value.get("description"):
                    yield f"{path}/{name}"
                yield from missing(value, f"{path}/{name}")
            if "items" in schema:
                yield from missing(schema["items"], path)

        parts = {"": SCHEMA, **SCHEMA["$defs"]}
        self.assertEqual([each for name, part in parts.items() for each in missing(part, name)], [])

    def test_run(self):
        results, result = self.validated("run", "--topology", "star:2", "--fault", "drop=1e-6", "--waterfall",
                                         "--on", "h0", "ib_write_bw -n 100", "--on", "h1", "ib_write_bw -n 100 h0",
                                         command="run")
        self.assertEqual(set(results["switches"]), {"s0"})
        self.assertIn("BW average", result.err)  # text for people goes to standard error

    def test_bench(self):
        results, result = self.validated("bench", "write-4k", *QUICK, command="bench")
        self.assertIn("goodput", result.err)
        busy = [use["use"] for use in results["utilization"]]
        self.assertEqual(busy, sorted(busy, reverse=True))

    def test_sweep(self):
        with apps.folder() as folder:
            result = apps.call("bench", "write-4k", *QUICK, "--vary", "flow.qps=1,0,2..8*2", "--out", folder / "out",
                               "--json", "-")
            results = json.loads(result.out)
            jsonschema.Draft202012Validator(SCHEMA).validate(results)
            self.assertEqual(results, apps.read_json(folder / "out" / "results.json"))

    def test_replay(self):
        capture = pathlib.Path(__file__).resolve().parents[3] / "traces" / "wire" / "rxe-two-guests.pcap"
        self.validated("replay", "--wire", capture, "--as", "10.0.0.1", command="replay")

    def test_replay_of_a_recording(self):
        with apps.folder() as folder:
            trace = folder / "run.trace"
            recorded = apps.call("bench", "write-4k", *QUICK, "--record", trace, "--record-software")
            self.assertEqual(recorded.status, 0, recorded)
            results, result = self.validated("replay", trace, command="replay")
            self.assertEqual(results["end_ps"], results["recorded_end_ps"])
            self.assertIn("equal: ", result.err)
            result = apps.call("replay", trace, "--vary", "link.latency=90 ns,180 ns", "--out", folder / "out",
                               "--json", "-")
            jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(result.out))

    def test_a_file_is_whole_or_not_there(self):
        with apps.folder() as folder:
            path = folder / "r.json"
            path.write_text("kept")
            result = apps.call("bench", "write-4k", *QUICK, "--set", "measure.duration=100 s", "--limit", "1ms",
                               "--json", path)
            self.assertEqual(result.status, 124, result)
            self.assertEqual(path.read_text(), "kept")
            self.assertEqual([entry.name for entry in folder.iterdir()], ["r.json"])

    def test_what_cannot_be_written(self):
        for path in ("/dev/full", "/no/such/folder/r.json"):
            result = apps.call("bench", "write-4k", *QUICK, "--json", path)
            self.assertEqual(result.status, 2, result)
            self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_what_limits(self):
        def limit(*options):
            return self.validated("bench", "write-4k", *options, command="bench")[0]["limit"]

        self.assertEqual((limit()["host"], limit()["resource"]), ("h0", "nic.port.tx"))
        slow_bus = limit("--set", "nic.pcie.lanes=4")
        self.assertEqual(slow_bus["resource"], "nic.dma.to_device")
        self.assertEqual(limit("--set", "flow.qps=1", "--set", "flow.window=1")["resource"], "latency")
        self.assertEqual(limit("--set", "flow.pace=\"1 Gb/s\"")["resource"], "pace")
        # Every translation misses, and holds a slot while the full link delays the fetch.
        no_bus = limit("--set", "nic.pcie.lanes=1", "--set", "nic.pcie.generation=1", "--set",
                       "nic.contexts.mtt.l1_entries=0")
        self.assertEqual(no_bus["resource"], "nic.dma.to_device")
        few_slots = limit("--set", "flow.qps=4096", "--set", "nic.contexts.qpc.l1_entries=512", "--set",
                          "nic.contexts.qpc.miss_slots=1", "--set", "flow.size=64 B")
        self.assertIn("qpc.slots", few_slots["resource"])


if __name__ == "__main__":
    apps.main()
