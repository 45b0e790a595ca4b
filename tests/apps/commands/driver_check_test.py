#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
run --check and bench --check: the project's driver has no findings, and a program's mistakes are reported.

usage: driver_check_test.py path/to/rnicsim     (needs perftest)
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

# Flushes more receives than the completion queue holds.
PROGRAM = r"""
#include <infiniband/verbs.h>
#include <unistd.h>

int main(void) {
  struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
  struct ibv_pd *pd = ibv_alloc_pd(context);
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr made = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 64, .max_recv_sge = 1}};
  struct ibv_qp *qp = ibv_create_qp(pd, &made);
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  int good = ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
  struct ibv_recv_wr receive = {.num_sge = 0}, *bad;
  for (int i = 0; i < 64; ++i) good &= ibv_post_recv(qp, &receive, &bad) == 0;
  attributes.qp_state = IBV_QPS_ERR;
  good &= ibv_modify_qp(qp, &attributes, IBV_QP_STATE) == 0;
  usleep(1000);
  return !good;
}
"""


class DriverCheck(unittest.TestCase):
    def counts_by_device(self, result):
        """Numbers of accesses and findings by device."""
        return {label: (int(accesses), int(findings)) for label, accesses, findings in
                re.findall(r"^rnicsim: check: (\S+): (\d+) accesses, (\d+) findings$", result.err, re.MULTILINE)}

    def assert_right(self, result):
        self.assertEqual(result.status, 0, result)
        counts_by_device = self.counts_by_device(result)
        self.assertEqual(set(counts_by_device), {"h0", "h1"}, result)
        for accesses, findings in counts_by_device.values():
            self.assertGreater(accesses, 50, result)
            self.assertEqual(findings, 0, result)
        return counts_by_device

    def test_programs(self):
        for program in ("ib_write_bw -n 300", "ib_send_lat -n 100 -e", "ib_read_bw -n 100", "ib_send_bw -c UD -n 100",
                        "ib_send_bw -n 100 --use-srq"):
            with self.subTest(program):
                self.assert_right(apps.run(program, "--check"))

    def test_programs_in_the_modes(self):
        self.assert_right(apps.run("ib_send_bw -n 300", "--check", "--check-poison", "--check-owner-delay", "500ns"))

    def test_same_times(self):
        table = apps.run("ib_write_lat -n 100").lines("h1")
        self.assertEqual(apps.run("ib_write_lat -n 100", "--check").lines("h1"), table)

    def test_bench(self):
        result = apps.call("bench", "write-4k", "--check", "--set", "measure.duration=1ms")
        self.assert_right(result)
        self.assertIn("registers used: kMagic ", result.err)
        self.assertIn("commands never used: ", result.err)

    def test_mistake(self):
        program = str(apps.built("overrun", PROGRAM, "-libverbs"))
        plain = apps.run_on([("h0", program)])
        checked = apps.run_on([("h0", program)], "--check")
        self.assertEqual(plain.status, 0, plain)
        self.assertEqual(checked.status, 1, checked)
        found = re.search(r"^rnicsim: check: h0: \S+ \w+: record_not_updated: completion queue \d+ overruns with "
                          r"consumer 0 in the doorbell record: .* \(docs/device.md, Completion queue\)\n"
                          r"(  .*(write|read) of \d+ bytes .*\n){10}", checked.err, re.MULTILINE)
        self.assertTrue(found, checked)
        self.assertEqual(self.counts_by_device(checked)["h0"][1], 1, checked)

    def test_modes_want_the_check(self):
        result = apps.run("ib_write_bw", "--check-poison")
        self.assertEqual(result.status, 2)
        self.assertIn("--check-poison requires --check", result.err)


if __name__ == "__main__":
    apps.main()
