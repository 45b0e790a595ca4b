#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
perftest's raw Ethernet programs between two hosts: they exchange only frames.

usage: raw_ethernet_test.py path/to/rnicsim
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SERVER_MAC, CLIENT_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
FRAME = 1514  # bytes; perftest's 1518 include an FCS
GAP = 24      # bytes: preamble, FCS and inter-frame gap
# MiB/s at 100 Gb/s, where perftest counts 1518 bytes per frame.
LINE_RATE = 100e9 / 8 / (FRAME + GAP) * 1518 / 2 ** 20
FRAMES = 500


def counter(result, name):
    """A counter of both hosts, from the summary."""
    row = re.search(rf"^ +{re.escape(name)} +(\d+) +(\d+) ", result.summary(), re.MULTILINE)
    return [int(number) for number in row.groups()]


class RawEthernet(apps.TestCase):
    def both(self, program, of_both="", of_server=""):
        """The client starts later than the server: raw Ethernet programs do not synchronize."""
        server = f"{program} --server -B {SERVER_MAC} -E {CLIENT_MAC} {of_both} {of_server}"
        client = f"{program} --client -B {CLIENT_MAC} -E {SERVER_MAC} {of_both}"
        result = apps.run_on([("h0", server), ("h1", f"sh -c 'sleep 0.1; {client}'")], "--limit", "5s", "--audit")
        return self.assert_succeeded(result)

    def bandwidth(self, of_both="", of_server=""):
        result = self.both(f"raw_ethernet_bw -n {FRAMES}", of_both, of_server)
        sent, = apps.perftest_rows(result.lines("h1"))
        received, = apps.perftest_rows(result.lines("h0"))
        # A doorbell per frame: the program is slower than the port.
        self.assertTrue(0.5 * LINE_RATE < sent[3] < LINE_RATE, result)
        self.assertEqual(received[1], FRAMES, result)
        self.assertEqual(counter(result, "nic.raw.copies"), [FRAMES, 0], result)
        return result

    def test_bandwidth(self):
        self.bandwidth()

    def test_addresses_and_ports(self):
        self.bandwidth("-j 10.0.0.2 -J 10.0.0.1 -k 200 -K 100")

    def test_sniffer(self):
        self.bandwidth(of_server="--sniffer")

    def test_promiscuous(self):
        self.bandwidth(of_server="--promiscuous")

    def test_a_flow_of_another_port_takes_nothing(self):
        server = f"raw_ethernet_bw -n {FRAMES} --server -B {SERVER_MAC} -E {CLIENT_MAC}"
        client = f"raw_ethernet_bw -n {FRAMES} --client -B {CLIENT_MAC} -E {SERVER_MAC}"
        ports = "-j 10.0.0.2 -J 10.0.0.1 -k 200 -K"
        result = apps.run_on([("h0", f"{server} {ports} 101"), ("h1", f"sh -c 'sleep 0.1; {client} {ports} 100'")],
                             "--limit", "500ms")
        self.assertEqual(result.status, 124, result)
        self.assertEqual(counter(result, "nic.raw.no_flow"), [FRAMES, 0], result)

    def test_latency(self):
        result = self.both("raw_ethernet_lat -n 100")
        row, = apps.perftest_rows(result.lines("h1"))
        self.assertTrue(0.8 <= row[4] <= 6, result)

    def test_rate_of_flows(self):
        result = self.assert_succeeded(
            apps.run_on([("h0", f"raw_ethernet_fs_rate --server -n 100 -B {SERVER_MAC} -E {CLIENT_MAC}")]))
        rate = re.search(r"^100\s+([\d.]+)\s", result.text("h0"), re.MULTILINE)
        self.assertTrue(rate and 1 < float(rate[1]) < 100, result)

    def test_who_may_not(self):
        result = apps.run_on([("h0", f"raw_ethernet_bw --server -n 1 -B {SERVER_MAC} -E {CLIENT_MAC}")],
                             "--set", "host.raw_packets=false")
        self.assertNotEqual(result.status, 0, result)
        self.assertNotRegex(result.out + result.err, "deadlock:|no progress:", result)


if __name__ == "__main__":
    apps.main()
