#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Stock programs run unmodified, succeed, and measure values that are plausible for such a NIC.

usage: stock_programs_test.py path/to/rnicsim
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

# Plausible for a 100 Gb/s NIC on an idle cable: half a round trip of a few bytes in us, and Gb/s with 64 KiB messages.
# The port carries 97.98 Gb/s of payload with packets of 4096 bytes.
LEAST_LATENCY, MOST_LATENCY = 0.8, 6.0
LEAST_BANDWIDTH, MOST_BANDWIDTH = 90.0, 98.1
LEAST_READ_BANDWIDTH = 83.0  # one QP: 0.85 of WRITE's measured bandwidth (docs/timing.md, CAL-9)
MS = 10 ** 9  # ps

# Interposes ibv_qp_to_qp_ex, and prints the calls of the extended API on the returned QP.
WITNESS = r"""
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

static struct ibv_qp_ex *(*real_to_ex)(struct ibv_qp *);
static void (*real_start)(struct ibv_qp_ex *);
static void (*real_send)(struct ibv_qp_ex *);
static int (*real_complete)(struct ibv_qp_ex *);
static int starts, sends;

static void start(struct ibv_qp_ex *qp) { ++starts; real_start(qp); }
static void send_one(struct ibv_qp_ex *qp) { ++sends; real_send(qp); }
static int complete(struct ibv_qp_ex *qp) {
  static const char text[] = "witness: wr_start, wr_send, wr_complete\n";
  if (starts == 1 && sends == 1) (void)!write(2, text, sizeof text - 1);
  return real_complete(qp);
}
static struct ibv_qp_ex *to_ex(struct ibv_qp *qp) {
  struct ibv_qp_ex *ex = real_to_ex(qp);
  real_start = ex->wr_start; ex->wr_start = start;
  real_send = ex->wr_send; ex->wr_send = send_one;
  real_complete = ex->wr_complete; ex->wr_complete = complete;
  return ex;
}
unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie) {
  (void)map; (void)id; (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *by, uintptr_t *in, unsigned *flags,
                         const char *name) {
  (void)index; (void)by; (void)in; (void)flags;
  if (strcmp(name, "ibv_qp_to_qp_ex") != 0) return symbol->st_value;
  real_to_ex = (struct ibv_qp_ex * (*)(struct ibv_qp *)) symbol->st_value;
  return (uintptr_t)to_ex;
}
"""


def described(topic):
    """`rnicsim describe`: path -> value as text."""
    values = {}
    for line in apps.call("describe", topic).out.splitlines():
        words = re.split(r"\s{2,}", line.strip())
        if len(words) >= 3 and "." in words[0]:
            values[words[0]] = words[2]
    return values


def devinfo_values(lines):
    values = {}
    for line in lines:
        name, colon, value = line.strip().partition(":")
        if colon:
            values[name] = value.strip()
    return values


class DeviceList(apps.TestCase):
    def test_ibv_devices(self):
        result = self.assert_succeeded(apps.run_on([("h[0-1]", "ibv_devices")]))
        for number, host in enumerate(("h0", "h1")):
            self.assertRegex(result.text(host), rf"rnic0\s+000000fffe00{number:02x}01", result)

    def test_ibv_devinfo_shows_the_profile(self):
        result = self.assert_succeeded(apps.run_on([("h0", "ibv_devinfo -v")]))
        shown = devinfo_values(result.lines("h0"))
        profile = described("nic")
        for name, parameter in {"max_sge": "max_sge", "max_cqe": "max_cqe", "max_pd": "max_pd",
                                "max_qp_rd_atom": "max_rd_atomic", "gid_tbl_len": "gids"}.items():
            self.assertEqual(shown[name], profile[f"nic.capabilities.{parameter}"], name)
        # Objects that the kernel agent keeps for itself.
        for name, kept in {"max_qp": 64, "max_cq": 1, "max_mr": 2}.items():
            self.assertEqual(int(shown[name]), int(profile[f"nic.capabilities.{name}"]) - kept, name)
        # max_qp_wr counts WQEs with all segments, the send queue's memory counts blocks of 64 bytes. The segments
        # before the scatter list take 48 bytes, 64 in datagrams, and 288 in a TSO with the longest headers.
        blocks = int(profile["nic.capabilities.max_qp_wr"])
        self.assertEqual(int(shown["max_qp_wr"]), blocks // -(-(288 + 16 * int(shown["max_sge"])) // 64))
        for name, parameter in {"max_mr_size": "max_mr_size", "max_msg_sz": "max_message"}.items():
            self.assertEqual(int(shown[name], 16), int(profile[f"nic.capabilities.{parameter}"]), name)
        for name, parameter in {"max_mtu": "max_mtu", "active_width": "active_width",
                                "active_speed": "active_speed"}.items():
            self.assertIn(f"({profile[f'nic.capabilities.{parameter}']})", shown[name], name)
        self.assertEqual(shown["hca_core_clock"], profile["nic.device.core_clock_khz"] + "kHZ")
        self.assertEqual(shown["state"], "PORT_ACTIVE (4)")
        self.assertEqual(shown["num_comp_vectors"], described("host")["host.completion_vectors"])
        self.assertIn("::ffff:10.0.0.1, RoCE v2", shown["GID[  1]"])

    def test_ibv_devinfo_follows_a_changed_parameter(self):
        result = self.assert_succeeded(apps.run_on([("h0", "ibv_devinfo -v")], "--set", "nic.capabilities.max_qp=128",
                                                   "--set", "nic.capabilities.max_rd_atomic=4"))
        shown = devinfo_values(result.lines("h0"))
        self.assertEqual((shown["max_qp"], shown["max_qp_rd_atom"]), ("64", "4"))


class PingPong(apps.TestCase):
    def ping_pong(self, options, **more):
        result = self.assert_succeeded(apps.run(f"ibv_rc_pingpong -d rnic0 -g 1 -n 100 {options}", **more))
        for host in ("h0", "h1"):
            self.assertRegex(result.text(host), r"(?m)^819200 bytes in [\d.]+ seconds = [\d.]+ Mbit/sec$", result)
            microseconds = float(re.search(r"100 iters in .* = ([\d.]+) usec/iter", result.text(host)).group(1))
            # us for a round trip of 4 KiB; with -e each side also wakes from sleep.
            self.assertTrue(1.6 < microseconds < 20, result)
        return result

    def test_polling(self):
        self.ping_pong("")

    def test_events(self):
        self.ping_pong("-e")

    def test_checked_payload(self):
        result = self.ping_pong("-c")
        self.assertNotIn("invalid data", result.out + result.err, result)

    def test_new_send_api(self):
        with apps.folder() as path:
            (path / "witness.c").write_text(WITNESS)
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", path / "witness.so", path / "witness.c"], check=True)
            # An auditor needs room in the static TLS block for its own copy of libc.
            environment = dict(os.environ, LD_AUDIT=str(path / "witness.so"),
                               GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384")
            new = self.ping_pong("-N", env=environment)
            old = self.ping_pong("", env=environment)
        for host in ("h0", "h1"):
            self.assertIn("witness: wr_start, wr_send, wr_complete", new.errors(host), new)
            self.assertNotIn("witness", old.errors(host), old)

    def test_small_mtu(self):
        self.ping_pong("-m 1024")


class DatagramPingPong(apps.TestCase):
    """rdma-core's other ping-pongs: unreliable connection, datagram, and shared receive queue."""

    def ping_pong(self, command, bytes_moved, round_trips):
        result = self.assert_succeeded(apps.run(f"{command} -d rnic0 -g 1"))
        for host in ("h0", "h1"):
            self.assertRegex(result.text(host), rf"(?m)^{bytes_moved} bytes in [\d.]+ seconds = ", result)
            shown = re.search(r"(\d+) iters in .* = ([\d.]+) usec/iter", result.text(host))
            self.assertEqual(int(shown.group(1)), round_trips, result)
            self.assertTrue(0.2 < float(shown.group(2)) < 20, result)

    def test_unreliable_connection(self):
        self.ping_pong("ibv_uc_pingpong -n 100", 100 * 2 * 4096, 100)

    def test_unreliable_connection_with_events(self):
        self.ping_pong("ibv_uc_pingpong -n 100 -e", 100 * 2 * 4096, 100)

    def test_unreliable_datagram(self):
        self.ping_pong("ibv_ud_pingpong -n 100", 100 * 2 * 1024, 100)

    def test_unreliable_datagram_with_events(self):
        self.ping_pong("ibv_ud_pingpong -n 100 -e -s 2048", 100 * 2 * 2048, 100)

    def test_shared_receive_queue(self):
        self.ping_pong("ibv_srq_pingpong -n 320", 320 * 2 * 4096, 320)

    def test_shared_receive_queue_with_events(self):
        self.ping_pong("ibv_srq_pingpong -n 100 -q 4 -e", 100 * 2 * 4096, 100)


class PerftestRuns(apps.TestCase):
    def row(self, command, host, kind):
        """The row that `host` printed; in a two-sided test the other host printed a row, too."""
        result = self.assert_succeeded(apps.run(command))
        rows = apps.perftest_rows(result.lines(host))
        self.assertEqual(len(rows), 1, result)
        return kind(*rows[0])

    def latency(self, command, iterations=100):
        row = self.row(f"{command} -n {iterations}", "h1", apps.Latency)
        self.assertEqual(row.iterations, iterations)
        self.assertTrue(LEAST_LATENCY <= row.least <= row.typical <= row.most, row)
        self.assertTrue(row.typical <= MOST_LATENCY and row.least <= row.average <= row.most, row)
        return row

    def bandwidth(self, command, iterations=200, least=LEAST_BANDWIDTH):
        row = self.row(f"{command} --report_gbits -n {iterations}", "h1", apps.Bandwidth)
        self.assertEqual(row.size, 65536)
        self.assertTrue(least <= row.average <= MOST_BANDWIDTH, row)
        self.assertLess(abs(row.message_rate * 65536 * 8 / 1000 - row.average), 0.01, row)
        return row


class Perftest(PerftestRuns):
    def test_write_latency(self):
        self.latency("ib_write_lat")

    def test_read_latency_is_longer_than_a_writes(self):
        self.assertGreater(self.latency("ib_read_lat").typical, self.latency("ib_write_lat").typical)

    def test_send_latency(self):
        self.latency("ib_send_lat")

    def test_send_latency_with_events(self):
        result = self.assert_succeeded(apps.run("ib_send_lat -e -n 50"))
        self.assertTrue(3 < apps.perftest_rows(result.lines("h1"))[0][4] < 20, result)

    def test_latency_grows_with_the_message(self):
        small = self.latency("ib_write_lat -s 64")
        large = self.latency("ib_write_lat -s 4096")
        self.assertTrue(0.3 < large.typical - small.typical < 2, (small, large))

    def test_all_sizes(self):
        # Both sides spin on memory while 8 MiB are moved, many times: a minute on a busy machine.
        result = self.assert_succeeded(apps.run("ib_write_lat -a -n 5"))
        rows = apps.perftest_rows(result.lines("h1"))
        self.assertEqual([row[0] for row in rows], [2 ** power for power in range(1, 24)], result)

    def test_write_bandwidth(self):
        self.bandwidth("ib_write_bw")

    def test_write_bandwidth_both_ways(self):
        result = self.assert_succeeded(apps.run("ib_write_bw -b --report_gbits -n 200"))
        self.assertTrue(180 < apps.perftest_rows(result.lines("h1"))[0][3] < 196.2, result)

    def test_read_bandwidth(self):
        self.bandwidth("ib_read_bw", least=LEAST_READ_BANDWIDTH)

    def test_send_bandwidth(self):
        self.bandwidth("ib_send_bw")

    def test_send_bandwidth_with_events(self):
        self.bandwidth("ib_send_bw -e")

    def test_send_bandwidth_of_four_qps(self):
        row = self.bandwidth("ib_send_bw -q 4", 100)
        self.assertEqual(row.iterations, 400)

    def test_events_of_more_completions_than_are_polled_at_once(self):
        """perftest takes 16 completions per event and arms the CQ again, with completions left in the CQ."""
        for command in ("ib_read_bw -e -Q 1 -s 1024 -n 256", "ib_send_bw -e -Q 1 -n 500"):
            with self.subTest(command):
                self.row(command, "h1", apps.Bandwidth)

    def test_send_bandwidth_of_four_qps_with_events(self):
        self.bandwidth("ib_send_bw -q 4 -e", 100)

    def test_write_bandwidth_of_four_qps(self):
        self.bandwidth("ib_write_bw -q 4", 100)


class DatagramPerftest(PerftestRuns):
    """Unreliable connection and datagram, shared receive queues, multicast."""
    DATAGRAM = 4096  # bytes of a UD message: one MTU, and perftest's default size for UD

    def datagram_bandwidth(self, command, iterations=500):
        row = self.row(f"{command} --report_gbits -n {iterations}", "h1", apps.Bandwidth)
        self.assertLessEqual(row.size, self.DATAGRAM)
        self.assertTrue(40 < row.average <= MOST_BANDWIDTH, row)

    def test_datagrams_wait_for_receives_on_demand(self):
        """No page is present when the first datagram arrives; a lost datagram would stop the test for ever."""
        self.row("ib_send_lat -c UD --odp -n 20", "h1", apps.Latency)

    def test_uc_send_latency(self):
        self.latency("ib_send_lat -c UC")

    def test_uc_write_latency(self):
        self.latency("ib_write_lat -c UC")

    def test_ud_send_latency(self):
        self.latency("ib_send_lat -c UD")

    def test_ud_send_latency_with_events(self):
        result = self.assert_succeeded(apps.run("ib_send_lat -c UD -e -n 50"))
        self.assertTrue(3 < apps.perftest_rows(result.lines("h1"))[0][4] < 20, result)

    def test_uc_send_bandwidth(self):
        self.bandwidth("ib_send_bw -c UC")

    def test_uc_write_bandwidth(self):
        self.bandwidth("ib_write_bw -c UC")

    def test_ud_send_bandwidth(self):
        self.datagram_bandwidth("ib_send_bw -c UD")

    def test_ud_send_bandwidth_of_four_qps(self):
        self.datagram_bandwidth("ib_send_bw -c UD -q 4")

    def test_shared_receive_queue(self):
        self.bandwidth("ib_send_bw --use-srq -q 4", 100)

    def test_shared_receive_queue_latency(self):
        self.latency("ib_send_lat --use-srq")

    def test_shared_receive_queue_of_ud(self):
        self.datagram_bandwidth("ib_send_bw --use-srq -q 2 -c UD", 100)

    def test_group_latency(self):
        self.latency("ib_send_lat -c UD -g")

    def test_group_bandwidth(self):
        # perftest needs GIDs of the same kind at both ends, and takes the group's GID for an IPv6 one.
        self.datagram_bandwidth("ib_send_bw -c UD -g -x 2")


def write_latency(server, client, port):
    return [(server, f"ib_write_lat -n 50 -p {port}"), (client, f"ib_write_lat -n 50 -p {port} {server}")]


class OneHost(apps.TestCase):
    """Both programs on one host: the packets do not leave the host's NIC."""

    def test_write_latency(self):
        result = self.assert_succeeded(apps.run_on(write_latency("h0", "h0", 1000)))
        self.assertEqual(len(apps.perftest_rows(result.lines("h0"))), 2, result)

    def test_ping_pong(self):
        command = "ibv_rc_pingpong -d rnic0 -g 1 -n 100"
        result = self.assert_succeeded(apps.run_on([("h0", command), ("h0", f"{command} h0")]))
        self.assertEqual(len(re.findall(r"(?m)^819200 bytes in ", result.text("h0"))), 2, result)

    def test_both_hosts_at_once(self):
        result = self.assert_succeeded(apps.run_on([*write_latency("h0", "h0", 1000),
                                                    *write_latency("h1", "h1", 1000)]))
        for host in ("h0", "h1"):
            self.assertEqual(len(apps.perftest_rows(result.lines(host))), 2, result)


class QperfRuns(apps.TestCase):
    """qperf ends a test by an alarm, after 2 s of simulated time by default, and waits for events. Without -cm1, which
    only RC supports, qperf exchanges LIDs and no GIDs."""

    def qperf(self, server, arguments):
        return self.assert_succeeded(apps.run_on([("h0", "qperf"), ("h1", f"qperf {arguments.format(server)}")],
                                                 "--set", "host.lid_paths=true"))

    def assert_latency(self, result):
        shown = re.search(r"latency\s+=\s+([\d.]+) us", result.text("h1"))
        self.assertTrue(shown and LEAST_LATENCY < float(shown.group(1)) < MOST_LATENCY, result)

    def assert_bandwidth(self, result, tolerance=0.0, name="bw"):
        shown = re.search(rf"\b{name}\s+=\s+([\d.]+) GB/sec", result.text("h1"))
        self.assertTrue(shown, result)
        self.assertGreater(8 * float(shown.group(1)), LEAST_BANDWIDTH * (1 - tolerance), result)
        self.assertLess(8 * float(shown.group(1)), MOST_BANDWIDTH * (1 + tolerance), result)


class Qperf(QperfRuns):
    def test_without_lids_a_path_is_refused(self):
        result = apps.run_on([("h0", "qperf"), ("h1", "qperf -n 10 h0 rc_lat quit")])
        self.assertNotEqual(result.status, 0, result)
        self.assertRegex(result.err + result.out, "RTR.*Invalid argument")

    def test_latency_by_name(self):
        self.assert_latency(self.qperf("h0", "-t 1 {} rc_lat"))

    def test_bandwidth_by_address(self):
        # qperf counts time in hundredths of a second; this test takes about eleven.
        self.assert_bandwidth(self.qperf("10.0.0.1", "-n 20000 {} rc_bw"), 0.1)

    def test_as_issued(self):
        if not apps.full():
            self.skipTest("four seconds of simulated time: with --full")
        result = self.qperf("h0", "{} rc_lat rc_bw")
        self.assert_latency(result)
        self.assert_bandwidth(result)


class DatagramQperf(QperfRuns):
    def test_latency_of_uc_and_ud(self):
        for test in ("uc_lat", "ud_lat"):
            with self.subTest(test):
                self.assert_latency(self.qperf("h0", f"-t 1 {{}} {test}"))

    def test_bandwidth_of_uc(self):
        result = self.qperf("h0", "-n 20000 {} uc_bw")
        for way in ("send_bw", "recv_bw"):
            self.assert_bandwidth(result, 0.1, way)

    def test_bandwidth_of_ud(self):
        # qperf counts time in hundredths of a second; with 2 KiB messages this test takes about seven.
        result = self.qperf("h0", "-n 400000 {} ud_bw")
        for way in ("send_bw", "recv_bw"):
            shown = re.search(rf"{way}\s+=\s+([\d.]+) GB/sec", result.text("h1"))
            self.assertTrue(shown and 2 < float(shown.group(1)) < 1.2 * MOST_BANDWIDTH / 8, result)


class DatagramQperfByTime(QperfRuns):
    """Tests that ignore -n and take seconds of simulated time."""

    def setUp(self):
        if not apps.full():
            self.skipTest("with --full")

    def test_latency_of_writes(self):
        self.assert_latency(self.qperf("h0", "-t 1 {} uc_rdma_write_lat"))

    def test_bandwidth_of_writes(self):
        self.assert_bandwidth(self.qperf("h0", "-t 1 {} uc_rdma_write_bw"), 0.1, "recv_bw")

    def test_bandwidth_both_ways(self):
        for test in ("uc_bi_bw", "ud_bi_bw"):
            with self.subTest(test):
                result = self.qperf("h0", f"-t 1 {{}} {test}")
                for way in ("send_bw", "recv_bw"):
                    shown = re.search(rf"{way}\s+=\s+([\d.]+) GB/sec", result.text("h1"))
                    self.assertTrue(shown and 12.5 < float(shown.group(1)) < 2.4 * MOST_BANDWIDTH / 8, result)


class Output(apps.TestCase):
    def test_is_labelled_and_complete(self):
        result = self.assert_succeeded(apps.run_on([("h0", "seq 1 3000"),
                                                    ("h1", "sh -c 'seq 1 2000 >&2; printf end'")]))
        self.assertEqual(result.lines("h0"), [str(number) for number in range(1, 3001)])
        self.assertEqual(result.errors("h1").splitlines(), [str(number) for number in range(1, 2001)])
        self.assertEqual(result.lines("h1"), ["end"])

    def test_exit_status_is_the_worst(self):
        result = apps.run_on([("h0", "sh -c 'exit 3'"), ("h1", "sh -c 'exit 7'"), ("h1", "true")])
        self.assertEqual(result.status, 7, result)
        self.assertIn("h0: sh ended with status 3", result.summary())
        self.assertIn("h1: sh ended with status 7", result.summary())

    def test_several_programs_on_a_host(self):
        result = self.assert_succeeded(apps.run_on([
            ("h0", "ib_write_lat -n 20 -p 1000"), ("h1", "ib_write_lat -n 20 -p 1000 h0"),
            ("h0", "ib_read_lat -n 20 -p 1001"), ("h1", "ib_read_lat -n 20 -p 1001 h0")]))
        self.assertEqual(len(apps.perftest_rows(result.lines("h1"))), 2, result)

    def test_slow_network_between_the_programs(self):
        """The programs use TCP before and after the measurement, and wait for an answer more than once."""
        ends = []
        for milliseconds in (1, 11):
            result, results = apps.run_with_results("ib_write_lat -n 20", "--set", f"network.latency={milliseconds}ms")
            self.assert_succeeded(result)
            self.assertEqual(results["parameters"]["network.latency"], f"{milliseconds} ms")
            ends.append(results["end_ps"])
        self.assertGreater(ends[1] - ends[0], 2 * 10 * MS)

    def test_real_time(self):
        result = apps.run("ib_write_bw -n 100", "--time=real")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(len(apps.perftest_rows(result.lines("h1"))), 1, result)

    def test_client_waits_for_a_slow_server_in_real_time(self):
        """The client connects only once, as perftest does. The server computes before it listens, longer than the start
        of a program takes."""
        server = ("import socket, time; end = time.thread_time() + 0.3\n"
                  "while time.thread_time() < end: pass\n"
                  "socket.create_server((\"\", 7)).accept()[0].send(b\"here\")")
        client = "import socket; print(socket.create_connection((\"10.0.0.1\", 7)).recv(4))"
        result = apps.run_on([("h0", f"python3 -c '{server}'"), ("h1", f"python3 -c '{client}'")], "--time=real")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.lines("h1"), ["b'here'"])


if __name__ == "__main__":
    apps.main()
