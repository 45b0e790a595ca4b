#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated NIC and the Soft-RoCE of a Linux guest, joined by a live wire.

usage: live_wire_test.py path/to/rnicsim [TESTS]
"""
import guests_test
from guests_test import RXE, GuestTest, apps

# h1 is simulated. The guest takes the place of the topology's h0, and has h0's address already.
GUEST = f"ip route add 10.0.0.0/16 dev eth0; {RXE}; sleep 1; "
WALL_LIMIT = "1500s"
# Timeout 18 is 4.096 us * 2^18, about a second: the longest answer time of an emulated guest.
TIMEOUT = 18


def stubborn(command):
    return (f"for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do {command} && break; sleep 2; "
            "[ $attempt = 15 ] && exit 1; done; ")


class LiveWire(GuestTest):
    def run_pair(self, on_host, on_guest, *options, add=()):
        with apps.folder() as path:
            socket = f"unix:{path / 'wire'}"
            (path / "host.sh").write_text(on_host)
            (path / "guest.sh").write_text(GUEST + on_guest)
            host = apps.start("run", "--wire", f"h0={socket}", "--wall-limit", WALL_LIMIT, *options, "--on", "h1",
                              f"sh -e {path / 'host.sh'}")
            added = [word for file in (path / "guest.sh", *add) for word in ("--add", file)]
            guest = apps.start("vm", "--guests", "1", "--driver", "none", "--wire", socket, "--wall-limit", WALL_LIMIT,
                               *added, "--on", "g0", "sh guest.sh")
            results = apps.finish(host), apps.finish(guest)
            self.assertEqual([result.status for result in results], [0, 0], "\n\n".join(map(str, results)))
            return results

    def check_programs(self, servers, clients, *options):
        """Runs pairs of programs, one after the other, in both directions."""
        for host_serves in (False, True):
            serving = "".join(f"{command}; " for command in servers)
            calling = "".join(stubborn(f"{command} {'10.0.1.1' if host_serves else '10.0.0.1'}") for command in clients)
            host, guest = self.run_pair(*((serving, calling) if host_serves else (calling, serving)), *options)
            yield host.text("h1"), guest.text("g0")

    def test_stock_programs(self):
        programs = ["ibv_rc_pingpong -g 1 -n 50 -c", "ib_send_bw -n 100 -s 4096 -F",
                    "ib_send_bw -c UC -n 100 -s 4096 -F", "ib_send_bw -c UD -n 100 -s 1024 -F"]
        for texts in self.check_programs(programs, programs):
            for text in texts:
                self.assertIn("50 iters in", text)
                self.assertEqual(len(apps.perftest_rows(text.splitlines())), 3, text)

    # rping's server ends with its client: `wait` is for the guest's shell.
    def test_connection_manager(self):
        host, guest = self.run_pair(stubborn("rping -c -a 10.0.0.1 -C 10 -v"), "rping -s -a 10.0.0.1 -C 10 -v; true")
        self.assertEqual(host.text("h1").count("ping data: rdma-ping-"), 10, host)
        host, guest = self.run_pair("rping -s -a 10.0.1.1 -C 10 -v || true\n",
                                    stubborn("rping -c -a 10.0.1.1 -C 10 -v"))
        self.assertEqual(guest.text("g0").count("ping data: rdma-ping-"), 10, guest)

    def check_numbered(self, count):
        source = (apps.PROGRAMS / "verbs" / "numbered_messages.c").read_text()
        program = apps.built("numbered_messages", source, "-libverbs")
        arguments = f"-t {TIMEOUT} -n {count}"
        host, guest = self.run_pair(f"{program} {arguments} 10.0.0.1\n{program} {arguments}\n",
                                    f"numbered_messages {arguments}; sleep 1; numbered_messages {arguments} 10.0.1.1",
                                    "--fault", "drop=1e-2", add=[f"{program}=/usr/local/bin/numbered_messages"])
        for text in host.text("h1"), guest.text("g0"):
            self.assertIn(f"{count} messages sent", text)
            self.assertIn(f"{count} messages came, each once, in order", text)
        self.assertRegex(host.summary(), r"fault rules acted on \d+ of the received frames")

    def test_nothing_is_lost_nor_comes_twice(self):
        self.check_numbered(2000)

    @guests_test.unittest.skipUnless("--full" in guests_test.sys.argv, "takes minutes: --full")
    def test_a_hundred_thousand_messages(self):
        self.check_numbered(100_000)


if __name__ == "__main__":
    apps.main()
