#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys of a workload that change how agents use queue pairs, receives and memory.

usage: bench_keys_test.py RNICSIM [TESTS]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNICSIM = ""
HEAD = """schema = 1
[measure]
warmup = "20 us"
duration = "100 us"
[[flow]]
from = "h0"
to = "h1"
"""


class Keys(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def call(self, keys, head=HEAD):
        path, results = self.folder / "w.toml", self.folder / "r.json"
        path.write_text(head + keys)
        done = subprocess.run([RNICSIM, "bench", path, "--json", results], capture_output=True, text=True, timeout=600)
        return done, results

    def bench(self, keys, head=HEAD):
        done, results = self.call(keys, head)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(results.read_text())

    def refused(self, keys):
        """The error line, without the file's name."""
        done, _ = self.call(keys)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr.split("w.toml: ", 1)[1].rstrip()

    def counter(self, results, host, path):
        return results["hosts"][host]["counters"][path]

    # --- signal_per

    def test_signals_counted_over_the_queue_pairs_of_a_thread(self):
        keys = 'op = "write"\nsize = "64 B"\nqps = 4\nwindow = 32\nwindow_per = "thread"\nsignal_every = {}\n' \
               'signal_per = "{}"\n'
        for every, per in ((8, "qp"), (3, "qp"), (3, "thread"), (5, "thread")):
            results = self.bench(keys.format(every, per))
            operations, cqes = results["flows"][0]["operations"], self.counter(results, "h0", "nic.completion.cqes")
            self.assertGreater(operations, 200)
            self.assertAlmostEqual(operations / cqes, every, delta=0.15 * every, msg=per)

    def test_signals_of_a_thread_never_stand_still(self):
        # `signal_every` is a multiple of the number of queue pairs: without the rule for a full window, only the last
        # queue pair would get signalled WQEs.
        for window, batch in ((8, 1), (9, 2), (64, 4)):
            results = self.bench(f'op = "write"\nsize = "64 B"\nqps = 4\nwindow = {window}\nwindow_per = "thread"\n'
                                 f'batch = {batch}\nsignal_every = 8\nsignal_per = "thread"\n')
            self.assertGreater(results["flows"][0]["operations"], 60)

    # --- both_ways

    def test_both_ends_post_on_one_queue_pair(self):
        keys = 'op = "write"\nsize = "64 KiB"\nwindow = 8\nboth_ways = {}\n'
        one, both = self.bench(keys.format("false")), self.bench(keys.format("true"))
        flow = both["flows"][0]
        self.assertGreater(flow["goodput_bits_per_s"], 1.8 * one["flows"][0]["goodput_bits_per_s"])
        self.assertEqual(flow["fairness"]["senders"], 2)
        self.assertGreater(flow["fairness"]["jain"], 0.99)
        for host in ("h0", "h1"):
            self.assertGreater(self.counter(both, host, "nic.tx.payload_bytes"), 500_000)
        self.assertEqual({agent["end"] for agent in both["agents"]}, {"from", "to"})

    def test_both_ways_of_reads_and_atomics(self):
        for keys in ('op = "read"\nsize = "4 KiB"\n', 'op = "fetch_add"\n',
                     'mix = [{ op = "write", size = "1 KiB" }, { op = "read", size = "1 KiB" }]\n'):
            results = self.bench(keys + 'window = 4\nqps = 2\nthreads = 2\nboth_ways = true\n')
            self.assertEqual(results["flows"][0]["fairness"]["senders"], 4)
            self.assertGreater(results["flows"][0]["operations"], 50)
            self.assertEqual(results["flows"][0]["fairness"]["silent"], 0)

    def test_both_ways_is_refused_where_it_cannot_be(self):
        plain = 'op = "write"\nsize = "64 B"\nboth_ways = true\n'
        self.assertIn("flow[0].both_ways: needs operations without receives",
                      self.refused('op = "send"\nsize = "64 B"\nboth_ways = true\n'))
        self.assertIn("flow[0].both_ways: cannot be combined with ping_pong",
                      self.refused(plain + "ping_pong = true\n"))
        self.assertIn("flow[0].both_ways: cannot be combined with share", self.refused(plain + "share = true\n"))
        self.assertIn("flow[0].both_ways: cannot be combined with op = \"lock_write\"",
                      self.refused('op = "lock_write"\nsize = "64 B"\nboth_ways = true\n'))

    # --- srq

    def test_queue_pairs_share_their_receives(self):
        for transport in ("rc", "ud"):
            keys = f'transport = "{transport}"\nop = "send"\nsize = "512 B"\nqps = 8\nwindow = 4\n'
            own = self.bench(keys)
            shared = self.bench(keys + "srq = true\nrecv_depth = 128\n")
            self.assertGreater(shared["flows"][0]["operations"], 200)
            lookups = [self.counter(results, "h1", "nic.contexts.srqc.lookups") for results in (own, shared)]
            self.assertEqual(lookups[0], 0)
            self.assertGreater(lookups[1], 100)

    def test_shared_receives_that_are_too_few(self):
        # 32 outstanding operations and four receives: the senders wait for receives, and nothing is lost.
        keys = 'op = "send"\nsize = "512 B"\nqps = 8\nwindow = 4\nsrq = true\nrnr_timer = 1\nrecv_depth = '
        few, many = [self.bench(keys + str(depth))["flows"][0]["operations"] for depth in (4, 128)]
        self.assertGreater(few, 20)
        self.assertLess(few, 0.7 * many)

    def test_srq_is_refused_where_it_cannot_be(self):
        self.assertIn("flow[0].srq: needs operations with receives",
                      self.refused('op = "write"\nsize = "64 B"\nsrq = true\n'))
        self.assertIn('flow[0].srq: needs transport = "rc" or "ud"',
                      self.refused('transport = "uc"\nop = "send"\nsize = "64 B"\nsrq = true\n'))
        self.assertIn("flow[0].recv_depth: ", self.refused('op = "send"\nsize = "64 B"\nsrq = true\nrecv_depth = 0\n'))
        none = "set = { nic.capabilities.srq = false, nic.capabilities.xrc = false }\n"
        head = HEAD.replace("[measure]", none + "[measure]")
        done, _ = self.call('op = "send"\nsize = "64 B"\nsrq = true\n', head)
        self.assertEqual(done.returncode, 2)
        self.assertIn("flow[0].srq: the NIC has no shared receive queues: nic.capabilities.srq is false", done.stderr)

    # --- xrc

    def test_xrc_does_what_rc_does(self):
        for operation in ('op = "write"\nsize = "4 KiB"\n', 'op = "send"\nsize = "512 B"\n', 'op = "fetch_add"\n',
                          'op = "read"\nsize = "4 KiB"\n', 'op = "write_imm"\nsize = "64 B"\n'):
            keys = operation + 'qps = 4\nthreads = 2\nwindow = 4\nrecv_depth = 256\ntransport = "{}"\n'
            rc, xrc = [self.bench(keys.format(transport))["flows"][0]["operations"] for transport in ("rc", "xrc")]
            self.assertGreater(xrc, 50)
            self.assertAlmostEqual(xrc / rc, 1, delta=0.15, msg=operation)

    def test_xrc_is_refused_where_it_cannot_be(self):
        xrc = 'op = "write"\nsize = "64 B"\ntransport = "xrc"\n'
        for key, complaint in (("ping_pong", 'ping_pong: cannot be combined with transport = "xrc"'),
                               ("both_ways", 'both_ways: needs transport = "rc" or "uc"'),
                               ("srq", 'srq: needs transport = "rc" or "ud"'),
                               ("odp", 'odp: needs transport = "rc"')):
            self.assertIn(f"flow[0].{complaint}", self.refused(xrc + f"{key} = true\n"))
        self.assertIn('flow[0].transport: sequences need "rc"',
                      self.refused('transport = "xrc"\nop = "lock_write"\nsize = "64 B"\n'))
        head = HEAD.replace("[measure]", "set = { nic.capabilities.xrc = false }\n[measure]")
        done, _ = self.call(xrc, head)
        self.assertIn("flow[0].transport: the NIC has no XRC", done.stderr)

    # --- connect_qp

    def test_queue_pairs_come_and_go(self):
        head = HEAD.replace('to = "h1"\n', "").replace("100 us", "2 ms")
        results = self.bench('op = "connect_qp"\nthreads = 2\n', head)
        flow = results["flows"][0]
        self.assertGreater(flow["operations"], 10)
        # Each queue pair takes five commands: create, three times modify, destroy.
        self.assertAlmostEqual(self.counter(results, "h0", "nic.command.commands") / flow["operations"], 5, delta=1)
        paced = self.bench('op = "connect_qp"\npace = 5000\n', head)
        self.assertAlmostEqual(paced["flows"][0]["operations"], 10, delta=2)
        self.assertIn('flow[0].window: cannot be combined with op = "connect_qp"',
                      self.call('op = "connect_qp"\nwindow = 2\n', head)[0].stderr)

    # --- odp

    def test_regions_on_demand(self):
        keys = 'op = "read"\nsize = "4 KiB"\nwindow = 4\naddress = "random"\nmr_size = "1 MiB"\n'
        head = HEAD.replace("100 us", "4 ms")
        pinned, demanded = self.bench(keys, head), self.bench(keys + "odp = true\n", head)
        lookups = [self.counter(results, "h1", "nic.atc.lookups") for results in (pinned, demanded)]
        self.assertEqual(lookups[0], 0)
        self.assertGreater(lookups[1], 3)
        self.assertGreater(demanded["flows"][0]["operations"], 3)
        self.assertIn('flow[0].odp: needs transport = "rc"',
                      self.refused('transport = "uc"\nop = "write"\nsize = "64 B"\nodp = true\n'))

    # --- mix with sequences

    def test_sequences_mixed_with_reads(self):
        results = self.bench('mix = [{ op = "lock_write", size = "64 B" },\n'
                             '  { op = "read", size = "64 B", weight = 3 },\n'
                             '  { sequence = ["read", "write"], size = "32 B" }]\n'
                             'window = 8\nqps = 2\naddress = { slots = 64 }\nshare = true\n')
        flow = results["flows"][0]
        counts = [entry["operations"] for entry in flow["sequence"]]
        self.assertEqual([entry["op"] for entry in flow["sequence"]],
                         ["cmp_swap", "write", "write", "read", "read", "write"])
        locks, writes, unlocks, reads, first, second = counts
        # A whole sequence counts as one operation; the shares follow the weights.
        self.assertAlmostEqual(unlocks + reads + second, flow["operations"], delta=3)
        self.assertAlmostEqual(reads / flow["operations"], 0.6, delta=0.1)
        self.assertAlmostEqual(unlocks / flow["operations"], 0.2, delta=0.1)
        self.assertGreaterEqual(locks, unlocks - 8)
        self.assertAlmostEqual(first, second, delta=8)
        self.assertEqual(results["random"], ["flow[0].address", "flow[0].mix"])
        self.assertEqual([entry["weight"] for entry in flow["parameters"]["mix"]], [1, 3, 1])

    def test_a_mix_with_sequences_is_refused_where_it_cannot_be(self):
        mix = 'mix = [{ sequence = ["read", "write"], size = "8 B" }, { op = "read", size = "8 B" }]\n'
        for key, value in (("batch", "2"), ("signal_every", "2"), ("pick", '"random"')):
            self.assertIn(f"flow[0].{key}: cannot be combined with a mix with sequences",
                          self.refused(mix + f"window = 4\n{key} = {value}\n"))
        self.assertIn("flow[0].mix[0].op: cannot be combined with sequence",
                      self.refused('mix = [{ op = "read", sequence = ["read"], size = "8 B" }]\n'))
        self.assertIn('flow[0].transport: uc has no read', self.refused('transport = "uc"\n' + mix))


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
