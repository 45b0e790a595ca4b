#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
UDP between the simulated hosts and within a host, by test programs and by stock programs.

usage: datagrams_test.py path/to/rnicsim     (needs gcc, qperf and rdmacm-utils)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402


def program():
    # Fortified as in distributions' builds: some calls have other names then.
    return built("datagrams", (apps.PROGRAMS / "datagrams.c").read_text(), "-D_FORTIFY_SOURCE=2")


class Calls(apps.TestCase):
    def twice(self, *commands):
        """A run that prints the same, with the same simulated times, when repeated."""
        first, second = (self.assert_succeeded(apps.run_on(commands)) for _ in range(2))
        self.assertEqual(first.out, second.out)
        return first

    def test_between_hosts(self):
        result = self.twice(("h0", f"{program()} serve"), ("h1", f"{program()} ask fd00::1 10.0.0.1"))
        # 20 us each way and 3 us for a blocked thread; 65535 bytes take 52.4 us on the line.
        self.assertEqual(result.lines("h1"), [
            "sent 5", "answer: 5 bytes, hello, from [10.0.0.1]:7000", "after 47 us, own [0.0.0.0]:49152",
            "connect ok, own [10.0.1.1]:49152, peer [10.0.0.1]:7000",
            "greatest 65507, greater EMSGSIZE", "greatest back: 65507 bytes, xxxx, from [10.0.0.1]:7000",
            "after 152 us", "empty 0, back 0", "to nobody 1, then ECONNREFUSED",
            "six ok, own [fd00::1:1]:49154", "parts 5", "parts back 5: ab cde from [fd00::1]:7000"])
        self.assertEqual(result.lines("h0"), [
            "5 from [::ffff:10.0.1.1]:49152", "65507 from [::ffff:10.0.1.1]:49152", "0 from [::ffff:10.0.1.1]:49152",
            "5 from [fd00::1:1]:49154"])

    def test_of_another_image_or_process(self):
        inherited = built("inherited_sockets", (apps.PROGRAMS / "inherited_sockets.c").read_text())
        result = self.twice(("h0", f"{inherited} serve"), ("h1", f"sh -c 'sleep 1; {inherited} ask h0'"))
        self.assertEqual(sorted(result.lines("h0")), [
            "datagram: question 2 from ::ffff:10.0.1.1", "datagram: question 3 from ::ffff:10.0.1.1",
            "stream: question 0 from ::ffff:10.0.1.1", "stream: question 1 from ::ffff:10.0.1.1"])
        self.assertEqual(result.lines("h1"), [f"answer: 10 bytes, question {i}, to 10.0.1.1" for i in range(4)])

    def test_of_another_image_in_real_time(self):
        inherited = built("inherited_sockets", (apps.PROGRAMS / "inherited_sockets.c").read_text())
        result = apps.run_on([("h0", f"{inherited} serve"), ("h1", f"sh -c 'sleep 1; {inherited} ask h0'")],
                             "--time=real")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.lines("h1"), [f"answer: 10 bytes, question {i}, to 10.0.1.1" for i in range(4)])

    def test_within_a_host(self):
        result = self.twice(("h0", f"{program()} alone"))
        self.assertEqual(result.lines("h0"), [
            "same port EADDRINUSE, wildcard EADDRINUSE, other address ok",
            "six beside ok, of others EADDRNOTAVAIL, group EADDRNOTAVAIL", "closed ok",
            "ephemeral [0.0.0.0]:49152, listen EOPNOTSUPP", "type 1, family 1",
            "probe ok [10.0.0.1]:49153, dissolved ok [0.0.0.0]:0, send EDESTADDRREQ",
            "broadcast ENETUNREACH, multicast ENETUNREACH, to port 0 EINVAL", "reuse ok", "reuse ok",
            "the last one's: 4 bytes, last, from [127.0.0.1]:49152", "the first one's: EAGAIN",
            "membership ENOPROTOOPT",
            "nothing: EAGAIN", "limited: EAGAIN", "after 20 ms", "poll 1 1, waiting 6",
            "peeked: 4 bytes, abcd, from [127.0.0.1]:49154", "its length: 6 bytes, abcd, from [127.0.0.1]:49154",
            "cut 4, told 1", "next: 2 bytes, gh, from [127.0.0.1]:49154", "without waiting EAGAIN",
            "sendmmsg 5", "recvmmsg 5: 0 1 1 1 2 1 3 1 4 1", "epoll 0 1, read 1",
            "flood: sent 1000, some came 1, some lost 1, in order 1",
            "child: 5 bytes, there, from [127.0.0.1]:49156", "parent: 4 bytes, back, from [127.0.0.1]:49157",
            "after a death ok"])


class Stock(apps.TestCase):
    def test_qperf(self):
        client = "qperf -t 1 -m 60000 h0 udp_lat udp_bw"
        result = self.assert_succeeded(apps.run_on([("h0", "qperf"), ("h1", client)]))
        latency = re.search(r"latency += +([\d.]+) us", result.text("h1"))
        # 20 us network, 48 us line, 3 us to wake up
        self.assertAlmostEqual(float(latency[1]), 71.5, delta=1, msg=result)
        for side in ("send_bw", "recv_bw"):
            self.assertRegex(result.text("h1"), rf"{side} += +1\.2\d GB/sec")

    def udpong(self, server, client):
        result = self.assert_succeeded(apps.run_on([("h0", f"udpong {server}"),
                                                    ("h1", f"udpong -s 10.0.0.1 -S 1000 -C 100 {client}")]))
        self.assertRegex(result.text("h0"), "client login from 10.0.1.1")
        self.assertRegex(result.text("h1"), r"custom +1000 +100 ")

    def test_udpong_over_sockets(self):
        """udpong's server asks for the loopback address by default, and polls for ever."""
        self.udpong("-b 10.0.0.1 -T s", "-T s")

    def test_udpong_over_rsockets(self):
        for mode in ("b", "a"):
            self.udpong(f"-T {mode}", f"-T {mode}")


if __name__ == "__main__":
    apps.main()
