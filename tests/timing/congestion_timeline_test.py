#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Congestion in the outputs of a run: tracks of a timeline, histograms of queues and pauses, and pauses by priority.

usage: congestion_timeline_test.py RNICSIM
"""

import collections
import json
import pathlib
import sys
import tempfile
import unittest

import jsonschema

import fabric_bench
from fabric_bench import bench, flow, incast

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/results.schema.json").read_text())
PFC = {"switch.pfc.priorities": 1, "nic.port.pfc": 1}
DCQCN = {"nic.congestion.control": "dcqcn", "nic.congestion.ecn": "forced", "switch.ecn.priorities": 1,
         "switch.ecn.kmin": "100 KB", "switch.ecn.kmax": "400 KB", "switch.ecn.pmax": 0.2,
         "nic.congestion.np.moderation": "qp"}
HISTOGRAMS = {"switch.histograms": "true"}
DURATION = "2 ms"


def without_costs(results):
    """Results that are the same in every run, with and without histograms."""
    results = json.loads(json.dumps(results))
    del results["simulator"], results["parameters"]["switch.histograms"]
    for box in results["switches"].values():
        box.pop("histograms", None)
        for table in box.values():
            for path in [path for path in table if path.endswith(("mean_bytes", "p50_bytes", "p99_bytes"))]:
                del table[path]
    return results


class Timeline(unittest.TestCase):
    def run_with_timeline(self, sets, topology="star:3", flows=None, options=()):
        """Results, and the tracks: (process, name) -> list of (time in us, value)."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "timeline.json"
            results = bench(flows or incast(2), sets, topology, "0 us", DURATION, ("--perfetto", path, *options))
            self.size = path.stat().st_size
            events = json.loads(path.read_text())["traceEvents"]
        processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        tracks = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "C":
                (value,) = event["args"].values()
                tracks[processes[event["pid"]], event["name"]].append((event["ts"], value))
        for samples in tracks.values():
            self.assertGreater(len(samples), 1)
            for (earlier, before), (later, after) in zip(samples, samples[1:]):
                self.assertLess(earlier, later)
                self.assertNotEqual(before, after)
        return results, dict(tracks)

    def track(self, tracks, process, ending):
        (found,) = [samples for (owner, name), samples in tracks.items() if owner == process and name.endswith(ending)]
        return found

    def test_rates_fall_behind_cnps_and_rise_again(self):
        results, tracks = self.run_with_timeline({**PFC, **DCQCN})
        for host in ("h1", "h2"):
            rate, target, alpha, cnps = (self.track(tracks, host, ending) for ending in (" rate", " target", " alpha",
                                                                                         " CNPs"))
            self.assertEqual(rate[0][1], 100)
            falls = [after[0] for before, after in zip(rate, rate[1:]) if after[1] < before[1]]
            self.assertGreaterEqual(falls[0], cnps[1][0])
            self.assertLess(falls[0], cnps[1][0] + 10)    # us: rate_reduce_monitor_period, and the wait for a packet
            lowest = min(range(len(rate)), key=lambda i: rate[i][1])
            self.assertLess(rate[lowest][1], 60)
            self.assertGreater(max(value for _, value in rate[lowest:]), 1.1 * rate[lowest][1])
            self.assertTrue(all(0 <= value <= 1 for _, value in alpha))
            self.assertTrue(all(0 < value <= 100 for _, value in rate + target))
            # The run continues after the measured time, until all posted work is done.
            self.assertGreaterEqual(cnps[-1][1], results["hosts"][host]["counters"]["nic.engine.rp_cnp_handled"])
        self.assertFalse([name for owner, name in tracks if owner == "h0"])

    def test_queues_and_pauses(self):
        results, tracks = self.run_with_timeline(PFC)
        # Without congestion control there are no QP tracks.
        self.assertFalse([name for _, name in tracks if name.startswith("qp")])
        queue = self.track(tracks, "s0", "port.h0.p0 queue")
        self.assertEqual(queue[0], (0, 0))
        self.assertEqual(max(value for _, value in queue),
                         results["switches"]["s0"]["counters"]["port.h0.p0.tx_most_bytes"])
        for host in ("h1", "h2"):
            paused = self.track(tracks, host, "port.p0 paused")
            self.assertEqual({value for _, value in paused}, {0, 1})
            time = sum(later - earlier for (earlier, value), (later, _) in zip(paused, paused[1:]) if value == 1)
            end = float(DURATION.split()[0]) * 1000
            counted = results["hosts"][host]["counters"]["nic.port.tx_paused"] / 1e6
            self.assertGreater(counted, 0.3 * end)
            self.assertGreater(time, 0.9 * counted)

    def test_a_switch_that_is_paused(self):
        flows = [flow(f"h{i}", "h0") for i in (1, 2, 3)]
        results, tracks = self.run_with_timeline({**PFC, **HISTOGRAMS}, "leaf-spine:2,1,2", flows)
        self.assertEqual({value for _, value in self.track(tracks, "spine0", "port.leaf0.p0 paused")}, {0, 1})
        pauses = results["switches"]["spine0"]["histograms"]["port.leaf0.p0"]["tx_pauses"]
        self.assertGreater(pauses["count"], 10)
        self.assertEqual(sum(part["count"] for part in pauses["bins"]), pauses["count"])
        least, most = (sum(part["count"] * part[edge] for part in pauses["bins"]) for edge in ("from_us", "below_us"))
        time = results["switches"]["spine0"]["counters"]["port.leaf0.p0.tx_paused"] / 1e6
        # Longest pause at either edge of the measured time, in us.
        longest = max(part["below_us"] for part in pauses["bins"])
        self.assertTrue(least - longest <= time <= most + longest, (least, time, most))

    def test_changes_nothing(self):
        sets = {**PFC, **DCQCN}
        plain = bench(incast(2), sets, "star:3", "0 us", DURATION)
        followed, tracks = self.run_with_timeline({**sets, **HISTOGRAMS})
        self.assertTrue(tracks)
        self.assertIn("histograms", followed["switches"]["s0"])
        self.assertNotIn("histograms", plain["switches"]["s0"])
        self.assertEqual(without_costs(plain), without_costs(followed))

    def test_its_size_has_a_bound(self):
        sets = {**PFC, **DCQCN}
        _, most = self.run_with_timeline(sets)
        _, some = self.run_with_timeline(sets, options=("--perfetto-samples", "500"))
        self.assertEqual(set(most), set(some))
        self.assertLessEqual(sum(map(len, some.values())), 500)
        self.assertGreater(sum(map(len, most.values())), 5000)
        self.assertLess(self.size, 3e6)
        for name, samples in some.items():
            self.assertEqual(max(value for _, value in samples), max(value for _, value in most[name]), name)
        _, none = self.run_with_timeline(sets, options=("--perfetto-samples", "0"))
        self.assertFalse(none)


class Histograms(unittest.TestCase):
    def test_shares_of_time(self):
        results = bench(incast(2), {**PFC, **DCQCN, **HISTOGRAMS}, "star:3", "1 ms", DURATION)
        jsonschema.Draft202012Validator(SCHEMA).validate(results)
        box = results["switches"]["s0"]
        self.assertLess({"port.h0.p0", "port.h1.p6", "port.h2.p6"}, set(box["histograms"]))   # data, and CNPs
        for name, histograms in box["histograms"].items():
            queue = histograms["tx_queue"]
            self.assertAlmostEqual(sum(part["share"] for part in queue["bins"]), 1, places=12)
            for earlier, later in zip(queue["bins"], queue["bins"][1:]):
                self.assertLessEqual(earlier["below_bytes"], later["from_bytes"])
            least, most = (sum(part["share"] * part[edge] for part in queue["bins"]) for edge in ("from_bytes",
                                                                                                 "below_bytes"))
            self.assertTrue(least <= queue["mean_bytes"] <= most, name)
            self.assertLessEqual(queue["p50_bytes"], queue["p99_bytes"])
            for kind in ("mean", "p50", "p99"):
                self.assertEqual(queue[f"{kind}_bytes"], box["derived"][f"{name}.tx_{kind}_bytes"])
        queue = box["histograms"]["port.h0.p0"]["tx_queue"]
        self.assertLessEqual(queue["p99_bytes"], box["counters"]["port.h0.p0.tx_most_bytes"])
        # Mean number of frames: the waiting frames, and the frame in transmission.
        frames = box["derived"]["port.h0.p0.tx_queue"] + box["derived"]["port.h0.p0.tx_busy_share"]
        self.assertLess(abs(queue["mean_bytes"] / (frames * 4154) - 1), 0.1)


class PausesByPriority(unittest.TestCase):
    def test_names_of_mlx5(self):
        map_of = {"switch.dscp_priority": "26:3", "nic.port.dscp_priority": "26:3"}
        results = bench(incast(2, dscp=26), {"switch.pfc.priorities": 8, "nic.port.pfc": 8, **map_of}, "star:3",
                        "0 us", DURATION)
        for host in ("h1", "h2"):
            counters = results["hosts"][host]["counters"]
            self.assertGreater(counters["nic.port.rx_prio3_pause"], 10)
            self.assertEqual(counters["nic.port.rx_prio3_pause"], counters["nic.port.rx_pause"])
            self.assertLessEqual(abs(counters["nic.port.rx_prio3_pause_duration"] -
                                     counters["nic.port.tx_paused"] / 1e6), 1)
            self.assertEqual(sum(counters[f"nic.port.{way}_prio{i}_pause"] for way in ("rx", "tx") for i in range(8)),
                             counters["nic.port.rx_pause"])

    def test_sent_by_a_nic(self):
        results = bench(incast(1), {"nic.receive_buffer.pfc": 1, "switch.pfc.priorities": 1, "nic.port.pfc": 1,
                                    "nic.pcie.generation": 2}, "star:2", "0 us", DURATION)
        counters = results["hosts"]["h0"]["counters"]
        self.assertGreater(counters["nic.port.tx_prio0_pause"], 0)
        self.assertEqual(counters["nic.port.tx_prio0_pause"], counters["nic.receive_buffer.tx_pause"])


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
