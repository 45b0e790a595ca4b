#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
run --record-calls and --record-tlps: the calls of the verbs library and the TLPs in a trace.

usage: recorded_parts_test.py path/to/rnicsim
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

CALLS = {"command_bytes", "posted", "polled"}
MESSAGE_BYTES = 512  # and the length of ibv_rc_pingpong's region


def big_endian(word):
    """The value of a big-endian field of 8 bytes in a word of a trace."""
    return int.from_bytes(word.to_bytes(8, "little"), "big")


class RecordedParts(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def events(self, trace, *filters):
        result = apps.call("trace", "export", trace, *filters)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return [json.loads(line) for line in result.out.splitlines()]

    def record(self, name, *options, command=("ibv_rc_pingpong", "-g", "1", "-n", "20", "-s", str(MESSAGE_BYTES))):
        trace = self.path / name
        self.assert_succeeded(apps.call("run", "--record", trace, *options, "--", *command))
        return trace

    def test_other_events_are_the_same(self):
        plain = self.events(self.record("plain.trace"))
        whole = self.events(self.record("whole.trace", "--record-calls", "--record-tlps"))
        self.assertEqual([event for event in whole if event["kind"] not in CALLS | {"tlp"}], plain)
        self.assertEqual({event["kind"] for event in whole} - {event["kind"] for event in plain}, CALLS | {"tlp"})

    def test_posts_and_polls(self):
        trace = self.record("a.trace", "--record-calls")
        counts = collections.Counter()
        receives = collections.Counter()  # posted and not used
        for event in self.events(trace, "--kind", "posted,polled,wqe,cqe"):
            host = event["host"]
            if event["kind"] == "posted":
                of_queue = counts if event["queue"] == "send" else receives
                of_queue[host, "wqes", event["qp"]] += event["wqes"]
                if event["queue"] == "send":
                    self.assertLessEqual(event["called"], event["time_ps"] + 1_000_000)
            elif event["kind"] == "polled":
                counts[host, "cqes", event["cq"]] += event["cqes"]
            elif event["kind"] == "cqe":
                counts[host, "cqes", event["cq"]] -= 1
            else:
                of_queue = counts if event["queue"] == "send" else receives
                of_queue[host, "wqes", event["qp"]] -= 1
                self.assertGreaterEqual(receives[host, "wqes", event["qp"]], 0, "a receive that was not posted")
        self.assertEqual(len(counts), 4, counts)
        self.assertEqual(set(counts.values()), {0}, counts)
        self.assertEqual(len(receives), 2, receives)

    def test_posts_to_a_shared_receive_queue(self):
        trace = self.record("a.trace", "--record-calls",
                            command=["ibv_srq_pingpong", "-g", "1", "-n", "40", "-q", "4", "-r", "60"])
        posted = [event for event in self.events(trace, "--kind", "posted", "--host", "h0")
                  if event["queue"] == "shared_receive"]
        self.assertGreaterEqual(sum(event["wqes"] for event in posted), 60)
        self.assertFalse([event for event in posted if "qp" in event])
        taken = [event for event in self.events(trace, "--kind", "wqe", "--host", "h0")
                 if event["queue"] == "shared_receive"]
        self.assertGreaterEqual(sum(event["wqes"] for event in posted), len(taken))

    def test_arguments_and_answers(self):
        trace = self.record("a.trace", "--record-calls")
        events = self.events(trace, "--kind", "command,command_bytes", "--host", "h0")
        answered = [event["opcode"] for event in events if event["kind"] == "command"]
        for answer in (0, 1):
            begun = [event["opcode"] for event in events if event["kind"] == "command_bytes"
                     and event.get("answer", 0) == answer and event.get("part", 0) == 0]
            self.assertEqual(begun, answered)
        # create_mpt: a header of 16 bytes, then the Mpt, whose length is at byte 24.
        lengths = [big_endian(int(str(event.get("word5", 0)), 0)) for event in events
                   if event["kind"] == "command_bytes" and event["opcode"] == "create_mpt" and not event.get("answer")]
        self.assertIn(MESSAGE_BYTES, lengths)

    def test_follow_begins_with_the_post(self):
        trace = self.record("a.trace", "--record-calls")
        posted = [event for event in self.events(trace, "--kind", "posted", "--host", "h0")
                  if event["queue"] == "send"][3]
        # Each has a time since the first; the fetch of receives before them is none of this WQE's.
        lines = apps.call("trace", "follow", trace, "--host", "h0", "--qp", str(posted["qp"]), "--wqe", "3").out
        self.assertRegex(lines.splitlines()[0],
                         rf"  h0  posted  qp \S+  queue send  index {posted['index']}  wqes 1  called ")
        self.assertNotIn("queue receive", lines)
        times = [float(time) for time in re.findall(r"  (\d+\.\d{6}) us  h\d  ", lines)]
        self.assertEqual((len(times), times), (len(lines.splitlines()), sorted(times)))

    def test_tlps_agree_with_the_counters(self):
        results = self.path / "r.json"
        trace = self.record("a.trace", "--record-tlps", "--json", results)
        hosts = apps.read_json(results)["hosts"]
        for host in hosts:
            tlps = self.events(trace, "--kind", "tlp", "--host", host)
            of_device = [tlp for tlp in tlps if tlp["direction"] == "to_host" and tlp["type"] != "completion"]
            self.assertEqual(len(of_device), hosts[host]["counters"]["nic.dma.to_host_tlps"])
            asked, brought = collections.Counter(), collections.Counter()
            for tlp in tlps:
                if tlp["type"] == "memory_read" and tlp["direction"] == "to_host":
                    self.assertLessEqual(tlp["bytes"], 512)
                    self.assertEqual(asked[tlp.get("tag", 0)], brought[tlp.get("tag", 0)], "a tag that is in use")
                    asked[tlp.get("tag", 0)] += tlp["bytes"]
                elif tlp["type"] == "completion" and tlp["direction"] == "to_device":
                    self.assertLessEqual(tlp["bytes"], 256)
                    brought[tlp.get("tag", 0)] += tlp["bytes"]
            self.assertGreater(sum(asked.values()), 20 * MESSAGE_BYTES)
            self.assertEqual(asked, brought)
            self.assertIn("memory_write", {tlp["type"] for tlp in tlps if tlp["direction"] == "to_device"})

    def test_a_replay_ignores_them(self):
        trace = self.record("a.trace", "--record-software", "--record-calls", "--record-tlps")
        for options in ([], ["--as-possible"]):
            result = apps.call("replay", trace, *options)
            self.assertEqual((result.status, result.err), (0, ""), result)
            self.assertRegex(result.out, r"\nequal: [1-9]\d+ events\n\Z")
        again = self.path / "again.trace"
        self.assertEqual(apps.call("replay", trace, "--record", again, "--record-tlps").status, 0)
        of_both = [self.events(file, "--kind", "tlp") for file in (trace, again)]
        self.assertEqual(*map(len, of_both))

    def test_the_level_verbs(self):
        network = {"packet_sent", "packet_received", "frame_sent", "frame_received"}
        whole = self.events(self.record("whole.trace", "--record-calls"))
        verbs = self.events(self.record("verbs.trace", "--record-calls", "--record-level", "verbs"))
        self.assertEqual(verbs, [event for event in whole if event["kind"] not in network])
        self.assertLess(len(verbs), len(whole))

    def test_refusals(self):
        program = ["--", "true"]
        for options, reason in [(["--record-level", "verbs", "--record-software"], "--record-level verbs"),
                                (["--record-calls", "--time", "real"], "--time=real")]:
            trace = self.path / "no.trace"
            result = apps.call("run", "--record", trace, *options, *program)
            self.assertEqual((result.status, len(result.err.splitlines())), (2, 1), result)
            self.assertIn(reason, result.err)
            self.assertFalse(trace.exists())
        self.assertEqual(apps.call("run", "--record-calls", *program).status, 2)

    def test_bench(self):
        """Addresses of the memory are not in the TLPs, so two runs are equal."""
        def run(name):
            trace = self.path / name
            result = apps.call("bench", "write-4k", "--set", "measure.duration=5us", "--record", trace, "--record-tlps")
            self.assertEqual(result.status, 0, result)
            return trace
        first, second = run("a.trace"), run("b.trace")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertTrue(self.events(first, "--kind", "tlp"))


if __name__ == "__main__":
    apps.main()
