#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnicsim trace, on golden traces and on a recorded run.

usage: trace_test.py path/to/rnicsim
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
import trace_file  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "traces" / "golden"


class Trace(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def trace(self, *arguments):
        result = apps.call("trace", *arguments)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return result.out

    def refused(self, *arguments):
        result = apps.call("trace", *arguments)
        self.assertEqual(result.status, 2, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        return result.err

    def test_show_filters(self):
        file = GOLDEN / "rc_read.trace"
        whole = self.trace("show", file).splitlines()
        packets = self.trace("show", file, "--kind", "packet*", "--host", "h0").splitlines()
        self.assertEqual(packets, [line for line in whole if "  h0  packet_" in line])
        self.assertEqual(len(packets), 4)
        self.assertEqual(self.trace("show", file, "--psn", "1193047").count("READ_RESPONSE_MIDDLE"), 2)
        times = [float(line.split()[0]) for line in whole]
        middle = times[len(times) // 2]
        late = self.trace("show", file, "--from", f"{middle}us").splitlines()
        early = self.trace("show", file, "--to", f"{middle}us").splitlines()
        self.assertEqual(late, [line for line, at in zip(whole, times) if at >= middle])
        self.assertEqual(early, [line for line, at in zip(whole, times) if at <= middle])
        self.assertEqual(self.trace("show", file, "--lines", "3").splitlines(), whole[:3])
        self.assertEqual(self.trace("show", file, "--qp", "0x41"), "")

    def test_show_columns(self):
        table = self.trace("show", GOLDEN / "rc_read.trace", "--kind", "wqe,cqe", "--columns", "kind,qp,index,bytes")
        self.assertEqual([line.split() for line in table.splitlines()],
                         [["kind", "qp", "index", "bytes"], ["wqe", "0x40", "0", "3000"], ["cqe", "0x40", "0", "-"]])

    def test_stat_counts_messages_without_completions_of_their_own(self):
        file = self.path / "run.trace"
        run = apps.call("run", "--record", file, "--", "ib_write_bw", "-Q", "10", "-n", "200", "-s", "4096")
        self.assertEqual(run.status, 0, run)
        text = self.trace("stat", file).split("of h1\n")[-1]
        self.assertIn("200 WQEs, 819200 bytes, 20 completions", text)
        gigabits, messages = map(float, re.search(r"([\d.]+) Gb/s, ([\d.e+]+) messages/s", text).groups())
        self.assertAlmostEqual(gigabits * 1e9 / 8 / 4096 / messages, 1, delta=0.01)

    def test_stat(self):
        text = self.trace("stat", GOLDEN / "sequence_error.trace")
        one = text.split("QP 0x40 of h0\n")[1]
        self.assertIn("1 WQEs, 4096 bytes, 1 completions, 0 receives, 0 errors", one)
        self.assertIn("7 sent, 3 of them again; 2 received, 1 NAKs, 0 CNPs", one)
        self.assertRegex(one, r"WQE to CQE   mean 4.5451\d* us, median 4.5451\d* us, .* \(1 WQEs\)")

    def test_stat_agrees_with_the_workloads_own_numbers(self):
        file, results = self.path / "a.trace", self.path / "a.json"
        self.assertEqual(apps.call("bench", "write-4k", "--record", file, "--json", results).status, 0)
        text = self.trace("stat", file, "--host", "h0")
        queue_pairs = [tuple(map(int, found)) for found in
                       re.findall(r"(\d+) WQEs, (\d+) bytes, (\d+) completions", text)]
        for wqes, size, completions in queue_pairs:
            self.assertEqual(size, 4096 * wqes)
            self.assertLessEqual(completions, wqes)
        # The trace includes the warm-up.
        flow = json.loads(results.read_text())["flows"][0]
        self.assertGreater(sum(completions for _, _, completions in queue_pairs), flow["operations"])

    def test_follow_a_lost_packet(self):
        text = self.trace("follow", GOLDEN / "sequence_error.trace", "--host", "h0", "--qp", "0x40", "--wqe", "0")
        kinds = [line.split()[5] for line in text.splitlines()]
        self.assertEqual(kinds[:2], ["doorbell", "wqe"])
        self.assertEqual(kinds[-1], "cqe")
        self.assertEqual(kinds.count("packet_sent"), 7 + 2)
        lost = [line for line in text.splitlines() if "psn 1193047 " in line and "WRITE_MIDDLE" in line]
        self.assertEqual([line.split()[4:6] for line in lost],
                         [["h0", "packet_sent"], ["h0", "packet_sent"], ["h1", "packet_received"]])

    def test_follow_the_second_of_two(self):
        text = self.trace("follow", GOLDEN / "rc_write.trace", "--host", "h0", "--qp", "64", "--wqe", "1")
        self.assertIn("bytes 8193", text)
        self.assertEqual(set(re.findall(r"psn (\d+)", text)), {"1193047", "1193048", "1193049"})

    def test_cut_and_merge_make_the_whole_again(self):
        file = GOLDEN / "rc_send.trace"
        parts = []
        for host in ("h0", "h1"):
            part = self.path / host
            self.trace("cut", file, "--host", host, "-o", part)
            self.assertEqual(self.trace("show", part), self.trace("show", file, "--host", host))
            parts.append(part)
        self.refused("merge", *parts, "-o", self.path / "both")  # fails: the header of each part names both hosts
        self.assertFalse((self.path / "both").exists())

    def test_export(self):
        file = GOLDEN / "rc_send.trace"
        events = [json.loads(line) for line in self.trace("export", file).splitlines()]
        self.assertEqual(len(events), len(self.trace("show", file).splitlines()))
        self.assertEqual([event["opcode"] for event in events if event["kind"] == "wqe" and event["queue"] == "send"],
                         ["SEND"] * 3)
        self.trace("export", file, "--format", "csv", "--kind", "cqe", "-o", self.path / "out.csv")
        rows = list(csv.DictReader(io.StringIO((self.path / "out.csv").read_text())))
        self.assertEqual(len(rows), sum(event["kind"] == "cqe" for event in events))
        self.assertEqual({row["syndrome"] for row in rows}, {"success"})

    def test_export_as_a_timeline(self):
        file, out = GOLDEN / "sequence_error.trace", self.path / "out.json"
        self.trace("export", file, "--format", "perfetto", "-o", out)
        lines = json.loads(out.read_text())["traceEvents"]
        events = [json.loads(line) for line in self.trace("export", file).splitlines()]
        by_phase = {phase: [line for line in lines if line["ph"] == phase] for phase in "MibeC"}
        names = {(line["name"], line["pid"], line.get("tid")): line["args"].get("name") for line in by_phase["M"]}
        self.assertEqual(names["process_name", 1, None], "h0")
        self.assertEqual(names["thread_name", 1, 2 + 0x40], "QP 0x40")
        # Each event, with its fields.
        self.assertEqual([line["args"] for line in by_phase["i"]],
                         [{name: event[name] for name in event if name not in ("host", "kind")} for event in events])
        # The request: from the WQE to the CQE.
        ends = [event["time_ps"] for event in events if event["host"] == "h0" and
                (event["kind"] == "wqe" and event["queue"] == "send" or event["kind"] == "cqe")]
        request = by_phase["b"] + by_phase["e"]
        self.assertEqual([line["name"] for line in request], ["WRITE 4096 B"] * 2)
        self.assertEqual([round(line["ts"] * 1e6) for line in request], ends)
        self.assertEqual([line["args"]["WQEs"] for line in by_phase["C"]], [1, 0])

    def test_a_timeline_is_whole_up_to_the_damage(self):
        whole, damaged = GOLDEN / "loopback.trace", self.path / "damaged"
        damaged.write_bytes(whole.read_bytes() + b"more")
        result = apps.call("trace", "export", damaged, "--format", "perfetto")
        self.assertEqual(result.status, 2)
        self.assertEqual(json.loads(result.out), json.loads(self.trace("export", whole, "--format", "perfetto")))

    def test_frames_are_not_made_up(self):
        out = self.path / "out"
        out.write_text("kept")
        told = self.refused("export", GOLDEN / "rc_send.trace", "--format", "pcapng", "-o", out)
        self.assertIn("a trace has no frames", told)
        self.assertIn("--pcap of the run", told)
        self.assertEqual(out.read_text(), "kept")

    def test_what_is_refused(self):
        file = GOLDEN / "rc_send.trace"
        for arguments, words in (([], "subcommand"), (["show", "no/such"], "No such file"),
                                 (["show", file, "--host", "h7"], "no host 'h7'"),
                                 (["show", file, "--kind", "packets"], "unknown kind of event 'packets'"),
                                 (["show", file, "--columns", "color"], "no event has a field 'color'"),
                                 (["show", file, "--qp", "many"], "--qp: 'many'"),
                                 (["follow", file, "--host", "h0", "--qp", "0x40", "--wqe", "99"], "executes no WQE"),
                                 (["cut", file, "-o", self.path / "no" / "such"], "No such file")):
            self.assertIn(words, self.refused(*arguments))

    def test_each_truncation_is_told(self):
        data = (GOLDEN / "loopback.trace").read_bytes()
        file = self.path / "cut"
        for size in range(0, len(data), 41):
            file.write_bytes(data[:size])
            self.assertIn(str(file), self.refused("stat", file))


    def test_an_index_that_hides_a_queue_pair(self):
        """A filter trusts the index for the blocks that it leaves out; whoever reads the whole trace does not."""
        file = self.path / "a.trace"
        recorded = apps.call("bench", "write-4k", "--set", "measure.duration=2us", "--set", "measure.warmup=0ns",
                             "--set", "flow[0].qps=1", "--record", file)
        self.assertEqual(recorded.status, 0, recorded)
        last = self.trace("show", file, "--kind", "qp_state", "--host", "h1", "--columns", "qp").splitlines()[-1]
        self.assertGreater(len(self.trace("show", file, "--host", "h1", "--qp", last).splitlines()), 3)
        file.write_bytes(trace_file.with_hidden_queue_pair(file.read_bytes()))
        self.assertEqual(self.trace("show", file, "--host", "h1", "--qp", last), "")
        told = "the index does not describe the queue pairs of "
        self.assertIn(told, self.refused("stat", file))
        self.assertIn(told, self.refused("cut", file, "--host", "h0", "-o", self.path / "b.trace"))
        self.assertIn(told + "block 0", self.refused("show", file, "--from", "1ns"))
        compared = apps.call("diff", file, file)
        self.assertEqual((compared.status, len(compared.err.splitlines())), (2, 1), compared)
        self.assertIn(told, compared.err)

    def test_what_is_before_the_damage_is_printed(self):
        data = (GOLDEN / "loopback.trace").read_bytes()
        file = self.path / "damaged"
        file.write_bytes(data + b"more")
        for tool, more in (("show", []), ("export", []), ("export", ["--format", "csv"])):
            result = apps.call("trace", tool, file, *more)
            self.assertEqual(result.status, 2)
            self.assertEqual(result.out, self.trace(tool, GOLDEN / "loopback.trace", *more))
            self.assertIn("there are bytes after the end mark", result.err)

    def test_output_that_takes_nothing(self):
        file = GOLDEN / "loopback.trace"
        for tool in ("show", "export"):
            command = [apps.rnicsim(), "trace", tool, file]
            with open("/dev/full", "w") as full:
                result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((result.returncode, result.stderr),
                             (2, "rnicsim: standard output: No space left on device\n"))

    def test_a_part_ends_where_it_was_cut(self):
        whole, part = GOLDEN / "loopback.trace", self.path / "part"
        self.trace("cut", whole, "--to", "2us", "-o", part)
        for file, arguments in ((part, []), (whole, ["--to", "2us"])):
            self.assertIn("ends at 2 us\n", self.trace("stat", file, *arguments))
        self.trace("cut", whole, "--to", "1s", "-o", part)
        self.assertEqual(self.trace("stat", part), self.trace("stat", whole))


if __name__ == "__main__":
    apps.main()
