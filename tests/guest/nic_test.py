#!/usr/bin/env python3
"""The NIC in two guests of `rnicsim vm`: stock programs on our driver and provider, faults, misuse.

usage: nic_test.py path/to/rnicsim [TESTS]
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guests_test import GuestTest, on, vm  # noqa: E402
import apps  # noqa: E402

PERFTEST = "-d rnic0 -x 1 -F"


def pairs(*commands):
    """Server on g0, then client on g1, for each command."""
    return [(guest, command + (" g0" if guest == "g1" else "")) for command in commands for guest in ("g0", "g1")]


class NicTest(GuestTest):
    def run_on_both(self, *commands, options=()):
        result = vm("--check", "--audit", *options, *on(*commands))
        self.assert_ended(result, 0)
        self.assertEqual(result.err.count(" 0 findings"), 2, result)
        return result


class Programs(NicTest):
    def test_device(self):
        result = self.run_on_both(("g0", "ibv_devinfo -v; rdma link; ls /sys/class/infiniband/rnic0/ports/1"))
        for words in ("hca_id:\trnic0", "PORT_ACTIVE (4)", "link rnic0/1 state ACTIVE", "hw_counters"):
            self.assertIn(words, result.text("g0"))

    def test_pingpongs(self):
        result = self.run_on_both(*pairs(
            "ibv_rc_pingpong -g 1 -c", "ibv_rc_pingpong -g 1 -e", "ibv_uc_pingpong -g 1",
            "ibv_ud_pingpong -g 1 -s 1024", "ibv_srq_pingpong -g 1", "ibv_rc_pingpong -g 1 -N"))
        self.assertEqual(len(re.findall(r"(?m)^\d+ iters in ", result.text("g1"))), 6, result)

    def test_perftest(self):
        programs = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_send_bw -c UD", "ib_send_bw -c UC",
                    "ib_send_bw --use-srq", "ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_bw",
                    "ib_atomic_lat -A FETCH_AND_ADD"]
        result = self.run_on_both(*pairs(*[f"{name} {PERFTEST} -n 1000" for name in programs]))
        self.assertEqual(len(apps.perftest_rows(result.lines("g1"))), len(programs), result)

    def test_a_hundred_thousand_messages(self):
        result = self.run_on_both(*pairs(f"ib_write_bw {PERFTEST} -n 100000 -s 4096"))
        self.assertRegex(result.text("g1"), r"(?m)^\s*4096\s+100000\s")
        self.assertRegex(result.out, r"nic\.rx\.payload_bytes +409600000 ")

    def test_connection_manager(self):
        result = self.run_on_both(("g0", "rping -s -C 10 -v"), ("g1", "rping -c -a 10.0.0.1 -C 10 -v"),
                                  ("g0", "ucmatose"), ("g1", "ucmatose -s 10.0.0.1"),
                                  ("g0", "udaddy"), ("g1", "udaddy -s 10.0.0.1"),
                                  ("g0", f"ib_send_bw {PERFTEST} -R -n 1000"),
                                  ("g1", f"ib_send_bw {PERFTEST} -R -n 1000 10.0.0.1"))
        self.assertEqual(result.text("g1").count("rdma-ping-"), 10, result)
        self.assertEqual(result.text("g1").count("return status 0"), 2, result)


class Faults(NicTest):
    def test_lost_packets(self):
        result = vm("--audit", "--fault", "drop=0.01,host=h0", "--fault", "drop=0.01,host=h1",
                    *on(*pairs(f"ib_send_bw {PERFTEST} -n 5000 -s 4096", "ibv_rc_pingpong -g 1 -c")))
        self.assert_ended(result, 0)
        self.assertTrue(apps.perftest_rows(result.lines("g1")), result)

    def test_a_link_that_goes_down_and_comes_back(self):
        result = vm("--fault", "link_down,host=h0,at=60s,for=3s",
                    *on(("g0", "until grep -q DOWN /sys/class/infiniband/rnic0/ports/1/state; do sleep 0.2; done; "
                               "until grep -q ACTIVE /sys/class/infiniband/rnic0/ports/1/state; do sleep 0.2; done; "
                               "echo back")))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0"), ["back"])

    def test_driver_is_unbound_and_bound_under_traffic(self):
        rebind = ("sleep 3; cd /sys/bus/pci/drivers/rnic && d=$(ls -d 0000:*) && echo $d >unbind && echo $d >bind && "
                  "sleep 1 && ibv_devinfo >/dev/null && echo bound")
        result = vm(*on(("g0", f"ib_write_bw {PERFTEST} -D 30; true"),
                        ("g1", f"timeout 60 ib_write_bw {PERFTEST} -D 30 g0; true"), ("g1", rebind),
                        ("g1", "pkill ib_write_bw; true"), ("g0", "pkill ib_write_bw; true")))
        self.assert_ended(result, 0)
        self.assertIn("bound", result.lines("g1"))

    def test_a_program_that_is_killed_leaves_nothing(self):
        result = self.run_on_both(
            ("g0", f"ib_send_bw {PERFTEST} -D 60 & sleep 2; kill -9 $!; wait; rdma resource show"))
        self.assertRegex(result.text("g0"), r"rnic0: qp 1 cq \d+ pd 1 mr 0|rnic0:.* qp 1 ")


if __name__ == "__main__":
    apps.main()
