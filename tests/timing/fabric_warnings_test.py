#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Settings that a run cannot use: one warning for each, and no warning for the setting that works.

usage: fabric_warnings_test.py RNICSIM
"""

import sys
import unittest

import fabric_bench
from fabric_bench import cabled, flow, incast, told

PFC3 = {"switch.pfc.priorities": 8, "nic.port.pfc": 8}
MARKS = {"switch.ecn.priorities": 1, "nic.congestion.ecn": "forced"}


class Warnings(unittest.TestCase):
    def warnings(self, sets, flows=None, topology="star:3"):
        status, text, _ = told(flows or incast(2), {"nic.timing_only": "true", **sets}, topology, "20 us")
        self.assertEqual(status, 0, text)
        return text

    def assert_one(self, warning, *arguments):
        self.assertEqual(self.warnings(*arguments), f"rnicsim: warning: {warning}\n")

    def assert_none(self, *arguments):
        self.assertEqual(self.warnings(*arguments), "")

    def test_pauses_of_a_priority_without_frames(self):
        self.assert_one("nic.port.pfc, switch.pfc.priorities: no frame of this run has priority 3; frames have "
                        "priority 0", PFC3)
        self.assert_none(PFC3, incast(2, dscp=26))
        # Priority 4 is one of several.
        self.assert_one("nic.port.pfc, switch.pfc.priorities: no frame of this run has priority 4; frames have "
                        "priority 3", {"switch.pfc.priorities": 24, "nic.port.pfc": 24}, incast(2, dscp=26))
        self.assert_none({"switch.pfc.priorities": 255, "nic.port.pfc": 255})

    def test_marks_of_a_priority_without_frames(self):
        sets = {**MARKS, "switch.ecn.priorities": 8}
        self.assert_one("switch.ecn.priorities: no frame of this run has priority 3; frames have priority 0", sets)
        self.assert_none(sets, incast(2, dscp=26))

    def test_marks_of_frames_that_are_not_ect(self):
        not_ect = {"switch.ecn.priorities": 1}
        self.assert_one("switch.ecn.priorities: no frame can be marked, because all frames of priority 0 are Not-ECT; "
                        "nic.congestion.ecn = \"forced\" makes them ECT, or the program's traffic class", not_ect)
        self.assert_none(MARKS)
        self.assert_none({**not_ect, "switch.ecn.drop_not_ect": "true"})
        # One flow of two is enough.
        self.assert_none({**not_ect, "nics.marked.congestion.ecn": "forced", "hosts.h1.nic": "marked"})

    def test_a_lossless_profile_without_shared_memory(self):
        pfc = {"switch.pfc.priorities": 1, "nic.port.pfc": 1}
        profile = {**pfc, "switch.buffer.lossless.xoff": "160 KB", "switch.buffer.lossless.xon": "20 KB"}
        self.assert_one("--set switch.buffer.lossless.xoff and 1 more of switch.buffer.lossless have no effect, "
                        "because switch.buffer.size is 0 B", profile)
        self.assert_none({**profile, "switch.buffer.size": "4 MB"})

    def test_a_control_without_inputs(self):
        self.assert_one("nic.congestion.control is dcqcn, but there are no CNPs: no switch marks packets "
                        "(switch.ecn.priorities), and neither nic.congestion.np.cnp_on_loss nor "
                        "nic.congestion.cnp_on_retransmit is true", {"nic.congestion.control": "dcqcn"})
        self.assert_none({"nic.congestion.control": "dcqcn", **MARKS})
        self.assert_none({"nic.congestion.control": "dcqcn", "nic.congestion.np.cnp_on_loss": "true"})
        self.assert_none({"nic.congestion.control": "dcqcn_paper", "nic.congestion.cnp_on_retransmit": "true"})
        self.assert_one("nic.congestion.control is dctcp, but no switch marks packets (switch.ecn.priorities), so only "
                        "losses slow down", {"nic.congestion.control": "dctcp"})
        self.assert_none({"nic.congestion.control": "dctcp", **MARKS})
        self.assert_one("nic.congestion.control is hpcc, but the topology has no switch that reports its ports",
                        {"nic.congestion.control": "hpcc"}, [flow("h0", "h1")], "back-to-back")
        for control in ("hpcc", "swift", "timely"):
            self.assert_none({"nic.congestion.control": control})

    def test_pauses_that_the_switch_never_asks_for(self):
        text = self.warnings({"nic.port.pfc": 1})
        self.assertIn("PFC on one side: h1 obeys pauses of priority 0 (nic.port.pfc), but s0 asks for none "
                      "(switch.pfc.priorities)\n", text)
        self.assert_none({"nic.port.pfc": 255})

    # Packets have a PCP only in a VLAN tag.
    def test_a_service_level_without_a_vlan(self):
        self.assert_one("w.toml: flow[0].sl has no effect on packets of h0 and 1 more, because host.vlan is 0: no "
                        "VLAN tag", {}, [flow("h1", "h0", sl=3), flow("h2", "h0")])
        self.assert_none({"host.vlan": 100}, [flow("h1", "h0", sl=3)])
        self.assert_none({}, [flow("h1", "h0", sl=0)])

    # Two cables, a switch and three pipelines of NICs take 10 + 0.3 us in each direction and 0.51 us.
    def test_a_control_for_shorter_cables(self):
        hpcc = {"nic.congestion.control": "hpcc", "link.latency": "5 us"}
        self.assert_one("nic.congestion.hpcc.base_rtt is 13 us, but a round trip from h0 to h1 and back takes at least "
                        "21.11 us in the empty fabric: a queue pair cannot use the whole line", hpcc)
        self.assert_none({**hpcc, "nic.congestion.hpcc.base_rtt": "21110 ns"})
        self.assert_one("nic.congestion.hpcc.base_rtt is 21.109 us, but a round trip from h0 to h1 and back takes at "
                        "least 21.11 us in the empty fabric: a queue pair cannot use the whole line",
                        {**hpcc, "nic.congestion.hpcc.base_rtt": "21109 ns"})
        # One hop adds 3.053 us to the 20 us of base_target.
        swift = {"nic.congestion.control": "swift", "link.latency": "6 us"}
        self.assert_one("nic.congestion.swift.base_target + h x hops is 23.053 us, but a round trip from h0 to h1 and "
                        "back takes at least 25.11 us in the empty fabric: a queue pair cannot use the whole line",
                        swift)
        self.assert_none({**swift, "nic.congestion.swift.hops": 2})
        self.assert_none({**swift, "link.latency": "5 us"})
        timely = {"nic.congestion.control": "timely", "link.latency": "200 us"}
        self.assertIn("nic.congestion.timely.t_high is 500 us, but a round trip from h0 to h1 and back takes at least "
                      "801.11 us in the empty fabric", self.warnings(timely))
        self.assert_none({**timely, "link.latency": "20 us"})

    # The longest path counts: both cables to h3 are long.
    def test_a_control_for_a_shorter_path(self):
        far = {"nic.congestion.control": "hpcc", "links.far.latency": "3 us", "cables.h3-s1.link": "far",
               "cables.s0-s1.link": "far"}
        topology = cabled(("h0", "s0"), ("h1", "s0"), ("h3", "s1"), ("s0", "s1"))
        self.assert_one("nic.congestion.hpcc.base_rtt is 13 us, but a round trip from h0 to h3 and back takes at least "
                        "13.89 us in the empty fabric: a queue pair cannot use the whole line", far,
                        [flow("h0", "h1")], topology)
        self.assert_none({**far, "links.far.latency": "2 us"}, [flow("h0", "h1")], topology)

    # The warning is right: one queue pair gets the share base_rtt / round trip of the line.
    def test_a_longer_base_rtt_uses_the_line(self):
        def rate(base_rtt):
            sets = {"nic.congestion.control": "hpcc", "link.latency": "5 us", "nic.congestion.hpcc.base_rtt": base_rtt}
            return fabric_bench.goodputs(fabric_bench.bench([flow("h1", "h0")], sets, "star:2", "2 ms", "2 ms"))[0]
        self.assertLess(rate("13 us"), 65e9)
        self.assertGreater(rate("25 us"), 90e9)

    def test_the_settings_of_a_switch_without_a_switch(self):
        self.assert_one("--set switch.ecn.priorities has no effect, because the topology has no switch",
                        {"switch.ecn.priorities": 1}, [flow("h0", "h1")], "back-to-back")


if __name__ == "__main__":
    fabric_bench.RNICSIM = sys.argv.pop(1)
    unittest.main()
