#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Programs over XRC: rdma-core's ping-pong with two domains, perftest, librdmacm's example, and two processes that share a
domain.

usage: xrc_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "xrc_domain.c"
# MiB/s of payload in packets of 4096 bytes at 100 Gb/s: XRC's headers are 4 bytes longer than RC's.
WIRE = 100e9 / 8 * 4096 / (4096 + 14 + 20 + 8 + 12 + 4 + 4 + 4 + 20) / 2 ** 20
MESSAGES = 200


class PingPong(apps.TestCase):
    def check(self, *options, clients=("h1",), topology=()):
        commands = [("h0", " ".join(["ibv_xsrq_pingpong", "-g 1", f"-c {len(clients)}", *options]))]
        commands += [(host, " ".join(["ibv_xsrq_pingpong", "-g 1", *options, "10.0.0.1"])) for host in clients]
        result = self.assert_succeeded(apps.run_on(commands, *topology, "--audit"))
        for host in ("h0", *clients):
            self.assertIn("success", result.lines(host), result)
        return result

    def test_polls(self):
        self.check()

    def test_sleeps(self):
        self.check("-e")

    def test_size_and_count(self):
        self.check("-s 60000 -n 20 -m 1024")

    def test_more_clients_than_one(self):
        self.check(clients=("h1", "h2", "h3"), topology=("--topology", "star:4"))

    def test_captured(self):
        with apps.folder() as folder:
            capture = folder / "xrc.pcapng"
            self.assert_succeeded(apps.run("ibv_xsrq_pingpong -g 1", "--pcap", str(capture)))
            replayed = apps.call("replay", "--wire", str(capture), "--as", "10.0.0.1")
            self.assertEqual(replayed.status, 2, replayed)
            self.assertIn("are of XRC, which is not replayed", replayed.err)


class Perftest(apps.TestCase):
    def rows(self, program, *options):
        result = self.assert_succeeded(apps.run(f"{program} -c XRC -n {MESSAGES} " + " ".join(options), "--audit"))
        return apps.perftest_rows(result.lines("h1")), result

    def bandwidth(self, program, *options, least, most=WIRE):
        (row,), result = self.rows(program, *options)
        self.assertTrue(least <= row[3] <= most, (least, most, result))

    def test_send(self):
        self.bandwidth("ib_send_bw", least=0.95 * WIRE)

    def test_send_with_srq(self):
        self.bandwidth("ib_send_bw", "--use-srq", least=0.95 * WIRE)

    def test_send_of_many(self):
        self.bandwidth("ib_send_bw", "-q 8", least=0.95 * WIRE)

    def test_send_both_ways(self):
        self.bandwidth("ib_send_bw", "-b", least=1.7 * WIRE, most=2 * WIRE)

    def test_write(self):
        self.bandwidth("ib_write_bw", least=0.95 * WIRE)

    def test_read(self):
        self.bandwidth("ib_read_bw", least=0.8 * WIRE)

    def test_atomic(self):
        for operation in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
            self.bandwidth("ib_atomic_bw", f"-A {operation}", least=1, most=1000)

    def test_latencies(self):
        for program, most in (("ib_send_lat", 2), ("ib_write_lat", 2), ("ib_read_lat", 3), ("ib_atomic_lat", 3)):
            (row,), result = self.rows(program)
            self.assertTrue(0.7 <= row[4] <= most, (program, result))

    def test_lossy(self):
        result = self.assert_succeeded(apps.run(f"ib_send_bw -c XRC -n {MESSAGES}", "--fault", "drop=5e-3", "--audit"))
        again = re.findall(r"^ +nic\.engine\.(?:packet_seq_err|local_ack_timeout_err|implied_nak_seq_err) +\d+ +(\d+)",
                           result.summary(), re.MULTILINE)
        self.assertGreater(sum(map(int, again)), 0, result)


class Domain(apps.LeavesNothing):
    def test_of_two_processes(self):
        with apps.folder() as folder:
            command = f"{apps.built('xrc_domain', SOURCE.read_text(), '-libverbs')} {folder / 'domain'}"
            result = self.assert_succeeded(apps.run_on([("h0", command)], "--audit", env=self.environment))
        self.assertNotIn("keeps object", result.err, result)
        self.assertEqual(result.lines("h0"), [f"user: {what}" for what in (
            "a domain that is to be new: EINVAL", "open_xrcd: ok", "a number that is none: EINVAL", "open_qp: ok",
            "INIT: ok", "close_xrcd: EBUSY", "INIT: ok", "modify_qp: ok", "last WQE reached: ok", "destroy_qp: ok",
            "it is gone: EINVAL", "close_xrcd: ok", "the domain, too: EAGAIN", "close_device: ok")], result)


class Example(apps.TestCase):
    def test_connected_by_rdma_cm(self):
        result = self.assert_succeeded(
            apps.run_on([("h0", "rdma_xserver -c x"), ("h1", "rdma_xclient -s 10.0.0.1 -c x")], "--audit"))
        self.assertIn("rdma_xserver: end 0", result.lines("h0"), result)
        self.assertIn("rdma_xclient: end 0", result.lines("h1"), result)


if __name__ == "__main__":
    apps.main()
