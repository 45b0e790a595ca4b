#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
UCX over the simulated NIC: all tests of ucx_perftest that need no GPU, by RC and by UD; UCP's listener, by librdmacm.

usage: ucx_test.py path/to/rnicsim     (needs gcc and UCX' headers)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

UD = "UCX_TLS=ud_v,self UCX_NET_DEVICES=rnic0:1"
TESTS = ("tag_lat", "tag_bw", "tag_sync_lat", "stream_lat", "stream_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
         "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "ucp_am_lat", "ucp_am_bw", "am_lat", "am_bw", "put_lat",
         "put_bw")
# Tests of the transport itself, below UCP.
LOW_LEVEL = ("am_lat", "am_bw", "put_lat", "put_bw")
ONLY_RC = ("put_lat", "put_bw")


class Ucx(apps.TestCase):
    def measure(self, transport, test, *options, count=200):
        # UCX connects RC by UD datagrams; rc_v is its name for rc_verbs with UD.
        environment = f"env UCX_TLS={'rc_v' if transport == 'rc_verbs' else transport} UCX_NET_DEVICES=rnic0:1"
        low_level = f"-x {transport} -d rnic0:1" if test in LOW_LEVEL else ""
        client = " ".join(("-t", test, low_level, f"-n {count} -w {count // 10}", *options))
        # Low-level tests need the options on the server, too.
        result = self.assert_succeeded(apps.run_on([("h0", f"{environment} ucx_perftest {client}"),
                                                    ("h1", f"{environment} ucx_perftest h0 {client}")]))
        self.assertRegex(result.text("h1"), rf"(?m)^Final:\s+{count}\s+[\d.]+", result)
        self.assertNotIn("ERROR", result.out + result.err, result)
        return result

    def run_all(self, transport):
        for test in TESTS:
            if transport == "ud_verbs" and test in ONLY_RC:
                continue
            with self.subTest(test):
                self.measure(transport, test)

    def test_by_default(self):
        """With UCX's default settings: UCX chooses the transports."""
        result = self.assert_succeeded(apps.run("ucx_perftest -t tag_lat -n 200 -w 20"))
        self.assertRegex(result.text("h1"), r"(?m)^Final:\s+200\s+[\d.]+", result)
        self.assertNotIn("ERROR", result.out + result.err, result)

    def test_rc(self):
        self.run_all("rc_verbs")

    def test_ud(self):
        self.run_all("ud_verbs")

    def test_listener(self):
        source = (apps.PROGRAMS / "verbs" / "ucp_connect.c").read_text()
        program = apps.built("ucp_connect", source, "-lucp", "-lucs")
        for transport in ("rc_v", "ud_v"):
            with self.subTest(transport):
                environment = f"env UCX_TLS={transport} UCX_NET_DEVICES=rnic0:1 UCX_SOCKADDR_TLS_PRIORITY=rdmacm"
                result = self.assert_succeeded(apps.run_on(
                    [("h0", f"{environment} {program} 10.0.0.1 server 3"),
                     ("h1", f"{environment} sh -c 'sleep 1; exec {program} 10.0.0.1 client 3'")]))
                self.assertEqual([result.lines("h0"), result.lines("h1")], [["sum 6"], ["sent"]], result)
                self.assertRegex(result.summary(), r"kernel\.cm\.received +[1-9]", result)

    def test_large_messages(self):
        for transport in ("rc_verbs", "ud_verbs"):
            with self.subTest(transport):
                # UCX sends lost datagrams again after milliseconds: a few messages take seconds.
                self.measure(transport, "tag_bw", "-s 1000000", count=200 if transport == "rc_verbs" else 8)

    def test_bursts_of_datagrams(self):
        """The default NIC keeps up with datagrams, with pages larger than 4 KiB behind the receives."""
        result = self.assert_succeeded(apps.call(
            "run", "--set", "host.page_size=64KiB", "--on", "h0", f"env {UD} ucx_perftest", "--on", "h1",
            f"env {UD} ucx_perftest h0 -t tag_bw -s 262144 -n 40 -w 10"))
        rate = re.search(r"(?m)^Final:\s+40(?:\s+[\d.]+){3}\s+([\d.]+)", result.text("h1"))
        self.assertGreater(float(rate[1]), 8000, result)  # MB/s
        self.assertNotIn("no room", result.summary())


if __name__ == "__main__":
    apps.main()
