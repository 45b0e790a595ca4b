#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnicsim replay of recorded runs: the NICs do the same without the programs.

usage: replay_test.py path/to/rnicsim
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
import trace_file  # noqa: E402


MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


class Replay(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def record(self, *arguments):
        trace = self.path / "run.trace"
        self.assert_succeeded(apps.call("run", "--record", trace, "--record-software", *arguments))
        return trace

    def replayed(self, *arguments):
        """Output of a replay that agrees with the recording."""
        result = apps.call("replay", *arguments)
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertRegex(result.out, r"\A--- (\S+ \S+) replayed, \1 recorded\nequal: [1-9]\d+ events\n\Z")
        return result.out

    def refused(self, *arguments):
        result = apps.call("replay", *arguments)
        self.assertEqual(result.status, 2, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        return result.err


class SameEvents(Replay):
    def test_programs(self):
        for arguments in (
                ["--", "ib_write_bw", "-n", "100"],
                ["--", "ib_read_bw", "-n", "100", "-q", "4"],
                ["--", "ibv_srq_pingpong", "-g", "1", "-n", "100"],
                ["--", "ibv_rc_pingpong", "-g", "1", "-e"],
                ["--fault", "drop=1e-2", "--", "ib_send_bw", "-n", "200"],
                ["--topology", "star:2", "--", "ib_write_lat", "-n", "100"],
                ["--set", "host.lid_paths=true", "--on", "h0", "qperf", "--on", "h1", "qperf -n 500 h0 rc_bw quit"],
                ["--on", "h0", "rping -s -C 5", "--on", "h1", "rping -c -a h0 -C 5"],
                ["--on", "h0", f"raw_ethernet_bw --server -n 100 -B {MACS[0]} -E {MACS[1]}",
                 "--on", "h1", f"raw_ethernet_bw --client -n 100 -B {MACS[1]} -E {MACS[0]}"]):
            with self.subTest(" ".join(arguments)):
                trace = self.record(*arguments)
                self.replayed(trace)
                self.replayed(trace, "--as-possible")

    def test_open_mpi(self):
        program = self.path / "mpi_ring"
        subprocess.run(["mpicc", "-O1", "-o", program, apps.PROGRAMS / "verbs" / "mpi_ring.c"], check=True)
        shell = f"python3 {apps.REMOTE_SHELL}"
        ucx = "--mca pml ucx --mca btl ^openib -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=rnic0:1"
        mpirun = f"mpirun --allow-run-as-root --mca plm_rsh_agent '{shell}' --host h0,h1 -np 2 {ucx} {program}"
        self.replayed(self.record("--on", "h1", shell, "--on", "h0", mpirun))

    def test_a_program_that_is_killed_while_the_nic_reads_its_memory(self):
        trace = self.path / "run.trace"
        result = apps.call("run", "--record", trace, "--record-software", "--grace", "1ms", "--on", "h0",
                           "ib_write_bw -n 50000", "--on", "h1", "timeout -s KILL 1.002 ib_write_bw -n 50000 h0")
        self.assertEqual(result.status, 137, result)
        self.assertIn("not_mapped", apps.call("trace", "show", trace, "--kind", "dma_abort").out)
        for pace in ([], ["--as-possible"]):
            again = apps.call("replay", trace, *pace)
            self.assertEqual(again.status, 0, again)
            self.assertRegex(again.out, r"equal: \d+ events")
            self.assertIn("aborted: the process has unmapped the range", again.err)

    def test_a_workload_of_bench(self):
        trace = self.path / "bench.trace"
        recorded = apps.call("bench", "write-4k", "--record", trace, "--record-software")
        self.assertEqual(recorded.status, 0, recorded)
        self.replayed(trace)

    def test_the_replay_is_recorded(self):
        trace = self.record("--", "ibv_uc_pingpong", "-g", "1", "-n", "10")
        again = self.path / "again.trace"
        self.replayed(trace, "--record", again)
        packets = [apps.call("trace", "show", file, "--kind", "packet*").out for file in (trace, again)]
        self.assertEqual(packets[0], packets[1])
        self.assertGreater(len(packets[0].splitlines()), 20)


class OtherParameters(Replay):
    def rate(self, trace):
        """Messages per second of h1's queue pair."""
        text = apps.call("trace", "stat", trace).out.split("of h1\n")[-1]
        return float(re.search(r"Gb/s, ([\d.e+]+) messages/s", text)[1])

    def test_another_nic_is_as_fast_as_in_a_run(self):
        """Recorded on ConnectX-5. Programs that ask for inline sizes post slightly different work on another NIC."""
        again, run = self.path / "again.trace", self.path / "other.trace"
        for program in ("ib_write_bw -n 200", "ib_read_bw -n 100", "ib_send_bw -n 200",
                        "ibv_rc_pingpong -g 1 -n 200 -e", "ibv_ud_pingpong -g 1 -n 200"):
            trace = self.record("--", *program.split())
            for nic in ("cx3-40g", "cx7-400g"):
                with self.subTest(f"{program} on {nic}"):
                    self.assert_succeeded(apps.call("run", "--nic", nic, "--record", run, "--", *program.split()))
                    result = apps.call("replay", trace, "--as-possible", "--nic", nic, "--record", again)
                    self.assertEqual((result.status, result.err), (0, ""), result)
                    self.assertNotIn("equal", result.out)
                    measured, expected = self.rate(again), self.rate(run)
                    self.assertLess(abs(measured / expected - 1), 0.05, f"{measured} and not {expected}")

    def test_a_lossy_cable_makes_retries(self):
        trace = self.record("--", "ib_write_bw", "-n", "200")
        again = self.path / "again.trace"
        result = apps.call("replay", trace, "--as-possible", "--fault", "drop=1e-2", "--record", again)
        self.assertEqual((result.status, result.err), (0, ""), result)
        text = apps.call("trace", "stat", again).out
        self.assertIn("200 WQEs", text)
        self.assertIn("0 errors", text)
        self.assertRegex(text, r"[1-9]\d* of them again")

    def test_what_never_comes_is_named(self):
        trace = self.record("--", "ib_write_bw", "-n", "200")
        result = apps.call("replay", trace, "--as-possible", "--fault", "drop=1,host=h1")
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, r"\Arnicsim: \S+: h\d: .* waits for .*; the event did not occur\n\Z")

    def test_the_configuration_of_the_replay_is_recorded(self):
        trace = self.record("--", "ibv_rc_pingpong", "-g", "1", "-n", "10")
        again = self.path / "again.trace"
        result = apps.call("replay", trace, "--record", again, "--set", "nic.port.rate=40Gb/s")
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("equal", result.out)
        self.assertIn("nic.port.rate: 100 Gb/s | 40 Gb/s", apps.call("diff", trace, again).out)


class BadInput(Replay):
    def test_traces(self):
        plain = self.path / "plain.trace"
        self.assert_succeeded(apps.call("run", "--record", plain, "--", "true"))
        self.assertIn("recorded without --record-software", self.refused(plain))
        self.assertIn("No such file", self.refused(self.path / "none"))
        whole = self.record("--", "ibv_uc_pingpong", "-g", "1", "-n", "10").read_bytes()
        short = self.path / "short.trace"
        short.write_bytes(whole[:-40])
        self.assertIn(str(short), self.refused(short))

    def test_a_trace_of_a_newer_program(self):
        trace = self.record("--", "ibv_uc_pingpong", "-g", "1", "-n", "10")
        trace.write_bytes(trace_file.with_schema(trace.read_bytes(), '"command: ', '"verb: '))
        result = apps.call("replay", trace)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.err, r"\Arnicsim: \S+: \d+ events of the kind 'verb' \(process, .*\) are left out: "
                                     r"this program does not know the kind\n\Z")

    def test_software_that_is_not_replayed(self):
        """Memory on demand, a host at the end of a live wire, runs of several processes: one line each."""
        trace = self.record("--", "ib_write_bw", "-n", "20", "--odp")
        for options in ([], ["--as-possible"]):
            self.assertIn("memory on demand (IBV_ACCESS_ON_DEMAND)", self.refused(trace, *options))
        new = self.path / "new.trace"
        wire = apps.call("run", "--wire", f"h1=unix:{self.path}/wire.sock", "--record", new, "--record-software", "--",
                         "true")
        self.assertEqual((wire.status, wire.err),
                         (2, "rnicsim: --record-software: the software of h1 is not simulated\n"))
        several = apps.call("bench", "write-4k", "--processes", "2", "--record", new, "--record-software")
        self.assertEqual((several.status, several.err),
                         (2, "rnicsim: --record-software cannot be combined with several processes\n"))
        self.assertFalse(new.exists())

    def test_command_lines(self):
        self.assertIn("give a trace", self.refused())
        for words in (["x.trace", "--wire", "y.pcap", "--as", "10.0.0.1"], ["--wire", "y.pcap"], ["--nic", "cx5-100g"]):
            self.assertNotEqual(apps.call("replay", *words).status, 0, words)
        trace = self.record("--", "true")
        self.assertIn("no parameter bogus", self.refused(trace, "--set", "bogus=1"))
        for option in ("--check", "--waterfall", "--record-software"):
            self.assertIn("a replay", self.refused(trace, "--record", self.path / "b.trace", option))

    def test_a_capture_of_the_replay_is_that_of_the_run(self):
        trace, captures = self.path / "run.trace", [self.path / "a.pcap", self.path / "b.pcap"]
        self.assert_succeeded(apps.call("run", "--record", trace, "--record-software", "--pcap", captures[0], "--",
                                        "ibv_srq_pingpong", "-g", "1", "-n", "50"))
        self.replayed(trace, "--pcap", captures[1], "--audit")
        self.assertEqual(captures[0].read_bytes(), captures[1].read_bytes())


if __name__ == "__main__":
    apps.main()
