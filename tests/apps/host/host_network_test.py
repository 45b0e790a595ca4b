#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A simulated host's network and RDMA devices: output of `ip`, `rdma` and ibstat, and answers of netlink and of the old
ioctl requests.

usage: host_network_test.py path/to/rnicsim
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

CALLS = f"{sys.executable} {apps.PROGRAMS / 'calls' / 'netlink_calls.py'}"

SOCKETS = """
import errno, socket, sys
for family, kind, protocol in (asked.split(",") for asked in sys.argv[1].split("/")):
    try:
        socket.socket(getattr(socket, "AF_" + family), getattr(socket, "SOCK_" + kind), int(protocol)).close()
        print("opened")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


OPTIONS = """unconnected: mss 536, IP_MTU Transport endpoint is not connected
datagrams: IP_TOS 0, IP_TTL 9, TCP_NODELAY Operation not supported
TCP_NODELAY 0, ok, 1
TCP_CORK 0, ok, 1
TCP_MAXSEG 4148, ok, 4148
TCP_KEEPIDLE 7200, ok, 60
TCP_KEEPINTVL 75, ok, 5
TCP_KEEPCNT 9, ok, 3
TCP_USER_TIMEOUT 0, ok, 30000
TCP_QUICKACK 1, ok, 0
TCP_DEFER_ACCEPT 0, ok, 1
IP_TOS 0, ok, 16
IP_TTL 64, ok, 3
SO_KEEPALIVE 0, ok, 1
SO_REUSEPORT 0, ok, 1
cubic, ok, reno, No such file or directory
IP_MTU 4200
refused: TCP_KEEPCNT Invalid argument, IP_TTL Invalid argument, 4711 Protocol not available
TCP_INFO ok, 1 bytes: state 1, rtt 40 us, mss 4148, pmtu 4200, lost 0, window 1"""


class HostNetworkTestCase(apps.TestCase):
    def text(self, command, *options):
        return self.assert_succeeded(apps.run_on([("h0", command)], *options)).text("h0")

    def both(self, command):
        result = self.assert_succeeded(apps.run_on([("h0", command), ("h1", command)]))
        return result.text("h0"), result.text("h1")


class Tools(HostNetworkTestCase):
    def test_addresses(self):
        shown = self.both("ip -j addr")
        for index, text in enumerate(shown):
            lo, eth0 = json.loads(text)
            self.assertEqual((lo["ifname"], eth0["ifname"], eth0["operstate"], eth0["mtu"]), ("lo", "eth0", "UP", 4200))
            self.assertEqual(eth0["address"], f"02:00:00:00:0{index}:01")
            self.assertEqual([(each["family"], each["local"], each["prefixlen"]) for each in eth0["addr_info"]], [
                ("inet", f"10.0.{index}.1", 16), ("inet6", f"fd00::{index}:1".replace("::0:", "::"), 64),
                ("inet6", f"fe80::ff:fe00:{index}01".replace(":001", ":1"), 64)])
        self.assertEqual(shown, self.both("ip -j addr"))

    def test_one_device(self):
        self.assertEqual([each["ifname"] for each in json.loads(self.text("ip -j link show eth0"))], ["eth0"])
        self.assertIn("scope global eth0", self.text("ip -4 addr show dev eth0"))
        self.assertNotEqual(apps.run_on([("h0", "ip link show eth1")]).status, 0)

    def test_routes(self):
        route, = json.loads(self.text("ip -j route"))
        self.assertEqual((route["dst"], route["dev"], route["prefsrc"]), ("10.0.0.0/16", "eth0", "10.0.0.1"))
        way, = json.loads(self.text("ip -j route get 10.0.1.1"))
        self.assertEqual((way["dev"], way["prefsrc"]), ("eth0", "10.0.0.1"))
        way, = json.loads(self.text("ip -j route get 10.0.0.1"))
        self.assertEqual((way["type"], way["dev"]), ("local", "lo"))
        way, = json.loads(self.text("ip -j -6 route get fd00::1:1"))
        self.assertEqual((way["dev"], way["prefsrc"]), ("eth0", "fd00::1"))
        outside = apps.run_on([("h0", "ip route get 8.8.8.8")])
        self.assertIn("Network is unreachable", outside.errors("h0"))

    def test_the_file_of_routes(self):
        line = self.text("cat /proc/net/route").splitlines()[1]
        self.assertEqual(line.split()[:4] + line.split()[7:8], ["eth0", "0000000A", "00000000", "0001", "0000FFFF"])

    def test_neighbours_and_rules(self):
        self.assertEqual([(each["dst"], each["lladdr"]) for each in json.loads(self.text("ip -j neigh"))],
                         [("10.0.1.1", "02:00:00:00:01:01"), ("fd00::1:1", "02:00:00:00:01:01")])
        self.assertEqual([each["table"] for each in json.loads(self.text("ip -j rule"))], ["local", "main", "default"])

    def test_rdma(self):
        link, = json.loads(self.text("rdma -j link"))
        self.assertEqual((link["ifname"], link["port"], link["state"], link["physical_state"], link["netdev"]),
                         ("rnic0", 1, "ACTIVE", "LINK_UP", "eth0"))
        h0, h1 = (json.loads(text)[0] for text in self.both("rdma -j dev"))
        self.assertEqual((h0["fw"], h0["node_guid"], h1["node_guid"]),
                         ("1.0.0", "0000:00ff:fe00:0001", "0000:00ff:fe00:0101"))
        self.assertEqual(self.text("rdma system"), "netns shared copy-on-fork on")
        self.assertIn("Operation not supported", apps.run_on([("h0", "rdma res")]).errors("h0"))

    def test_names(self):
        script = """
import socket
print(socket.gethostbyname("h1"), *socket.gethostbyname_ex("h1"), *socket.gethostbyaddr("10.0.1.1"))
print(*socket.gethostbyaddr("fd00::1:1"), socket.getfqdn(), socket.getfqdn("10.0.1.1"))
print(socket.getnameinfo(("10.0.1.1", 22), 0), socket.getnameinfo(("10.0.1.1", 9), socket.NI_NUMERICHOST))
"""
        with apps.folder() as folder:
            (folder / "names.py").write_text(script)
            shown = self.text(f"{sys.executable} {folder / 'names.py'}").splitlines()
        known = "h1 [] ['10.0.1.1']"
        self.assertEqual(shown, [f"10.0.1.1 {known} {known}", "h1 [] ['fd00::1:1'] h0 h1",
                                 "('h1', 'ssh') ('10.0.1.1', 'discard')"])

    def test_sockets_past_the_simulated_network_are_refused(self):
        expected = {"PACKET RAW 0": "EPERM", "INET RAW 1": "EPERM", "INET6 RAW 58": "EPERM", "INET DGRAM 1": "EACCES",
                    "INET6 DGRAM 58": "EACCES", "INET SEQPACKET 0": "ESOCKTNOSUPPORT",
                    "INET STREAM 132": "EPROTONOSUPPORT", "INET DGRAM 136": "EPROTONOSUPPORT",
                    "INET STREAM 6": "opened", "INET STREAM 262": "opened", "INET6 DGRAM 17": "opened",
                    "UNIX DGRAM 0": "opened"}
        with apps.folder() as folder:
            script = folder / "sockets.py"
            script.write_text(SOCKETS)
            for options in ((), ("--time=real",)):
                asked = "/".join(expected).replace(" ", ",")
                told = apps.run_on([("h0", f"{sys.executable} {script} {asked}")], *options)
                self.assertEqual(told.lines("h0"), list(expected.values()), told)

    def test_sockets_are_not_the_machines(self):
        result = apps.run_on([("h0", "ss -tan")])
        self.assertIn("Protocol not supported", result.errors("h0"))
        self.assertEqual(len(result.lines("h0")), 1, result)

    def test_ibstat(self):
        shown = self.text("ibstat")
        for line in ("CA 'rnic0'", "Firmware version: 1.0.0", "State: Active", "Rate: 100", "Link layer: Ethernet",
                     "Node GUID: 0x000000fffe000001", "Capability mask: 0x04010000"):
            self.assertIn(line, shown)
        self.assertIn("rate:\t\t 100 Gb/sec (4X EDR)", self.text("ibstatus"))

    def test_the_rate_is_the_configured_one(self):
        options = ("--set", "nic.capabilities.active_speed=64", "--set", "nic.capabilities.active_width=1")
        self.assertIn("Rate: 50", self.text("ibstat", *options))
        self.assertEqual(self.text("cat /sys/class/infiniband/rnic0/ports/1/rate", *options), "50 Gb/sec (1X HDR)")
        self.assertEqual(self.text("cat /sys/class/net/eth0/speed", *options), "50000")


class Calls(HostNetworkTestCase):
    def lines(self, mode, *options):
        return self.text(f"{CALLS} {mode}", *options).splitlines()

    def test_names(self):
        self.assertEqual(self.lines("names"), [
            "unbound (0, 0)", "bound True 4294963199", "taken EADDRINUSE", "chosen (77, 0) EINVAL",
            "free again (77, 0)", "kind 16 0"])

    def test_reading(self):
        self.assertEqual(self.lines("reading"), [
            "nothing yet [] EAGAIN", "readable 1",
            "peeked True flags 0 from (0, 0) messages [(16, 1), (16, 1), (3, 1)]", "cut True rest lost []",
            r"group [(270, 3, b'\x00\x00\x00\x00')]", "switches 1 0"])

    def test_processes(self):
        self.assertEqual(self.lines("processes"), [
            "child [(16, 5), (16, 5), (3, 5)] True", "image [(16, 6), (16, 6), (3, 6)] True"])

    def test_refusals(self):
        self.assertEqual(self.lines("refusals"), [
            *(f"{protocol} EPROTONOSUPPORT" for protocol in (4, 16, 15, 99)), "stream ESOCKTNOSUPPORT",
            "nothing ENODATA too much EMSGSIZE", "to a program ECONNREFUSED", "no message EAGAIN",
            "a change [(2, 1)] EPERM", "never read ENOBUFS", "0x8914 EPERM", "0x8922 EPERM", "0x89f0 EPERM"])

    def test_by_number(self):
        self.assertEqual(self.lines("numbers"), ["by number True [(16, 9), (16, 9), (3, 9)]"])

    def test_a_long_answer_goes_on_while_it_is_read(self):
        self.assertEqual(self.lines("neighbours", "--topology", "star:40"), ["neighbours 78 in several True"])


class TcpOptions(HostNetworkTestCase):
    def test_they_are_told_and_kept(self):
        program = apps.built("tcp_options", (apps.PROGRAMS / "calls" / "tcp_options.c").read_text())
        result = self.assert_succeeded(apps.run_on([("h0", program), ("h1", f"{program} 10.0.0.1")]))
        self.assertEqual(result.text("h1"), OPTIONS)
        self.assertEqual(result.lines("h0"), ["listens 1, taken: Address already in use",
                                              "accepted with 99 1, listens 0", "shared by two: 1"])

    def test_iperf3(self):
        result = self.assert_succeeded(apps.run_on([("h0", "iperf3 -s -1"), ("h1", "iperf3 -c 10.0.0.1 -n 20M -J")]))
        told = json.loads(result.text("h1"))
        self.assertGreaterEqual(told["end"]["sum_sent"]["bytes"], 20 << 20)
        rate = told["end"]["sum_received"]["bits_per_second"] / 1e9
        self.assertTrue(5 < rate <= 10, rate)
        stream = told["end"]["streams"][0]["sender"]
        self.assertEqual((stream["retransmits"], stream["mean_rtt"]), (0, 40))


if __name__ == "__main__":
    unittest.TestLoader.sortTestMethodsUsing = None
    apps.main()
