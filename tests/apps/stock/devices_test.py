#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts with two NICs: stock programs on either, and programs that use both.

usage: devices_test.py path/to/rnicsim     (needs gcc, ibverbs-utils, perftest, rdmacm-utils and ucx-utils)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402


ONE_SWITCH = """
[[hosts]]
name = "h0"
[[devices]]
host = "h0"
[[switches]]
name = "s0"
[[cables]]
from = "h0"
to = "s0"
[[cables]]
from = "h0:1"
to = "s0"
"""


class Devices(apps.LeavesNothing):
    def on_rails(self, *commands, **options):
        return self.assert_succeeded(
            apps.run_on(commands, "--topology", "dual-rail", env=self.environment, **options))

    def pair(self, server, client):
        return self.on_rails(("h0", server), ("h1", client))

    def counters(self, *commands):
        """Counters by device, and the result of the run."""
        with apps.folder() as folder:
            result = self.assert_succeeded(apps.run_on(commands, "--topology", "dual-rail", "--json", folder / "r.json",
                                                       env=self.environment))
            hosts = apps.read_json(folder / "r.json")["hosts"]
            return {device: found["counters"] for device, found in hosts.items()}, result

    def test_what_tools_list(self):
        result = self.on_rails(("h0", "ibv_devices"), ("h1", "ibv_devinfo -l"))
        self.assertEqual([line.split() for line in result.lines("h0")[2:]],
                         [["rnic0", "000000fffe000001"], ["rnic1", "000000fffe010001"]])
        self.assertEqual([line.strip() for line in result.lines("h1")[1:3]], ["rnic0", "rnic1"])

    def test_a_stock_program_on_the_second(self):
        program = "ib_write_bw -d rnic1 -n 100"
        counters, result = self.counters(("h0", program), ("h1", f"{program} h0"))
        self.assertRegex(result.text("h1"), r"65536 +100 +\d+\.\d")
        self.assertEqual(counters["h1"]["nic.port.tx_frames"], 0)
        self.assertEqual(counters["h1:1"]["nic.port.tx_frames"], 1600)
        self.assertEqual(counters["h0:1"]["nic.port.rx_frames"], 1600)

    def test_connections_by_either(self):
        for address in "10.0.0.1", "10.1.0.1", "fd00::1", "fd00:1::1":
            with self.subTest(address):
                result = self.pair(f"rping -s -C 3 -v -a {address}", f"rping -c -C 3 -v -a {address}")
                self.assertEqual(sum("ping data" in line for line in result.lines("h1")), 3)

    def test_one_that_listens_to_all_is_reached_by_each(self):
        clients = " & ".join(f"rping -c -C 3 -v -a {address}" for address in ("10.0.0.1", "10.1.0.1"))
        server = "rping -s -P -a 0.0.0.0 & server=$!; sleep 5; kill $server; wait"
        result = apps.run_on([("h0", f"sh -c '{server}'"), ("h1", f"sh -c 'sleep 1; {clients} & wait'")],
                             "--topology", "dual-rail", env=self.environment)
        self.assertEqual(sum("ping data" in line for line in result.lines("h1")), 6, result)

    def test_datagrams_by_the_second(self):
        result = self.pair("udaddy -C 3", "udaddy -s 10.1.0.1 -C 3")
        for host in "h0", "h1":
            self.assertEqual(result.lines(host)[-1], "return status 0", result)

    def test_a_group_is_joined_on_its_device(self):
        counters, result = self.counters(("h0", "mckey -m 224.1.1.1 -b 10.1.0.1"),
                                         ("h1", "mckey -m 224.1.1.1 -b 10.1.1.1 -s"))
        self.assertEqual(result.lines("h0")[-1], "return status 0")
        self.assertEqual(counters["h1"]["nic.port.tx_frames"], 0)
        self.assertGreater(counters["h1:1"]["nic.port.tx_frames"], 0)

    def test_from_one_to_where_the_other_leads_is_no_route(self):
        result = apps.run_on([("h1", "ucmatose -b 10.0.1.1 -s 10.1.0.1 -C 1")], "--topology", "dual-rail",
                             env=self.environment)
        self.assertIn("failure getting addr: Network is unreachable", result.out + result.err)

    def test_sockets_by_either(self):
        """A client's address is the address of the device that carries the connection."""
        with apps.folder() as folder:
            (folder / "server.py").write_text(
                "import socket\n"
                "server = socket.create_server(('', 7000), family=socket.AF_INET6, dualstack_ipv6=True)\n"
                "for _ in range(4):\n    print(server.accept()[1][0], flush=True)\n")
            (folder / "client.py").write_text(
                "import socket\nfor to in 'h0', '10.1.0.1', 'fd00::1', 'fd00:1::1':\n"
                "    print(socket.create_connection((to, 7000)).getsockname()[0])\n")
            result = self.pair(f"python3 {folder}/server.py", f"python3 {folder}/client.py")
        self.assertEqual(result.lines("h1"), ["10.0.1.1", "10.1.1.1", "fd00::1:1", "fd00:1::1:1"])
        self.assertEqual(result.lines("h0"), ["::ffff:10.0.1.1", "::ffff:10.1.1.1", "fd00::1:1", "fd00:1::1:1"])

    def test_interfaces(self):
        names = "import ctypes; libc = ctypes.CDLL(None); " \
                "print(*(libc.if_nametoindex(name) for name in (b'lo', b'eth0', b'eth1', b'eth2')))"
        result = self.on_rails(("h1", f'python3 -c "{names}"'))
        self.assertEqual(result.lines("h1"), ["1 2 3 0"])

    def test_both_rails_at_once(self):
        """UCX stripes large messages over both rails: the rate is higher than that of a single rail."""
        environment = "env UCX_TLS=rc_v,self UCX_MAX_RNDV_RAILS=2 ucx_perftest"
        options = "-t tag_bw -s 4194304 -n 20 -w 2"
        counters, result = self.counters(("h0", f"{environment} {options}"), ("h1", f"{environment} h0 {options}"))
        last = [line for line in result.lines("h1") if line.startswith("Final:")][-1]
        self.assertGreater(float(last.split()[-3]), 14_000)  # MB/s
        for rail in "h1", "h1:1":
            self.assertGreater(counters[rail]["nic.port.tx_bytes"], 30 << 20)

    def test_a_program_with_both(self):
        program = built("two_devices", (apps.PROGRAMS / "verbs" / "two_devices.c").read_text(), "-libverbs")
        with apps.folder() as folder:
            (folder / "one_switch.toml").write_text(ONE_SWITCH)
            result = self.assert_succeeded(apps.run_on([("h0", str(program))], "--topology",
                                                       folder / "one_switch.toml", env=self.environment))
        self.assertEqual(result.lines("h0"), [
            "2 devices: rnic0 uverbs0 0 rnic1 uverbs1 1, another after them 0", "guids differ 1, gids differ 1",
            "write: success, the same 1", "a QP of both 0", "imported rnic1", "its pd 1",
            "again: success, the same 1", "closed 0", "closed 0"])

    def test_an_agent_of_bench_has_the_one_that_its_flow_names(self):
        workload = "schema = 1\ntopology = 'dual-rail'\nmeasure.operations = 200\n" \
                   "[[flow]]\nfrom = ['h0:1']\nto = ['h1:1']\nop = 'write'\nsize = '4 KiB'\n"
        with apps.folder() as folder:
            (folder / "rail.toml").write_text(workload)
            result = apps.call("bench", folder / "rail.toml", "--json", folder / "r.json")
            self.assertEqual(result.status, 0, result)
            hosts = apps.read_json(folder / "r.json")["hosts"]
        self.assertEqual(hosts["h0"]["counters"]["nic.port.tx_frames"], 0)
        self.assertGreaterEqual(hosts["h0:1"]["counters"]["nic.port.tx_frames"], 200)

    def test_reproducible(self):
        commands = (("h0", "ucmatose -C 3"), ("h1", "ucmatose -s 10.1.0.1 -C 3"))
        with apps.folder() as folder:
            for name in "a", "b":
                self.assert_succeeded(apps.run_on(commands, "--topology", "dual-rail", "--record", folder / name,
                                                  "--audit", env=self.environment))
            self.assertEqual((folder / "a").read_bytes(), (folder / "b").read_bytes())


if __name__ == "__main__":
    apps.main()
