#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Stock programs that connect through librdmacm, on two hosts: their own checks and their exit status.

usage: rdmacm_programs_test.py path/to/rnicsim [Class[.test] ...]
"""
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing  # noqa: E402

V4, V6 = "10.0.0.1", "fd00::1"


class Programs(LeavesNothing):
    def pair(self, server, client):
        result = self.run_on(("h0", server), ("h1", client))
        self.assert_succeeded(result)
        return result

    def pair_until_killed(self, server, client, begin=1, end=20):
        """A server that runs for ever and is killed by its shell; `begin` and `end` are in simulated seconds."""
        kill = f"{server} & server=$!; sleep {end}; kill $server; wait; echo over"
        result = self.run_on(("h0", f"sh -c '{kill}'"), ("h1", f"sh -c 'sleep {begin}; {client}'"))
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.text("h0"), r"over\s*$", result)
        return result


class Examples(Programs):
    """Examples of rdmacm-utils."""

    def test_rping(self):
        for address in V4, V6:
            with self.subTest(address):
                result = self.pair(f"rping -s -C 100 -v -a {address}", f"rping -c -C 100 -v -a {address}")
                for host, label in ("h0", "server ping data"), ("h1", "ping data"):
                    pings = [line for line in result.lines(host) if line.startswith(f"{label}: rdma-ping-")]
                    self.assertEqual(len(pings), 100, result)

    # rping's main thread closes the event channel while another thread waits for an event. On Linux, the other thread
    # continues to sleep.
    def test_rping_ends_well_in_real_time(self):
        for _ in range(10):
            result = apps.run_on([("h0", f"rping -s -C 10 -a {V4}"), ("h1", f"rping -c -C 10 -a {V4}")], "--time=real")
            self.assertEqual(result.status, 0, result)

    def test_rping_serves_several_clients(self):
        clients = " & ".join(f"rping -c -C {count} -v -a {V4}" for count in (3, 5, 7))
        result = self.pair_until_killed(f"rping -s -P -a {V4}", f"{clients} & wait")
        self.assertEqual(sum("ping data: rdma-ping-" in line for line in result.lines("h1")), 3 + 5 + 7, result)

    def test_ucmatose(self):
        for address in V4, V6, "h0":
            with self.subTest(address):
                result = self.pair("ucmatose -C 10" + (f" -b {V6}" if address == V6 else ""),
                                   f"ucmatose -s {address} -C 10")
                for host in "h0", "h1":
                    self.assertIn("data transfers complete", result.lines(host))
                    self.assertEqual(result.lines(host)[-1], "return status 0", result)

    def test_ucmatose_moves_its_ids(self):
        result = self.pair("ucmatose -C 4 -m", f"ucmatose -s {V4} -C 4 -m")
        self.assertIn("migrating to new event channel", result.text("h1"))
        self.assertEqual(result.lines("h1")[-1], "return status 0", result)

    def test_udaddy(self):
        for server, client in ("udaddy", V4), (f"udaddy -b {V6}", V6):
            with self.subTest(client):
                result = self.pair(f"{server} -C 3", f"udaddy -s {client} -C 3")
                for host in "h0", "h1":
                    self.assertEqual(result.lines(host)[-1], "return status 0", result)

    def test_mckey(self):
        result = self.pair("mckey -m 224.1.1.1", "mckey -m 224.1.1.1 -s")
        self.assertIn("mckey: joined dgid: ::ffff:224.1.1.1 mlid 0x0 sl 0", result.lines("h1"))
        for host in "h0", "h1":
            self.assertEqual(result.lines(host)[-1], "return status 0", result)

    def test_rdma_client(self):
        for name in "rdma_", "rdma_x":
            with self.subTest(name):
                result = self.pair(f"{name}server", f"{name}client -s {V4}")
                self.assertEqual(result.lines("h0")[-1], f"{name}server: end 0", result)
                self.assertEqual(result.lines("h1")[-1], f"{name}client: end 0", result)

    def test_cmtime(self):
        result = self.pair_until_killed("cmtime -c 1000", f"cmtime -c 1000 -s {V4}")
        self.assertRegex(result.text("h1"), r"connect +: +\d+\.\d\d")


class Many(Programs):
    def test_a_thousand_clients_on_sixteen_hosts(self):
        each, clients = 67, range(1, 16)
        commands = [("h0", f"ucmatose -c {each * len(clients)} -C 1")]
        commands += [(f"h{host}", f"sh -c 'sleep 1; exec ucmatose -s {V4} -c {each} -C 1'") for host in clients]
        result = apps.run_on(commands, "--topology", "star:16", env=self.environment)
        self.assert_succeeded(result)
        for host in ("h0", *(f"h{host}" for host in clients)):
            self.assertIn("data transfers complete", result.lines(host), result)
            self.assertEqual(result.lines(host)[-1], "return status 0", result)


class Rsockets(Programs):
    def test_rstream(self):
        for how in "", " -T a", " -T b", " -T s", " -T f":
            with self.subTest(how):
                size = "-S 4096 -I 10 -C 10"
                result = self.pair(f"rstream {size}{how}", f"rstream -s {V4} {size}{how}")
                self.assertRegex(result.lines("h1")[-1], r"^custom +4k +10 +10 ")

    def test_rstream_verifies(self):
        result = self.pair("rstream -S 65536 -I 1 -C 20 -T v", f"rstream -s {V4} -S 65536 -I 1 -C 20 -T v")
        self.assertRegex(result.lines("h1")[-1], r"^custom +64k +20 +1 ")

    def test_riostream(self):
        size = "-S 65536 -I 2 -C 10"
        result = self.pair(f"riostream {size} -T v", f"riostream -s {V4} {size} -T v")
        self.assertRegex(result.lines("h1")[-1], r"^custom +64k +10 +2 ")

    def test_rcopy(self):
        result = self.pair_until_killed("rcopy", f"rcopy /bin/ls {V4}:/tmp/got")
        size = os.path.getsize("/bin/ls")
        self.assertIn(f"transferring...{size} bytes...closing...done", result.text("h0"), result)

    def test_udpong(self):
        size = "-S 1000 -C 50"
        for how in "-T a", "-T b":
            with self.subTest(how):
                result = self.pair(f"udpong {how}", f"udpong -s {V4} {size} {how}")
                self.assertRegex(result.lines("h1")[-1], r"^custom +1000 +50 +48k ")
        # The client polls without blocking, for ever.
        result = self.pair_until_killed("udpong", f"udpong -s {V4} {size}", begin=0, end=0.1)
        self.assertRegex(result.lines("h1")[-1], r"^custom +1000 +50 +48k ")

    def test_preloaded(self):
        """A program of ordinary sockets runs on rsockets by librspreload.so."""
        serve = "s = socket.create_server((\"10.0.0.1\", 5000)); c = s.accept()[0]; c.sendall(c.recv(99)); c.recv(1)"
        ask = ("time.sleep(1); c = socket.create_connection((\"10.0.0.1\", 5000)); c.sendall(b\"by RDMA\"); "
               "print(c.recv(99).decode())")
        preloaded = "sh -c 'LD_PRELOAD=librspreload.so /usr/bin/python3 -c \"$0\"' 'import socket, time; {}'"
        result = self.pair(preloaded.format(serve), preloaded.format(ask))
        self.assertEqual(result.lines("h1"), ["by RDMA"], result)
        self.assertRegex(result.summary(), r"kernel\.cm\.sent +[1-9]", result)


class Perftest(Programs):
    def test_connected(self):
        for program in ("ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat",
                        "ib_atomic_bw", "ib_atomic_lat"):
            with self.subTest(program):
                result = self.call("run", "--", program, "-R", "-n", "20")
                self.assert_succeeded(result)
                self.assertIn("Data ex. method : rdma_cm", result.text("h1"))

    def test_datagrams(self):
        for program in "ib_send_bw", "ib_send_lat":
            with self.subTest(program):
                self.assert_succeeded(self.call("run", "--", program, "-R", "-c", "UD", "-n", "20"))


class Others(Programs):
    def test_qperf(self):
        result = self.pair("qperf", f"qperf {V4} -cm1 -n 20000 rc_bw rc_bw")
        self.assertEqual(len(re.findall(r"bw += +[1-9]", result.text("h1"))), 2, result)

    @unittest.skipUnless(shutil.which("fi_info"), "no libfabric-bin")
    def test_libfabric(self):
        listed = self.run_on(("h0", "fi_info -p verbs"))
        self.assert_succeeded(listed)
        self.assertRegex(listed.text("h0"), r"type: FI_EP_MSG\n +protocol: FI_PROTO_RDMA_CM_IB_RC")
        for endpoint in "msg", "rdm":
            with self.subTest(endpoint):
                result = self.pair(f"fi_pingpong -p verbs -e {endpoint}", f"fi_pingpong -p verbs -e {endpoint} {V4}")
                self.assertRegex(result.lines("h1")[-1], r"^1m +10 +=10 ")

    @unittest.skipUnless(shutil.which("fio"), "no fio")
    def test_fio(self):
        """fio verifies messages where they arrive."""
        with apps.folder() as folder:
            common = "[job]\nioengine=rdma\nport=7174\nbs=16k\nsize=256k\nverify=md5\nverify_state_save=0\n"
            (folder / "server").write_text(common + "rw=read\niodepth=16\n")
            for verb in "write", "read", "send":
                with self.subTest(verb):
                    (folder / "client").write_text(
                        f"{common}hostname={V4}\nverb={verb}\niodepth=4\nrw=write\ndo_verify=0\n")
                    result = self.run_on(("h0", f"fio {folder}/server"), ("h1", f"fio {folder}/client"))
                    # fio's timerfd is the real kernel's: the run is not reproducible
                    self.assertEqual(result.status, 0, result)
                    for host in "h0", "h1":
                        self.assertIn("err= 0: ", result.text(host), result)
                    self.assertIn("io=256KiB ", result.text("h1"), result)


if __name__ == "__main__":
    apps.main()
