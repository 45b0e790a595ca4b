#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A port's counters in sysfs have mlx5's names, and show the device's values at the time of the read.

usage: port_counters_test.py path/to/rnicsim     (needs perftest)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

PORT = "/sys/class/infiniband/rnic0/ports/1"
# Files of an mlx5 port with RoCE on Linux 6.1.
COUNTERS = """VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
    multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors
    port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors
    port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets
    unicast_xmit_packets""".split()
HARDWARE = """duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent
    np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error
    req_remote_access_errors req_remote_invalid_request resp_cqe_error resp_cqe_flush_error resp_local_length_error
    resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart
    roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored rx_atomic_requests
    rx_icrc_encapsulated rx_read_requests rx_write_requests""".split()
# Reads two counters before and after a transfer, in each way that a program may use: opens the path again, reads the
# open descriptor again from the start, reads a stream, opens relative to the folder.
PROGRAM = f"""
import os, subprocess
port = "{PORT}"
path = port + "/hw_counters/rx_write_requests"
fd, stream = os.open(path, os.O_RDONLY), open(path)
os.chdir(port + "/counters")
def values():
    os.lseek(fd, 0, 0)
    stream.seek(0)
    folder = os.open(port + "/hw_counters", os.O_RDONLY)
    at = os.open("rx_write_requests", os.O_RDONLY, dir_fd=folder)
    found = [int(os.read(fd, 20)), int(stream.read()), int(os.pread(fd, 20, 0)), int(open(path).read()),
             int(os.read(at, 20)), int(open("port_rcv_packets").read())]
    os.close(at)
    os.close(folder)
    return found
before = values()
subprocess.run(["ib_write_bw", "-n", "100", "-s", "4096"], check=True, stdout=subprocess.DEVNULL)
print("before", *before)
print("after", *values())
"""


class PortCounters(apps.TestCase):
    def test_the_files_are_there(self):
        result = self.assert_succeeded(apps.run_on([("h0", f"ls {PORT}/counters"), ("h1", f"ls {PORT}/hw_counters")]))
        self.assertEqual(set(COUNTERS) - set(result.lines("h0")), set())
        self.assertEqual(set(HARDWARE) - set(result.lines("h1")), set())

    def test_perftest_reports_them(self):
        names = "counters/port_xmit_data,hw_counters/rx_write_requests"
        result = self.assert_succeeded(apps.run(f"ib_write_bw -n 100 -s 4096 -W {names}"))
        # 100 WRITEs of one packet each; perftest posts a few more to warm up.
        for host, name, least, most in (("h1", "port_xmit_data", 100 * 1024, 120 * 1100),
                                        ("h0", "rx_write_requests", 100, 120)):
            shown = re.search(rf"{name}\D+(\d+)", result.text(host))
            self.assertTrue(shown, result)
            self.assertTrue(least <= int(shown.group(1)) <= most, result)

    def test_however_they_are_read(self):
        program = "python3 -c '" + PROGRAM.replace("'", '"') + "'"
        result = self.assert_succeeded(apps.run_on([("h0", program), ("h1", "ib_write_bw -n 100 -s 4096 10.0.0.1")]))
        rows = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in result.lines("h0")}
        self.assertEqual(rows["before"][:5], [0] * 5, result)
        writes = rows["after"][0]
        self.assertTrue(100 <= writes <= 120, result)
        self.assertEqual(rows["after"][:5], [writes] * 5, result)
        self.assertGreaterEqual(rows["after"][5] - rows["before"][5], writes)

    # Two senders and a switch that marks packets: the receiver sends CNPs, and each sender counts the CNPs for its
    # marks.
    def test_marks_and_notifications(self):
        def cat(*names):
            return f"cd {PORT}/hw_counters; cat " + " ".join(names)
        receiver, sender = ("np_cnp_sent", "np_ecn_marked_roce_packets"), ("rp_cnp_handled", "rp_cnp_ignored")
        transfer = "ib_write_bw -n 5000 -s 65536 -F -p"
        result = self.assert_succeeded(apps.run_on(
            [("h0", f"sh -c '{transfer} 1111 & {transfer} 2222; wait; {cat(*receiver)}'"),
             ("h1", f"sh -c '{transfer} 1111 10.0.0.1; {cat(*sender)}'"),
             ("h2", f"sh -c '{transfer} 2222 10.0.0.1; {cat(*sender)}'")],
            "--topology", "star:3", "--set", "switch.ecn.priorities=1", "--set", "switch.ecn.kmin=20KB",
            "--set", "switch.ecn.kmax=40KB", "--set", "nic.congestion.ecn=forced",
            "--set", "nic.congestion.control=dcqcn"))
        sent, marked = map(int, result.lines("h0")[-2:])
        handled, ignored = (sum(int(result.lines(host)[at]) for host in ("h1", "h2")) for at in (-2, -1))
        self.assertGreater(sent, 0, result)
        self.assertGreaterEqual(marked, sent, result)
        self.assertEqual((handled, ignored), (sent, 0), result)


if __name__ == "__main__":
    apps.main()
