#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Stock programs over a cable that loses, damages, repeats, delays and reorders frames: the programs succeed, and the
counters show the faults.

usage: faults_test.py path/to/rnicsim
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

USAGE_ERROR = 2


def both(results, counter):
    return sum(host["counters"][counter] for host in results["hosts"].values())


class Transfers(apps.TestCase):
    def transfer(self, program, *faults):
        options = [word for fault in faults for word in ("--fault", fault)]
        result, results = apps.run_with_results(program, *options)
        self.assert_succeeded(result)
        self.assertEqual(results["faults"], list(faults))
        return result, results

    def assert_repaired(self, results):
        self.assertGreater(both(results, "nic.engine.out_of_sequence"), 0)
        retries = both(results, "nic.engine.packet_seq_err") + both(results, "nic.engine.local_ack_timeout_err")
        self.assertGreater(retries, 0)

    def bandwidth(self, program):
        for fault, counter in (("drop=1e-3", "link.dropped"), ("reorder=1e-2,by=2", "link.reordered")):
            with self.subTest(fault):
                result, results = self.transfer(f"{program} -n 1000", fault)
                self.assertEqual(len(apps.perftest_rows(result.lines("h1"))), 1, result)
                self.assertGreater(both(results, counter), 0)
                self.assert_repaired(results)

    def ping_pong(self, fault):
        result, results = self.transfer("ibv_rc_pingpong -d rnic0 -g 1 -c -n 1000", fault)
        for host in ("h0", "h1"):
            self.assertRegex(result.text(host), r"(?m)^8192000 bytes in [\d.]+ seconds")
        self.assertNotIn("invalid data", result.out + result.err, result)
        return results

    def test_ping_pong_over_loss(self):
        self.assert_repaired(self.ping_pong("drop=1e-3"))

    def test_ping_pong_over_reordering(self):
        self.assert_repaired(self.ping_pong("reorder=1e-2"))

    def test_ping_pong_over_damage(self):
        results = self.ping_pong("corrupt=1e-3")
        self.assertGreater(both(results, "link.corrupted"), 0)
        self.assertEqual(both(results, "nic.rx.rx_icrc_encapsulated"), both(results, "link.corrupted"))

    def test_ping_pong_over_duplicates(self):
        results = self.ping_pong("duplicate=1e-2,by=1us")
        self.assertGreater(both(results, "nic.engine.duplicate_request"), 0)

    def test_write_bandwidth(self):
        self.bandwidth("ib_write_bw")

    def test_send_bandwidth(self):
        self.bandwidth("ib_send_bw")

    def test_read_bandwidth(self):
        self.bandwidth("ib_read_bw")

    def test_everything_at_once(self):
        faults = ["drop=1e-3", "corrupt=1e-3", "duplicate=1e-3,by=5us", "delay=1e-3,by=3us", "reorder=1e-3,by=3"]
        _, results = self.transfer("ib_send_bw -n 1000", *faults)
        for counter in ("dropped", "corrupted", "duplicated", "delayed", "reordered"):
            self.assertGreater(both(results, f"link.{counter}"), 0, counter)


class Rules(apps.TestCase):
    def counters(self, *options):
        result, results = apps.run_with_results("ib_write_bw -n 100", *options)
        self.assert_succeeded(result)
        return {host: found["counters"] for host, found in results["hosts"].items()}

    def test_seed_decides(self):
        loss = ("--fault", "drop=1e-2")
        self.assertEqual(self.counters(*loss, "--seed", "1"), self.counters(*loss, "--seed", "1"))
        self.assertNotEqual(self.counters(*loss, "--seed", "1"), self.counters(*loss, "--seed", "2"))

    def test_one_chosen_frame(self):
        counters = self.counters("--fault", "drop,host=h1,opcode=WRITE_MIDDLE,nth=20")
        self.assertEqual((counters["h0"]["link.dropped"], counters["h1"]["link.dropped"]), (0, 1))
        self.assertGreater(counters["h0"]["nic.engine.out_of_sequence"], 0)
        self.assertEqual(counters["h1"]["nic.engine.packet_seq_err"], 1)
        self.assertEqual(counters["h1"]["nic.engine.local_ack_timeout_err"], 0)

    def test_rule_of_a_topology(self):
        with apps.folder() as path:
            topology = path / "lossy.toml"
            topology.write_text('base = "back-to-back"\n'
                                '[[fault]]\naction = "drop"\nopcode = "WRITE_LAST"\nnth = [2, 5]\n')
            counters = self.counters("--topology", topology)
            self.assertEqual(counters["h1"]["link.dropped"], 2)
            described = apps.call("describe", "topology", "--topology", topology)
        self.assertIn("fault rule 1: drop,opcode=WRITE_LAST,nth=2+5", described.out)

    def test_capture_says_what_befell_a_frame(self):
        result, packets = apps.run_with_capture("ib_write_bw -n 100", "--fault", "drop,opcode=WRITE_MIDDLE,nth=20",
                                                "--fault", "delay,opcode=ACKNOWLEDGE,nth=3,by=1us")
        self.assert_succeeded(result)
        marked = [packet for packet in packets if packet.comment]
        self.assertEqual([(packet.interface, packet.comment) for packet in marked],
                         [("h1", "dropped by fault rule 1"), ("h0", "delayed by fault rule 2")])
        self.assertEqual([packet.opcode for packet in marked], [apps.Opcode.WRITE_MIDDLE, apps.Opcode.ACK])
        # The capture has the lost packet twice: the original and the retransmission.
        self.assertEqual(len([packet for packet in packets if packet.is_roce() and packet.psn == marked[0].psn
                              and packet.opcode == apps.Opcode.WRITE_MIDDLE]), 2)

    def test_mistakes(self):
        for fault, named in {"drop=2": "'2' is out of range", "delay=2us": "by=2us", "drop,host=h9": "'h9'",
                             "drop,opcode=SENT": "did you mean SEND?", "lose": "'lose'"}.items():
            result = apps.run("true", "--fault", fault)
            self.assertEqual(result.status, USAGE_ERROR, result)
            self.assertIn(f"rnicsim: --fault {fault}: fault rule 1: ", result.err)
            self.assertIn(named, result.err)


if __name__ == "__main__":
    apps.main()
