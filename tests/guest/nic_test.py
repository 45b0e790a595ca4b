#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The NIC in two guests of `rnicsim vm`: stock programs and kernel users, on the project's driver and provider; the
driver's Ethernet port; faults, misuse.

usage: nic_test.py path/to/rnicsim [TESTS]
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guests_test import GuestTest, on, vm  # noqa: E402
import apps  # noqa: E402

PERFTEST = "-d rnic0 -x 1 -F"
PROGRAMS = pathlib.Path(__file__).resolve().with_name("programs")


def pairs(*commands):
    """(guest, command) pairs: the server on g0, then the client on g1, for each command."""
    return [(guest, command + (" g0" if guest == "g1" else "")) for command in commands for guest in ("g0", "g1")]


class NicTest(GuestTest):
    def run_on_both(self, *commands, options=(), files=()):
        added = [word for file in files for word in ("--add", str(file))]
        # Before apps.py gives up: the launcher tells which commands still run.
        limit = ("--wall-limit", f"{apps.RUN_SECONDS - 100}s")
        result = vm("--check", "--audit", *limit, *options, *added, *on(*commands))
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
        # With -e a program arms its CQ before it polls: CQEs that are already in the CQ must raise an event.
        programs = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_send_bw -c UD", "ib_send_bw -c UC",
                    "ib_send_bw --use-srq", "ib_write_lat", "ib_read_lat", "ib_send_lat",
                    "timeout 100 ib_send_lat -e", "ib_atomic_bw", "ib_atomic_lat -A FETCH_AND_ADD"]
        result = self.run_on_both(*pairs(*[f"{name} {PERFTEST} -n 1000" for name in programs]))
        self.assertEqual(len(apps.perftest_rows(result.lines("g1"))), len(programs), result)

    def test_a_hundred_thousand_messages(self):
        result = self.run_on_both(*pairs(f"ib_write_bw {PERFTEST} -n 100000 -s 4096"))
        self.assertRegex(result.text("g1"), r"(?m)^\s*4096\s+100000\s")
        self.assertRegex(result.out, r"nic\.rx\.payload_bytes +409600000 ")

    def test_connection_manager(self):
        # rping's server reports its own flushed receives as an error, if it sees them before its end.
        result = self.run_on_both(("g0", "rping -s -C 10 -v || true"), ("g1", "rping -c -a 10.0.0.1 -C 10 -v"),
                                  ("g0", "ucmatose"), ("g1", "ucmatose -s 10.0.0.1"),
                                  ("g0", "udaddy"), ("g1", "udaddy -s 10.0.0.1"),
                                  ("g0", f"ib_send_bw {PERFTEST} -R -n 1000"),
                                  ("g1", f"ib_send_bw {PERFTEST} -R -n 1000 10.0.0.1"))
        self.assertEqual(result.text("g1").count("rdma-ping-"), 10, result)
        self.assertEqual(result.text("g1").count("return status 0"), 2, result)


class ManyAccesses(NicTest):
    def test_a_million_accesses_without_a_finding(self):
        result = self.run_on_both(*pairs(f"ib_write_bw {PERFTEST} -n 1000000 -s 8"))
        accesses = [int(count) for count in re.findall(r"check: h\d: (\d+) accesses, 0 findings", result.err)]
        self.assertGreater(max(accesses), 1_000_000, result)


class Ethernet(NicTest):
    """eth1, which the driver makes from raw packets; its addresses are those of the guests' names and of the GIDs."""
    RECEIVE = "mkfifo -m 600 open; busybox nc -l -p 7000 <>open | md5sum; rm open"
    SEND = "head -c 20000000 /dev/urandom >data; busybox nc g0 7000 <data; md5sum <data"

    def assert_same_data(self, result):
        sums = [re.findall(r"(?m)^[0-9a-f]{32}  -$", result.text(guest)) for guest in ("g0", "g1")]
        self.assertTrue(sums[0], result)
        self.assertEqual(*sums, result)

    def test_frames(self):
        result = self.run_on_both(
            ("g1", "ethtool eth1; ping -c 2 g0; ping -c 2 -s 20000 g0; ping -M do -c 2 -s 4172 g0; "
                   "ping -c 2 ff02::1%eth1"),
            ("g0", self.RECEIVE), ("g1", self.SEND))
        self.assertIn("Speed: 100000Mb/s", result.text("g1"))
        self.assertEqual(result.text("g1").count("2 received"), 4, result)
        # The other guest answers, and the kernel's loopback for the own host; the device does not loop multicast back.
        self.assertRegex(result.text("g1"), r"2 received, \+[12] duplicates")
        self.assert_same_data(result)
        # Over the simulated wire, in segments of at most 4148 bytes.
        self.assertGreater(int(re.search(r"nic\.raw\.frames +(\d+)", result.out)[1]), 20000000 // 4148, result)

    def test_port_is_changed_under_traffic(self):
        changes = ("sleep 1; for m in 1500 9000 1280 4200; do ip link set eth1 mtu $m; sleep 0.3; done; "
                   "for i in 1 2 3; do ip link set eth1 down; ip link set eth1 up; sleep 0.3; done; "
                   "ip link set eth1 promisc on; sleep 0.3; ip link set eth1 promisc off; "
                   "ip link set eth1 address 02:00:00:00:77:01; ip neigh flush all; ping -c 1 g0 && echo changed >done")
        # A queue pair does not outlive a change of its peer's MAC address: the client starts behind the change.
        result = self.run_on_both(("g0", self.RECEIVE), ("g1", self.SEND), ("g1", changes + "; cat done"),
                                  ("g0", "ibv_rc_pingpong -g 1"),
                                  ("g1", "until [ -e done ]; do sleep 0.2; done; ibv_rc_pingpong -g 1 g0"))
        self.assertIn("changed", result.lines("g1"))
        self.assert_same_data(result)

    def test_mtu_of_the_rdma_device_is_the_ports(self):
        result = self.run_on_both(
            ("g0", "for m in 1500 4200; do ip link set eth1 mtu $m; ibv_devinfo | grep active_mtu; done"))
        self.assertEqual([line.split()[1] for line in result.lines("g0")], ["1024", "4096"])

    def test_gids_of_another_network_device(self):
        result = vm("--kernel-words", "rnic.netdev=eth0", "--check",
                    *on(("g0", "cat /sys/class/infiniband/rnic0/ports/1/gid_attrs/ndevs/1; ls /sys/class/net"),
                        *pairs("ibv_rc_pingpong -g 1")))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0")[:3], ["eth0", "eth0", "lo"])


class Vlans(NicTest):
    """A network device of a VLAN on the port: its GIDs are in the VLAN, and packets from these GIDs have its tag."""
    GID = "$(basename $(grep -l 0a09:000{0} /sys/class/infiniband/rnic0/ports/1/gids/*))"

    def test_queue_pairs_and_connections(self):
        up = ("modprobe 8021q && ip link add link eth1 name eth1.100 type vlan id 100 && "
              "ip addr add 10.9.0.{0}/24 dev eth1.100 && ip link set eth1.100 up; sleep 2; "
              "cat /sys/class/infiniband/rnic0/ports/1/gid_attrs/ndevs/" + self.GID)
        with apps.folder() as folder:
            result = self.run_on_both(
                ("g0", up.format(1)), ("g1", up.format(2)),
                ("g0", f"ibv_rc_pingpong -l 5 -g {self.GID.format(1)}"),
                ("g1", f"ibv_rc_pingpong -l 5 -g {self.GID.format(2)} g0"),
                ("g0", "rping -s -a 10.9.0.1 -C 10 -v || true"), ("g1", "rping -c -a 10.9.0.1 -C 10 -v"),
                options=("--pcap", folder / "vlan.pcapng"))
            frames = (folder / "vlan.pcapng").read_bytes()
        for guest in ("g0", "g1"):
            self.assertIn("eth1.100", result.lines(guest), result)
        self.assertEqual(len(re.findall(r"(?m)^\d+ iters in ", result.text("g1"))), 1, result)
        self.assertEqual(result.text("g1").count("rdma-ping-"), 10, result)
        # UDP to port 4791 after a tag. The TCI of the ping-pong's packets has the service level of the ping-pong.
        tagged = re.findall(rb"\x81\x00(..)\x08\x00\x45.{21}\x12\xb7", frames, re.S)
        self.assertGreater(tagged.count(b"\xa0\x64"), 1000, result)
        self.assertGreater(tagged.count(b"\x00\x64"), 10, result)


class KernelUsers(NicTest):
    """Kernel users that register memory by work requests, at both ends of the wire."""

    def test_nvme(self):
        result = self.run_on_both(("g0", "nvme_target.sh 10.0.0.1 48"), ("g1", "nvme_file_system.sh 10.0.0.1 16"),
                                  files=(PROGRAMS / "nvme_target.sh", PROGRAMS / "nvme_file_system.sh"))
        self.assertIn("read back: 16 MiB", result.lines("g1"))
        self.assertGreater(int(re.search(r"nic\.rx\.payload_bytes +(\d+)", result.out)[1]), 16 << 20, result)

    def test_nfs(self):
        result = self.run_on_both(("g0", "nfs_server.sh 48"), ("g1", "nfs_files.sh 10.0.0.1 16"),
                                  files=(PROGRAMS / "nfs_server.sh", PROGRAMS / "nfs_files.sh"))
        # A listener for each version of IP, and none but of RDMA.
        self.assertEqual(set(result.lines("g0")), {"rdma 20049"}, result)
        self.assertEqual(result.lines("g1"), ["proto=rdma", "12345678", "read back: 16 MiB"], result)
        self.assertGreater(int(re.search(r"nic\.rx\.payload_bytes +(\d+)", result.out)[1]), 16 << 20, result)

    def test_rds(self):
        program = apps.built("rds_messages", (PROGRAMS / "rds_messages.c").read_text())
        result = self.run_on_both(("g[0-1]", "modprobe rds_rdma"), ("g0", "rds_messages receive 10.0.0.1 300"),
                                  ("g1", "rds_messages send 10.0.0.2 10.0.0.1 300"), files=(program,))
        self.assertEqual(result.lines("g0"), result.lines("g1"), result)
        self.assertIn("checksum", result.text("g0"))
        self.assertGreater(int(re.search(r"nic\.rx\.payload_bytes +(\d+)", result.out)[1]), 8000000, result)


class Faults(NicTest):
    def test_lost_packets(self):
        result = vm("--audit", "--fault", "drop=0.01,host=h0", "--fault", "drop=0.01,host=h1",
                    *on(*pairs(f"ib_send_bw {PERFTEST} -n 5000 -s 4096", "ibv_rc_pingpong -g 1 -c")))
        self.assert_ended(result, 0)
        self.assertTrue(apps.perftest_rows(result.lines("g1")), result)

    def test_a_link_that_goes_down_and_comes_back(self):
        # A fault every 20 s, because the time of a guest's boot is not known.
        faults = [word for at in range(30, 900, 20) for word in ("--fault", f"link_down,host=h0,at={at}s,for=8s")]
        wait = "until grep -q {} /sys/class/infiniband/rnic0/ports/1/state; do sleep 0.2; done; "
        link = "cat /sys/class/net/eth1/carrier; "
        result = vm(*faults, *on(("g0", wait.format("ACTIVE") + wait.format("DOWN") + "sleep 1; " + link +
                                  wait.format("ACTIVE") + "sleep 1; " + link + "echo back")))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0"), ["0", "1", "back"])

    def test_a_device_that_fails_under_traffic_works_after_a_reset(self):
        # The device of g0 fails every 120 s, because the time of a guest's boot is not known.
        faults = [word for at in range(40, 900, 120) for word in ("--fault", f"fatal,host=h0,at={at}s")]
        program = apps.built("first_event", (PROGRAMS / "first_event.c").read_text(), "-libverbs")
        failure = ("busybox nc -l -p 7000 >/dev/null & first_event rnic0; "
                   "until [ $(cat /sys/class/net/eth1/carrier) = 0 ]; do sleep 0.2; done; "
                   "dmesg | grep -o 'device stopped: [^;]*'; "
                   # Calls fail at once, and the port goes down without the device.
                   "ibv_rc_pingpong -g 1 2>/dev/null || echo no pingpong; "
                   "ip link set eth1 mtu 1500 || echo no new queues; ip link set eth1 up || echo no queues; ")
        again = ("cd /sys/bus/pci/drivers/rnic && d=$(ls -d 0000:*) && echo $d >unbind && echo $d >bind && "
                 "ip link set eth1 mtu 4200 && ip address add 10.0.0.1/24 dev eth1 && ip link set eth1 up && "
                 "until ping -c 1 -W 1 g1 >/dev/null; do sleep 0.2; done; ibv_rc_pingpong -g 1 -c")
        result = vm(*faults, "--add", program,
                    *on(("g0", failure + again), ("g1", "timeout 60 busybox nc g0 7000 </dev/zero; true"),
                        ("g1", "until ibv_rc_pingpong -g 1 -c g0 2>/dev/null; do sleep 0.5; done")))
        self.assert_ended(result, 0)
        for line in ("event: local catastrophic error", "device stopped: the device reports a fatal error",
                     "no pingpong", "no new queues", "no queues"):
            self.assertIn(line, result.lines("g0"), result)
        self.assertRegex(result.text("g1"), r"(?m)^1000 iters in ")

    def test_driver_is_unbound_and_bound_under_traffic(self):
        rebind = ("sleep 3; cd /sys/bus/pci/drivers/rnic && d=$(ls -d 0000:*) && echo $d >unbind && echo $d >bind && "
                  "sleep 1 && ibv_devinfo >/dev/null && echo bound")
        # The client's TCP connection uses the Ethernet port: the unbind cuts the server off from its client.
        result = vm(*on(("g0", f"timeout 60 ib_write_bw {PERFTEST} -D 30; true"),
                        ("g1", f"timeout 60 ib_write_bw {PERFTEST} -D 30 g0; true"), ("g1", rebind)))
        self.assert_ended(result, 0)
        self.assertIn("bound", result.lines("g1"))

    def test_rings_outlive_the_driver(self):
        unbind = "until [ -e polls ]; do sleep 0.2; done; cd /sys/bus/pci/drivers/rnic && echo 0000:* >unbind"
        result = vm("--guests", "1", "--with", "python", "--memory", "512MiB", "--add", str(PROGRAMS / "late_polls.py"),
                    *on(("g0", "python3 -B late_polls.py"), ("g0", unbind)))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0"), ["no completion"])

    def test_a_program_that_is_killed_leaves_nothing(self):
        result = self.run_on_both(
            ("g0", f"ib_send_bw {PERFTEST} -D 60 & sleep 2; kill -9 $!; wait; rdma resource show"))
        self.assertRegex(result.text("g0"), r"rnic0: qp 1 cq \d+ pd 1 mr 0|rnic0:.* qp 1 ")


if __name__ == "__main__":
    apps.main()
