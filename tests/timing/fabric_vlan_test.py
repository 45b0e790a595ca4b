#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RoCE packets with a VLAN tag (IEEE 802.1Q): bytes of the tag, priorities by PCP, separation of VLANs, captures.

usage: fabric_vlan_test.py RNICSIM     (needs tshark for one of its tests)
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import fabric_bench
from fabric_bench import bench, flow, goodputs, incast, of_hosts, refused

HEADERS = 58     # bytes of a WRITE's middle packet over IPv4 without payload, with ICRC
LINE = 24        # FCS, preamble and gap
TAG = 4
VLAN = {"host.vlan": 100}
PCP = {"switch.trust": "pcp", "nic.port.trust": "pcp"}
ALL_PORTS = {"switch.port_buffer": "1 MB"}


def busy(results, priority):
    return results["switches"]["s0"]["counters"].get(f"port.h0.p{priority}.tx_busy", 0)


class Tags(unittest.TestCase):
    def test_a_tag_is_four_bytes_of_each_frame(self):
        for sets, tag in (({}, 0), (VLAN, TAG)):
            rate = goodputs(bench(incast(1, mtu=1024), sets, "star:2"))[0]
            wanted = 100e9 * 1024 / (1024 + HEADERS + LINE + tag)
            self.assertLess(abs(rate / wanted - 1), 0.001, (rate, wanted))

    # The pace of a congestion control counts the tag, too.
    def test_a_pace_counts_the_tag(self):
        sets = {"nic.congestion.control": "swift", "switch.jitter": "on", **VLAN}
        results = bench(incast(2, mtu=1024), sets, "star:3", "10 ms", "5 ms")
        line = 100e9 * 1024 / (1024 + HEADERS + LINE + TAG)
        self.assertGreater(sum(goodputs(results)), 0.95 * line)
        self.assertEqual(results["switches"]["s0"]["counters"]["tx_discards"], 0)

    def test_hosts_of_two_vlans_do_not_reach_each_other(self):
        apart = '[host_types.blue]\nvlan = 100\n[host_types.red]\nvlan = 200\n'
        hosts = "".join(f'[[hosts]]\nname = "h{i}"\ntype = "{kind}"\n'
                        for i, kind in enumerate(("blue", "red", "blue")))
        cables = '[[switches]]\nname = "s0"\n' + "".join(f'[[cables]]\nfrom = "h{i}"\nto = "s0"\n' for i in range(3))
        topology = apart + hosts + cables
        self.assertGreater(goodputs(bench([flow("h2", "h0")], {}, topology))[0], 90e9)
        status, told, _ = fabric_bench.told([flow("h1", "h0", timeout=8, retry=1)], {}, topology, "20 ms")
        self.assertNotEqual(status, 0, told)

    def test_invalid_values_are_refused(self):
        for text, path in (("host.vlan=4095", "host.vlan"), ("switch.trust=vlan", "switch.trust"),
                           ("nic.port.pcp_priority=8:1", "nic.port.pcp_priority"),
                           ("switch.pcp_priority=3", "switch.pcp_priority"),
                           ("nic.congestion.np.cnp_802p_prio=8", "nic.congestion.np.cnp_802p_prio")):
            self.assertIn(path, refused(text))


class Priorities(unittest.TestCase):
    def shares(self, sets, **keys):
        """Goodputs of a paced flow with `keys`, and of a flow without a pace; and the results."""
        # Both windows fit the port's buffer: after a loss at the end of a message a flow would wait for its timeout.
        flows = [flow("h1", "h0", size="64 KiB", pace="60 Gb/s", **keys), flow("h2", "h0", size="64 KiB")]
        results = bench(flows, {**ALL_PORTS, **sets}, "star:3")
        return *goodputs(results), results

    # The urgent flow has the goodput that it has alone.
    def test_the_pcp_is_trusted(self):
        urgent, _, results = self.shares({**VLAN, **PCP}, sl=3)
        self.assertLess(abs(urgent / 60e9 - 1), 0.02)
        self.assertGreater(busy(results, 3), 0)

    def test_a_map_of_pcps(self):
        maps = {"switch.pcp_priority": "3:5", "nic.port.pcp_priority": "3:5"}
        urgent, _, results = self.shares({**VLAN, **PCP, **maps}, sl=3)
        self.assertLess(abs(urgent / 60e9 - 1), 0.02)
        self.assertEqual((busy(results, 3), busy(results, 5) > 0), (0, True))

    # A service level without a tag, and a DSCP that is not trusted, do not change the priority.
    def test_untrusted_fields_have_no_effect(self):
        for sets, keys in ((PCP, {"sl": 3}), ({**VLAN, **PCP}, {"dscp": 26}), (VLAN, {"sl": 3})):
            _, _, results = self.shares(sets, **keys)
            self.assertEqual(busy(results, 3), 0, (sets, keys))

    # A tag does not hide the DSCP.
    def test_the_dscp_of_a_frame_with_a_tag(self):
        urgent, _, results = self.shares(VLAN, dscp=26)
        self.assertLess(abs(urgent / 60e9 - 1), 0.02)
        self.assertGreater(busy(results, 3), 0)

    def test_pauses_of_a_pcp(self):
        pfc = {"switch.pfc.priorities": 8, "nic.port.pfc": 8, "switch.port_buffer": "100 KB"}
        results = bench(incast(2, sl=3), {**VLAN, **PCP, **pfc}, "star:3")
        self.assertEqual(results["switches"]["s0"]["counters"]["tx_discards"], 0)
        self.assertGreater(of_hosts(results, "nic.port.rx_prio3_pause"), 0)
        self.assertGreater(sum(goodputs(results)), 97e9)

    # A warning names PFC priorities that no frame has.
    def test_a_priority_that_no_pcp_has(self):
        sets = {**PCP, "switch.pfc.priorities": 8, "nic.port.pfc": 8, "switch.pcp_priority": "3:4",
                "nic.port.pcp_priority": "3:4"}
        _, told, _ = fabric_bench.told(incast(1), sets, "star:2")
        self.assertIn("switch.pfc.priorities: no frame has priority 3, because no PCP has this priority "
                      "(switch.pcp_priority)", told)

    def test_the_same_twice(self):
        once, again = (self.shares({**VLAN, **PCP}, sl=3)[2] for _ in range(2))
        for part in ("flows", "hosts", "switches"):
            self.assertEqual(once[part], again[part])


class Captures(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_tshark_reads_tags(self):
        marks = {"nic.congestion.control": "dcqcn", "nic.congestion.ecn": "forced", "switch.ecn.priorities": 8,
                 "switch.ecn.kmin": "20 KB", "switch.ecn.kmax": "40 KB"}
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "capture.pcapng")
            results = bench(incast(2, sl=3), {**VLAN, **PCP, **marks}, "star:3", "0 us", "200 us", ("--pcap", capture))
            command = ["tshark", "-n", "-o", "ip.check_checksum:TRUE", "-r", capture, "-Y", "infiniband",
                       "-T", "fields"]
            for field in ("infiniband.bth.opcode", "vlan.id", "vlan.priority", "ip.dsfield.ecn", "ip.checksum.status",
                          "_ws.malformed"):
                command += ["-e", field]
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600,
                                   env=dict(os.environ, HOME=folder)).stdout.splitlines()
        rows = [line.split("\t") for line in shown]
        self.assertEqual({(row[1], row[4], row[5]) for row in rows}, {("100", "1", "")})
        data = [row for row in rows if row[0] != "129"]
        cnps = [row for row in rows if row[0] == "129"]
        self.assertEqual({row[2] for row in data}, {"3"})
        self.assertEqual({row[2] for row in cnps}, {"6"})
        self.assertGreater(sum(row[3] == "3" for row in data), 0)
        self.assertGreater(results["switches"]["s0"]["counters"]["ecn_marked"], 0)


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
