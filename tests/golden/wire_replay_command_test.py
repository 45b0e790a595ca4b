#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnicsim replay --wire` as a user runs it: exit statuses, report, JSON, and errors in one line.

usage: wire_replay_command_test.py path/to/rnicsim
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zlib

CAPTURE = pathlib.Path(__file__).parents[2] / "traces" / "wire" / "rxe-two-guests.pcap"
FILE_HEADER, RECORD_HEADER, ETHERNET = 24, 16, 14
MAD = ETHERNET + 20 + 8 + 12 + 8  # offset of the MAD in a frame; offsets of its fields:
ATTRIBUTE, REMOTE_ID = 16, 28
SAME, DIFFERENT, UNUSABLE = 0, 1, 2
PROGRAM = ""


def replay(capture, address, *options):
    return subprocess.run([PROGRAM, "replay", "--wire", str(capture), "--as", address, *options],
                          capture_output=True, text=True, timeout=600, check=False)


def change(content, number, at, bits):
    """Flips bits of an IPv4 frame, and corrects its ICRC."""
    content = bytearray(content)
    start, length = FILE_HEADER, 0
    for _ in range(number):
        start += length + RECORD_HEADER
        length = int.from_bytes(content[start - 8:start - 4], "little")
    content[start + at] ^= bits
    packet = bytearray(content[start + ETHERNET:start + length - 4])
    for masked in (1, 8, 10, 11, 26, 27, 32):  # TOS, TTL, checksums of IP and UDP, FECN and BECN
        packet[masked] = 0xff
    icrc = zlib.crc32(b"\xff" * 8 + bytes(packet))
    content[start + length - 4:start + length] = icrc.to_bytes(4, "little")
    return bytes(content)


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_both_addresses_agree(self):
        for address, compared, managed in (("10.0.0.1", 23, 2), ("10.0.0.2", 13, 3), ("::ffff:10.0.0.1", 23, 2)):
            results = self.folder / "results.json"
            run = replay(CAPTURE, address, "--json", str(results))
            self.assertEqual((run.returncode, run.stderr), (SAME, ""))
            found = json.loads(results.read_text())
            self.assertEqual((found["frames"], found["roce"], found["parsed"], found["icrc_right"]),
                             (212, 160, 160, 160))
            self.assertEqual((found["packets"]["answers"], found["differences"]), (compared, []))
            self.assertEqual(found["management"], {"received": 5 - managed, "sent": managed, "matched": managed,
                                                   "no_messages": [], "differences": 0})
            self.assertIn(f"{managed} sent, {managed} matched, 0 differences\n", run.stdout)
            self.assertEqual(replay(CAPTURE, address).stdout, run.stdout)

    def test_a_difference_is_shown(self):
        capture = self.folder / "changed.pcap"
        capture.write_bytes(change(CAPTURE.read_bytes(), 12, 57, 1))
        results = self.folder / "results.json"
        run = replay(capture, "10.0.0.1", "--json", str(results))
        self.assertEqual(run.returncode, DIFFERENT)
        difference, = json.loads(results.read_text())["differences"]
        self.assertEqual((difference["frame"], difference["fields"]),
                         (12, [{"field": "msn", "ours": "2", "theirs": "3"}]))
        self.assertIn("frame 12", run.stdout)
        self.assertEqual(replay(capture, "10.0.0.2").returncode, SAME)  # 10.0.0.1 sent the changed answer

    def test_a_difference_in_connection_management_is_shown(self):
        capture = self.folder / "changed.pcap"
        capture.write_bytes(change(CAPTURE.read_bytes(), 212, MAD + REMOTE_ID + 3, 1))  # the DREP
        results = self.folder / "results.json"
        run = replay(capture, "10.0.0.1", "--json", str(results))
        self.assertEqual(run.returncode, DIFFERENT)
        found = json.loads(results.read_text())
        difference, = found["differences"]
        self.assertEqual((difference["subject"], difference["qpn"], difference["frame"], difference["fields"]),
                         ("management", 1, 212,
                          [{"field": "remote_id", "ours": "0xbb219339", "theirs": "0xbb219338"}]))
        self.assertEqual((found["management"]["matched"], found["management"]["differences"]), (1, 1))
        self.assertRegex(run.stdout, r"frame +211  -> DREQ from 0xbb219339 to 0xeafc1738")

    def test_a_malformed_management_datagram_is_shown(self):
        capture = self.folder / "changed.pcap"
        # The RTU, which is thereby lost.
        capture.write_bytes(change(CAPTURE.read_bytes(), 186, MAD + ATTRIBUTE + 1, 0x40))
        results = self.folder / "results.json"
        run = replay(capture, "10.0.0.1", "--json", str(results))
        self.assertEqual(run.returncode, SAME)  # 10.0.0.2 sent the changed RTU
        management = json.loads(results.read_text())["management"]
        self.assertEqual([each["frame"] for each in management["no_messages"]], [186])
        self.assertEqual((management["received"], management["matched"]), (2, 2))
        self.assertIn("frame 186, to QP1, is not a message", run.stdout)
        self.assertEqual(replay(capture, "10.0.0.2").returncode, DIFFERENT)

    def test_each_port_agrees_with_its_own_capture(self):
        captures = sorted(CAPTURE.parent.glob("*-h?.pcap"))
        self.assertGreater(len(captures), 10)
        for capture in captures:
            address = "10.0.0.1" if capture.stem.endswith("h0") else "10.0.0.2"
            run = replay(capture, address)
            self.assertEqual((run.returncode, run.stderr), (SAME, ""), capture)

    def test_a_port_that_saw_more_than_the_other_differs(self):
        results = self.folder / "results.json"
        run = replay(CAPTURE.parent / "read_loss-h0.pcap", "10.0.0.2", "--json", str(results))
        self.assertEqual(run.returncode, DIFFERENT)
        found = json.loads(results.read_text())["differences"]
        self.assertEqual([(each["subject"], "theirs" in each) for each in found], [("answer", False)] * 4)

    def assert_unusable(self, run, *words):
        self.assertEqual((run.returncode, run.stdout), (UNUSABLE, ""))
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_errors(self):
        broken = self.folder / "broken.pcap"
        broken.write_bytes(CAPTURE.read_bytes()[:5000])
        alien = self.folder / "alien"
        alien.write_text("no capture at all, but some text that is long enough to look like one\n")
        empty = self.folder / "empty.pcap"
        empty.write_bytes(CAPTURE.read_bytes()[:FILE_HEADER])
        self.assert_unusable(replay(broken, "10.0.0.1"), str(broken), "broken after frame")
        self.assert_unusable(replay(alien, "10.0.0.1"), str(alien), "not a readable capture")
        self.assert_unusable(replay(empty, "10.0.0.1"), str(empty), "no RoCEv2 packet")
        self.assert_unusable(replay(self.folder / "missing", "10.0.0.1"), "No such file")
        self.assert_unusable(replay(self.folder, "10.0.0.1"), str(self.folder))
        self.assert_unusable(replay(CAPTURE, "10.0.0.9"), "10.0.0.1", "10.0.0.2")
        self.assert_unusable(replay(CAPTURE, "h0"), "'h0'")
        self.assert_unusable(replay(CAPTURE, ""), "--as")

    def test_results_that_cannot_be_written(self):
        run = replay(CAPTURE, "10.0.0.1", "--json", str(self.folder / "missing" / "results.json"))
        self.assertEqual(run.returncode, UNUSABLE)
        self.assertIn("cannot be written", run.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
