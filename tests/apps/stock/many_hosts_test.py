#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock programs on more than two hosts, and more than one program a host at once: pairs of ib_write_bw.

usage: many_hosts_test.py path/to/rnicsim
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

LINE = 100.0  # Gb/s


def pair(server, client, port=18515, address=None):
    number = int(server[1:])
    test = f"ib_write_bw --report_gbits -n 200 -p {port}"
    return [(server, test), (client, f"{test} {address or f'10.0.{number}.1'}")]


class ManyHosts(apps.TestCase):
    def bandwidths(self, commands, *options):
        """By host: the bandwidths of its programs, in the order of their tables."""
        result = self.assert_succeeded(apps.run_on(commands, *options))
        hosts = {host for host, _ in commands}
        return {host: [row[3] for row in apps.perftest_rows(result.lines(host))] for host in sorted(hosts)}

    def test_two_pairs_on_four_hosts(self):
        found = self.bandwidths(pair("h0", "h1") + pair("h2", "h3"), "--topology", "star")
        for host in ("h1", "h3"):
            self.assertEqual(len(found[host]), 1, found)
            self.assertTrue(0.85 * LINE < found[host][0] < LINE, found)
        self.assertAlmostEqual(found["h1"][0], found["h3"][0], delta=1)  # the flows share no link

    def test_two_pairs_on_two_hosts(self):
        found = self.bandwidths(pair("h0", "h1", 18515) + pair("h0", "h1", 18516))
        self.assertEqual(len(found["h1"]), 2, found)
        for bandwidth in found["h1"]:
            self.assertTrue(0.35 * LINE < bandwidth < LINE, found)  # both share the cable while both run

    def test_two_servers_of_one_host(self):
        found = self.bandwidths(pair("h0", "h1", 18515) + pair("h0", "h2", 18516), "--topology", "star")
        for host in ("h1", "h2"):
            self.assertTrue(0.35 * LINE < found[host][0] < LINE, found)

    def test_server_and_client_on_one_host(self):
        found = self.bandwidths(pair("h0", "h0"))
        self.assertTrue(found["h0"], found)
        for bandwidth in found["h0"]:
            # The device's PCIe carries the loopback traffic in both directions
            self.assertTrue(50 < bandwidth < 128, found)

    def test_the_same_twice(self):
        commands = pair("h0", "h1") + pair("h2", "h3", 18516) + pair("h0", "h3", 18517) + pair("h1", "h1", 18518)
        once, again = (self.bandwidths(commands, "--topology", "star") for _ in range(2))
        self.assertEqual(once, again)


if __name__ == "__main__":
    apps.main()
