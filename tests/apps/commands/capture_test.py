#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The capture of a run has exactly the packets and payload bytes that the run needs, each with a correct ICRC.

usage: capture_test.py path/to/rnicsim     (needs tshark for one of its tests)
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import Opcode  # noqa: E402

PSN_MODULUS = 1 << 24
MTU = 4096
H0, H1 = "10.0.0.1", "10.0.1.1"
POSITIVE_ACK, WHOLE_CREDIT = 0, 0x1f


def local_address(result, host):
    """Attributes that perftest printed for its own side: QPN, PSN and, where memory is accessed, RKey and VAddr."""
    text = re.search(r"local address: (.*)", result.text(host)).group(1)
    return {name: int(value, 16) for name, value in re.findall(r"(QPN|PSN|RKey|VAddr) (0x[0-9a-f]+)", text)}


def reth(packet):
    extended = packet.extended
    return {"address": int.from_bytes(extended[:8], "big"), "rkey": int.from_bytes(extended[8:12], "big"),
            "length": int.from_bytes(extended[12:16], "big")}


def aeth(packet):
    return packet.extended[0] >> 5, packet.extended[0] & 0x1f, int.from_bytes(packet.extended[1:4], "big")


class CaptureCase(apps.TestCase):
    def capture(self, program, *options):
        result, packets = apps.run_with_capture(program, *options)
        self.assert_succeeded(result)
        for packet in packets:
            self.assertTrue(packet.is_roce(), packet)
            self.assertTrue(packet.icrc_right(), packet)
        times = [packet.time for packet in packets]
        self.assertEqual(times, sorted(times))
        return result, packets

    def assert_psns(self, packets, first):
        """PSNs follow `first` without a gap and without a repetition."""
        self.assertEqual([packet.psn for packet in packets], [(first + i) % PSN_MODULUS for i in range(len(packets))])

    def assert_each_acknowledged(self, acks, psns):
        """An ACK for each request that asks for an ACK, in order; the MSN counts the ACKs."""
        self.assertEqual([ack.psn for ack in acks], psns)
        self.assertEqual([aeth(ack) for ack in acks],
                         [(POSITIVE_ACK, WHOLE_CREDIT, number + 1) for number in range(len(acks))])


class WriteBandwidth(CaptureCase):
    """ib_write_bw has no warm-up by default: the messages are exactly the -n iterations."""
    MESSAGES, SIZE = 1000, 8192

    @classmethod
    def setUpClass(cls):
        cls.result, cls.packets = CaptureCase().capture(f"ib_write_bw -n {cls.MESSAGES} -s {cls.SIZE}")
        cls.requests = [packet for packet in cls.packets if packet.source == H1]
        cls.acks = [packet for packet in cls.packets if packet.source == H0]

    def test_requests(self):
        self.assertEqual([packet.opcode for packet in self.requests],
                         [Opcode.WRITE_FIRST, Opcode.WRITE_LAST] * self.MESSAGES)
        self.assert_psns(self.requests, local_address(self.result, "h1")["PSN"])
        self.assertEqual({packet.destination_qp for packet in self.requests}, {local_address(self.result, "h0")["QPN"]})

    def test_payload(self):
        self.assertEqual({len(packet.payload) for packet in self.requests}, {MTU})
        self.assertEqual(sum(len(packet.payload) for packet in self.packets), self.MESSAGES * self.SIZE)

    def test_remote_address(self):
        server = local_address(self.result, "h0")
        for packet in self.requests[::2]:
            target = reth(packet)
            self.assertEqual((target["rkey"], target["length"]), (server["RKey"], self.SIZE))
            self.assertTrue(server["VAddr"] <= target["address"] < server["VAddr"] + 64 * 1024 * 2, target)

    def test_acknowledgements(self):
        self.assertEqual({packet.opcode for packet in self.acks}, {Opcode.ACK})
        self.assertEqual({len(packet.payload) for packet in self.acks}, {0})
        asking = [packet for packet in self.requests if packet.asks_for_ack]
        self.assertEqual([packet.opcode for packet in asking], [Opcode.WRITE_LAST] * self.MESSAGES)
        self.assert_each_acknowledged(self.acks, [packet.psn for packet in asking])

    def test_no_ack_before_its_request(self):
        asked_at = {packet.psn: packet.time for packet in self.requests}
        self.assertTrue(all(ack.time > asked_at[ack.psn] for ack in self.acks))

    def test_summary_counts_the_same(self):
        counted = dict(re.findall(r"(nic\.tx\.\w+)\s+\d+\s+(\d+)", self.result.summary()))
        self.assertEqual(int(counted["nic.tx.packets"]), len(self.requests))
        self.assertEqual(int(counted["nic.tx.payload_bytes"]), self.MESSAGES * self.SIZE)


class OtherVerbs(CaptureCase):
    def test_read(self):
        result, packets = self.capture("ib_read_bw -n 50 -s 8192")
        requests = [packet for packet in packets if packet.source == H1]
        responses = [packet for packet in packets if packet.source == H0]
        self.assertEqual([packet.opcode for packet in requests], [Opcode.READ_REQUEST] * 50)
        self.assertEqual([packet.opcode for packet in responses], [Opcode.READ_FIRST, Opcode.READ_LAST] * 50)
        self.assertEqual(sum(len(packet.payload) for packet in responses), 50 * 8192)
        first = local_address(result, "h1")["PSN"]
        self.assert_psns(responses, first)
        # A READ uses as many PSNs as its response has packets.
        self.assertEqual([packet.psn for packet in requests], [(first + 2 * i) % PSN_MODULUS for i in range(50)])

    def test_send(self):
        result, packets = self.capture("ib_send_bw -n 50 -s 5000")
        requests = [packet for packet in packets if packet.source == H1]
        acks = [packet for packet in packets if packet.source == H0]
        self.assertEqual([packet.opcode for packet in requests], [Opcode.SEND_FIRST, Opcode.SEND_LAST] * 50)
        self.assertEqual([len(packet.payload) for packet in requests], [MTU, 5000 - MTU] * 50)
        self.assert_psns(requests, local_address(result, "h1")["PSN"])
        self.assertEqual([ack.psn for ack in acks], [packet.psn for packet in requests if packet.asks_for_ack])

    def test_odd_sizes_are_padded(self):
        _, packets = self.capture("ib_write_lat -n 10 -s 5")
        writes = [packet for packet in packets if packet.opcode == Opcode.WRITE_ONLY]
        self.assertEqual([len(packet.payload) for packet in writes], [5] * 20)
        self.assertEqual({len(packet.frame) for packet in writes}, {14 + 20 + 8 + 12 + 16 + 5 + 3 + 4})

    def test_payload_is_the_programs(self):
        """ibv_rc_pingpong -c fills the client's buffer with 0x7b and begins each page with 0; the server sends back
        what it received."""
        _, packets = self.capture("ibv_rc_pingpong -d rnic0 -g 1 -c -n 5 -s 16384 -m 4096")
        sent = [packet.payload for packet in packets if packet.payload]
        self.assertEqual(len(sent), 2 * 5 * 4)
        self.assertEqual(set(sent), {b"\0" + b"\x7b" * (MTU - 1)})

    def test_a_run_without_traffic(self):
        with apps.folder() as path:
            result = apps.run_on([("h0", "true")], "--pcap", path / "capture.pcapng")
            self.assertEqual(result.status, 0, result)
            self.assertEqual(apps.read_capture(path / "capture.pcapng"), [])


class Replayed(apps.TestCase):
    """Replay of each simulated NIC, and of the connection manager, by the simulator itself."""
    def check(self, *on):
        with apps.folder() as path:
            capture, results = path / "capture.pcapng", path / "results.json"
            self.assert_succeeded(apps.run_on(on, "--pcap", capture))
            managed = []
            for address in (H0, H1):
                replay = apps.call("replay", "--wire", capture, "--as", address, "--json", results)
                self.assertEqual(replay.status, 0, replay)
                managed.append(json.loads(results.read_text())["management"]["matched"])
            return managed

    def test_connections(self):
        self.assertEqual(self.check(("h0", "ucmatose -C 3"), ("h1", f"ucmatose -s {H0} -C 3")), [2, 3])

    def test_both_ends_disconnect(self):
        self.assertEqual(min(self.check(("h0", "ib_send_lat -R -n 5"), ("h1", f"ib_send_lat -R -n 5 {H0}"))), 5)

    def test_services(self):
        self.assertEqual(self.check(("h0", "udaddy -C 2"), ("h1", f"udaddy -s {H0} -C 2")), [1, 1])


class Tshark(apps.TestCase):
    """Wireshark's dissector finds no errors. Its RPC-over-RDMA heuristic is off: the heuristic takes any payload that
    starts like such a header for RPC and reports the rest as malformed."""
    WARNING = 0x600000  # a severity of Wireshark; notes are below, for example on ibv_rc_pingpong's time to live of 1
    CHECKSUM_GOOD = "1"

    FIELDS = ("_ws.malformed", "_ws.expert.severity", "infiniband.bth.psn", "ip.checksum.status")

    def dissect(self, capture, fields=FIELDS):
        command = ["tshark", "-n", "-r", capture, "--disable-protocol", "rpcordma", "-o", "ip.check_checksum:TRUE",
                   "-T", "fields"]
        for field in fields:
            command += ["-e", field]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=apps.RUN_SECONDS,
                               env=dict(os.environ, HOME=str(capture.parent)))
        return [line.split("\t") for line in shown.stdout.splitlines()]

    def check(self, program, *fields):
        """The packets, and tshark's values of `fields` for each packet."""
        if not shutil.which("tshark"):
            self.skipTest("tshark is not installed")
        with apps.folder() as path:
            capture = path / "capture.pcapng"
            self.assert_succeeded(apps.run(program, "--pcap", capture))
            rows, packets = self.dissect(capture), apps.read_capture(capture)
            more = self.dissect(capture, ("infiniband.bth.opcode", *fields))
        self.assertEqual(len(rows), len(packets))
        for (malformed, severities, psn, checksum), packet in zip(rows, packets):
            self.assertEqual((malformed, checksum, int(psn)), ("", self.CHECKSUM_GOOD, packet.psn), packet)
            worst = max((int(severity) for severity in severities.split(",") if severity), default=0)
            self.assertLess(worst, self.WARNING, packet)
        return packets, more

    def test_write(self):
        self.check("ib_write_bw -n 1000 -s 8192")

    def test_read(self):
        self.check("ib_read_bw -n 50 -s 8192")

    def test_send(self):
        self.check("ibv_rc_pingpong -d rnic0 -g 1 -c -n 50")

    def test_unreliable_connection(self):
        """Each message of 4096 bytes is first, two middle, last; UC requests no ACK, and no ACK is sent."""
        _, rows = self.check("ibv_uc_pingpong -d rnic0 -g 1 -n 50 -s 4096 -m 1024", "infiniband.bth.a",
                             "infiniband.bth.p_key")
        first, middle, last = 0x20, 0x21, 0x22
        self.assertEqual([int(row[0]) for row in rows], [first, middle, middle, last] * 100)
        self.assertEqual({row[1] for row in rows} - {"0", "False"}, set())
        self.assertEqual({int(row[2], 0) for row in rows}, {0xffff})

    def test_datagrams(self):
        """ibv_ud_pingpong's Q_Key, and the source QP of packets in both directions."""
        packets, rows = self.check("ibv_ud_pingpong -d rnic0 -g 1 -n 50 -s 2048", "infiniband.bth.destqp",
                                   "infiniband.deth.srcqp", "infiniband.deth.q_key", "infiniband.bth.a")
        send_only = 0x64
        self.assertEqual({int(row[0]) for row in rows}, {send_only})
        ways = {(packet.source, int(row[2], 0), int(row[1], 0)) for packet, row in zip(packets, rows)}
        (_, own, to), (_, from_peer, to_own) = sorted(ways)
        self.assertEqual((own, to), (to_own, from_peer))
        self.assertEqual({int(row[3], 0) for row in rows}, {0x11111111})
        self.assertEqual({row[4] for row in rows} - {"0", "False"}, set())
        for source in (H0, H1):
            psns = [packet.psn for packet in packets if packet.source == source]
            self.assertEqual(psns, [(psns[0] + i) % PSN_MODULUS for i in range(50)])


if __name__ == "__main__":
    apps.main()
