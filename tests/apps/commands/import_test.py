#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnicsim trace import: captures of real hosts as recorded runs.

usage: import_test.py path/to/rnicsim
"""
import collections
import json
import os
import pathlib
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

WIRE = pathlib.Path(__file__).resolve().parents[3] / "traces" / "wire"
FILE_HEADER, RECORD_HEADER = 24, 16
REQUESTS = {0x00: "SEND_FIRST", 0x01: "SEND_MIDDLE", 0x02: "SEND_LAST", 0x03: "SEND_LAST_IMM", 0x04: "SEND_ONLY",
            0x05: "SEND_ONLY_IMM", 0x06: "WRITE_FIRST", 0x07: "WRITE_MIDDLE", 0x08: "WRITE_LAST",
            0x09: "WRITE_LAST_IMM", 0x0a: "WRITE_ONLY", 0x0b: "WRITE_ONLY_IMM", 0x0c: "READ_REQUEST",
            0x13: "COMPARE_SWAP", 0x14: "FETCH_ADD"}
TRANSPORTS = {0x00: "", 0x20: "UC_", 0x60: "UD_"}
MANAGEMENT_QP = 1


def packets_of(capture):
    data = (WIRE / f"{capture}.pcap").read_bytes()
    at = FILE_HEADER
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        packet = apps.Packet(0, "", data[at + RECORD_HEADER:at + RECORD_HEADER + length])
        at += RECORD_HEADER + length
        if packet.is_roce() and packet.icrc_right():
            yield packet


class Flows:
    """Requests that a queue pair sends to another, each packet as first sent: name of the opcode, PSN, bytes."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.flows = collections.defaultdict(list)
        self.next = {}

    def add(self, flow, opcode, psn, length):
        behind = (psn - self.next.get(flow, psn)) & 0xffffff
        if behind >= 1 << 23:
            return  # sent again
        psns = max(1, -(-length // self.mtu)) if opcode == "READ_REQUEST" else 1
        self.next[flow] = psn + psns
        self.flows[flow].append((opcode, psn, length))

    def all(self):
        return sorted(self.flows.values())


def requests_in_capture(capture, mtu):
    flows = Flows(mtu)
    for packet in packets_of(capture):
        opcode = REQUESTS.get(packet.opcode & 0x1f)
        transport = TRANSPORTS.get(packet.opcode & 0xe0)
        if opcode is None or transport is None or packet.destination_qp == MANAGEMENT_QP:
            continue
        is_read = opcode == "READ_REQUEST"
        length = struct.unpack_from("!I", packet.extended, 12)[0] if is_read else len(packet.payload)
        flows.add((packet.source, packet.destination_qp), transport + opcode, packet.psn, length)
    return flows.all()


def requests_in_trace(trace, mtu):
    flows = Flows(mtu)
    names = {transport + opcode for transport in TRANSPORTS.values() for opcode in REQUESTS.values()}
    for line in apps.call("trace", "export", trace, "--kind", "packet_sent").out.splitlines():
        packet = json.loads(line)
        if packet["opcode"] in names and packet["destination_qp"] != MANAGEMENT_QP:
            is_read = packet["opcode"] == "READ_REQUEST"
            flows.add((packet["host"], packet["qp"], packet["destination_qp"]), packet["opcode"], packet["psn"],
                      packet["reth_length" if is_read else "payload_bytes"])
    return flows.all()


class Import(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)
        self.trace = self.path / "imported.trace"

    def imported(self, capture, *options):
        result = apps.call("trace", "import", "--pcap", WIRE / f"{capture}.pcap", "-o", self.trace, *options)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return result.out

    def refused(self, *arguments):
        result = apps.call("trace", "import", *arguments)
        self.assertEqual(result.status, 2, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        return result.err

    def events(self, kind, *options):
        return apps.call("trace", "show", self.trace, "--kind", kind, *options).out.splitlines()

    def requests(self, text):
        """(posted, ended as in the capture, ended otherwise)"""
        return tuple(map(int, re.search(r"^requests: (\d+) posted, (\d+) ended as in the capture, (\d+) differently",
                                        text, re.M).groups()))


class Captures(Import):
    def test_a_conversation_of_all_kinds(self):
        text = self.imported("rxe-two-guests")
        self.assertIn("rxe-two-guests.pcap: 212 frames, 160 of them RoCEv2\nh0 is 10.0.0.", text)
        posted, same, other = self.requests(text)
        self.assertGreater(posted, 30)
        self.assertEqual((same, other), (posted, 0), text)
        self.assertIn("5 messages of connection management are left out", text)
        for address in ("10.0.0.1", "10.0.0.2"):
            self.assertRegex(text, rf"--as {re.escape(address)}`: \d+ packets, 0 differences\n")
        opcodes = "\n".join(self.events("wqe"))
        for opcode in ("WRITE", "SEND", "READ", "FETCH_ADD", "COMPARE_SWAP", "SEND_WITH_IMM", "WRITE_WITH_IMM"):
            self.assertRegex(opcodes, rf"opcode {opcode}\b")
        self.assertEqual(len([line for line in self.events("cqe") if "success" not in line]), 0)

    def test_each_capture_becomes_a_recording_that_replays(self):
        for capture in sorted(file.stem for file in WIRE.glob("*.pcap")):
            with self.subTest(capture):
                self.imported(capture)
                for pace in ([], ["--as-possible"]):
                    again = apps.call("replay", self.trace, *pace)
                    self.assertEqual((again.status, again.err), (0, ""), again)
                    self.assertRegex(again.out, r"equal: [1-9]\d+ events\n\Z")

    def test_the_packets_are_those_of_the_capture(self):
        """Packets of each request by opcode, PSN and bytes, of the import and of its replay."""
        again = self.path / "again.trace"
        for capture in ("rxe-two-guests", "atomic_loss-h0", "read_loss-h0", "rnr-h0", "exhaustion-h0", "mcast-h0"):
            with self.subTest(capture):
                self.imported(capture)
                expected = requests_in_capture(capture, 1024)
                self.assertEqual(requests_in_trace(self.trace, 1024), expected)
                self.assertGreater(sum(map(len, expected)), 1)
                self.assertEqual(apps.call("replay", self.trace, "--record", again).status, 0)
                self.assertEqual(requests_in_trace(again, 1024), expected)

    def test_another_nic(self):
        self.imported("rxe-two-guests")
        again = self.path / "again.trace"
        result = apps.call("replay", self.trace, "--as-possible", "--nic", "cx7-400g", "--record", again)
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertGreater(len(apps.call("trace", "show", again, "--kind", "cqe").out.splitlines()), 30)

    def test_the_same_events_at_each_run(self):
        """Events are the same except for addresses of memory, which the software's side has."""
        kinds = "wqe,cqe,packet*,frame*,doorbell,qp_state,device_command"
        self.imported("rxe-two-guests")
        first = self.events(kinds)
        self.imported("rxe-two-guests")
        self.assertEqual(self.events(kinds), first)

    def test_psns_are_those_of_the_capture(self):
        text = self.imported("atomic_loss-h0")
        self.assertEqual(self.requests(text), (8, 8, 0), text)
        first = re.search(r"8 requests from PSN (\d+)", text)[1]
        self.assertIn(f"psn {first} ", self.events("packet_sent", "--host", "h0")[0])
        self.assertNotIn("returned other bytes", text)

    def test_a_receiver_that_is_not_ready(self):
        text = self.imported("rnr-h0")
        self.assertEqual(self.requests(text), (3, 3, 0), text)
        self.assertRegex(text, r"note: h0 QP \S+ \(RC\): \d+ retransmitted packets do not count as requests\n")
        naks = apps.call("trace", "stat", self.trace).out
        self.assertRegex(naks, r"[1-9]\d* NAKs")
        text = self.imported("rnr_exhaust-h0")
        self.assertEqual(self.requests(text), (1, 1, 0), text)
        self.assertIn("rnr_retry_exceeded", "\n".join(self.events("cqe")))

    def test_what_a_network_lost_is_not_lost_again(self):
        text = self.imported("exhaustion-h0")
        posted, _, other = self.requests(text)
        self.assertEqual(posted, 3)
        self.assertGreater(other, 0)
        self.assertIn("ended with: success; in the capture with: transport retry counter exceeded", text)

    def test_a_group(self):
        text = self.imported("mcast-h0")
        self.assertIn("of group 239.1.2.3", text)
        self.assertEqual(len([line for line in self.events("cqe", "--host", "h1") if "receive_send" in line]), 2)


class BadInput(Import):
    def test_what_is_no_capture(self):
        other = self.path / "other.pcap"
        other.write_text("no capture")
        self.assertIn("other.pcap", self.refused("--pcap", other, "-o", self.trace))
        self.assertIn("missing.pcap", self.refused("--pcap", self.path / "missing.pcap", "-o", self.trace))
        self.assertFalse(self.trace.exists())

    def test_a_file_that_is_there_stays(self):
        self.trace.write_text("as it was")
        empty = self.path / "empty.pcap"
        empty.write_bytes((WIRE / "ud-h0.pcap").read_bytes()[:FILE_HEADER])
        self.assertIn("empty.pcap", self.refused("--pcap", empty, "-o", self.trace))
        self.assertIn("no-nic", self.refused("--pcap", WIRE / "ud-h0.pcap", "-o", self.trace, "--nic", "no-nic"))
        self.assertEqual(self.trace.read_text(), "as it was")
        self.assertEqual(sorted(file.name for file in self.path.iterdir()), ["empty.pcap", "imported.trace"])
        self.assertIn("missing", self.refused("--pcap", WIRE / "ud-h0.pcap", "-o", self.path / "missing" / "a"))


if __name__ == "__main__":
    apps.main()
