#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Live wires: two simulators at a socket, a peer of the test itself, and a TAP interface.

usage: live_wire_test.py path/to/rnicsim     (needs gcc, libibverbs' headers, and stock programs)
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import apps  # noqa: E402
import peer as wire  # noqa: E402

LOSS = ("--fault", "drop=1e-2")
WALL_LIMIT = ("--wall-limit", "240s")
KINDS = {1: "icmp", 6: "tcp", 17: "udp"}


def numbered(*arguments):
    source = (apps.PROGRAMS / "verbs" / "numbered_messages.c").read_text()
    program = apps.built("numbered_messages", source, "-libverbs")
    return " ".join([str(program), *map(str, arguments)])


class BackToBack(apps.TestCase):
    """h0 runs in a process and h1 in another: each process sees the other host through the wire."""

    def run_pair(self, on_h0, on_h1, *options, of_h0=(), of_h1=()):
        with apps.folder() as path:
            socket = path / "wire"
            first = apps.start("run", "--wire", f"h1=unix:{socket}", *WALL_LIMIT, *options, *of_h0, "--on", "h0", on_h0)
            # The programs try again until the peer is there.
            second = apps.start("run", "--wire", f"h0=unix:{socket},connect", *WALL_LIMIT, *options, *of_h1, "--on",
                                "h1", on_h1)
            return self.assert_succeeded(apps.finish(first)), self.assert_succeeded(apps.finish(second))

    # The client's first attempts may precede the server's start.
    @staticmethod
    def stubborn(command):
        return f"sh -c 'for attempt in 1 2 3 4 5 6 7 8 9; do {command} && exit 0; sleep 1; done; exit 1'"

    def test_pingpong_with_the_server_at_the_listening_side(self):
        program = "ibv_rc_pingpong -g 1 -n 50 -c"
        results = self.run_pair(program, self.stubborn(f"{program} 10.0.0.1"))
        for result, host in zip(results, ("h0", "h1")):
            self.assertIn("50 iters", result.text(host), result)
            self.assertIn("runs in real time", result.summary(), result)
            self.assertNotIn("other stations", result.summary(), result)

    def test_pingpong_with_the_server_at_the_connecting_side(self):
        results = self.run_pair(self.stubborn("ibv_rc_pingpong -g 1 -n 50 10.0.1.1"), "ibv_rc_pingpong -g 1 -n 50")
        self.assertIn("50 iters", results[1].text("h1"), results[1])

    def test_lossy_cables_lose_and_repeat_nothing(self):
        with apps.folder() as path:
            results = self.run_pair(numbered("-n", 4000), numbered("-n", 4000, "10.0.0.1"), *LOSS,
                                    of_h0=("--json", path / "results.json"))
            counters = apps.read_json(path / "results.json")["hosts"]["h0"]["counters"]
        self.assertIn("4000 messages came, each once, in order", results[0].text("h0"), results[0])
        self.assertIn("4000 messages sent", results[1].text("h1"), results[1])
        self.assertGreater(counters["link.dropped"], 0)

    def test_unreliable_transports(self):
        for kind in "UC", "UD":
            command = f"ib_send_bw -c {kind} -n 100 -s 1024 -F"
            results = self.run_pair(command, self.stubborn(f"{command} 10.0.0.1"))
            self.assertEqual(len(apps.perftest_rows(results[0].lines("h0"))), 1, results[0])

    def test_connections_over_qp_1(self):
        server, client = "rping -s -a 10.0.0.1 -C 5 -v", self.stubborn("rping -c -a 10.0.0.1 -C 5 -v")
        results = self.run_pair(server, client)
        self.assertEqual(results[1].text("h1").count("ping data: rdma-ping-"), 5, results[1])

    def test_switches_between(self):
        star = ("--topology", "star:3")
        with apps.folder() as path:
            socket = path / "wire"
            first = apps.start("run", *star, "--wire", f"h2=unix:{socket}", *WALL_LIMIT, "--on", "h0",
                               "ibv_rc_pingpong -g 1 -n 20")
            second = apps.start("run", *star, "--wire", f"h0=unix:{socket},connect", *WALL_LIMIT, "--on", "h2",
                                self.stubborn("ibv_rc_pingpong -g 1 -n 20 10.0.0.1"))
            for process, host in (first, "h0"), (second, "h2"):
                result = self.assert_succeeded(apps.finish(process))
                self.assertIn("20 iters", result.text(host), result)

    def test_a_capture_has_all_frames_of_both_directions(self):
        with apps.folder() as path:
            self.run_pair("ibv_rc_pingpong -g 1 -n 10", self.stubborn("ibv_rc_pingpong -g 1 -n 10 10.0.0.1"),
                          of_h0=("--pcap", path / "wire.pcapng"))
            packets = apps.read_capture(path / "wire.pcapng")
        seen = {(packet.interface, "arp" if packet.frame[12:14] == b"\x08\x06" else KINDS.get(packet.frame[23]))
                for packet in packets}
        for host in "h0", "h1":
            for kind in "arp", "tcp", "udp":
                self.assertIn((host, kind), seen)


SHOUTING_SERVER = """
import socket
server = socket.create_server(("10.0.0.1", 7777))
clients = []
while True:
    clients.append(server.accept()[0])
    clients[-1].sendall(clients[-1].recv(100).upper())
"""


class ByHand(apps.TestCase):
    """h1 is a peer of this test, with a different MAC address."""

    def with_peer(self, play, command="sleep 1000", status=None):
        with apps.folder() as path:
            process = apps.start("run", "--wire", f"h1=unix:{path / 'wire'}", *WALL_LIMIT, "--on", "h0", command)
            try:
                play(path / "wire")
            finally:
                if status is None:
                    process.terminate()
            result = apps.finish(process)
        if status is not None:
            self.assertEqual(result.status, status, result)
        return result

    def test_answers_arp_and_echo(self):
        def play(path):
            with wire.Peer(path) as peer:
                self.assertEqual(peer.resolve(), wire.HOST_MAC)
                for number in range(1, 20):
                    reply = peer.ping(number)
                    self.assertEqual(reply[:12], wire.MAC + wire.HOST_MAC)

        self.assertIn("peer's MAC 52:54:00:aa:bb:cc", self.with_peer(play).summary())

    # The simulated host knows h1's address without ARP. The port asks for the MAC address, and holds the frame until
    # the answer.
    def test_learns_the_mac_address_before_it_sends(self):
        def play(path):
            with wire.Peer(path) as peer:
                frame = peer.receive_until(lambda frame: frame[12:14] == b"\x08\x00" and frame[23] == wire.UDP)
                self.assertEqual(frame[:12], wire.MAC + wire.HOST_MAC)
                self.assertEqual(frame[36:38], (4791).to_bytes(2, "big"))

        self.with_peer(play, "rping -c -a 10.0.1.1 -C 1")

    def test_refuses_connections_to_ports_without_a_listener(self):
        def play(path):
            with wire.Peer(path) as peer:
                peer.resolve()
                self.assertTrue(peer.connect(40000, 18515).flags & wire.RST)

        self.with_peer(play)

    # Bytes that arrive before the program's end of the connection exists are kept.
    def test_bytes_right_behind_the_handshake(self):
        def play(path):
            with wire.Peer(path) as peer:
                peer.resolve()
                for port in range(40000, 40020):
                    for attempt in range(100):
                        if peer.connect(port + 1000 * attempt, 7777, b"hello").flags & wire.SYN:
                            break
                        time.sleep(0.1)
                    answer = peer.receive_segment(port + 1000 * attempt, 0)
                    self.assertEqual(answer.payload, b"HELLO")

        with apps.folder() as folder:
            (folder / "server.py").write_text(SHOUTING_SERVER)
            self.with_peer(play, f"python3 {folder / 'server.py'}")

    # A line for each kind of invalid data, and the next connection works.
    def check_nonsense(self, data, line, closes):
        def play(path):
            for _ in range(3):
                with wire.Peer(path) as peer:
                    peer.resolve()
                    peer.send_bytes(data)
                    if closes:
                        peer.socket.shutdown(1)
                        self.assertTrue(peer.is_closed())
                    else:
                        peer.ping()
            with wire.Peer(path) as peer:
                peer.ping(2)

        result = self.with_peer(play)
        self.assertEqual(len(re.findall(line, result.err)), 1, result)
        self.assertNotIn("ended with status 1\n", result.out, result)

    def test_an_empty_frame(self):
        self.check_nonsense(bytes(4), "frame of length 0", closes=False)

    def test_a_frame_without_a_header(self):
        self.check_nonsense(wire.framed(bytes(13)), "frame of 13 bytes, shorter than an Ethernet header", closes=False)

    def test_a_length_beyond_the_limit(self):
        self.check_nonsense(b"\0\1\0\1", "announced a frame of 65537 bytes, more than 65536", closes=True)
        self.check_nonsense(b"\xff\xff\xff\xff", "announced a frame of 4294967295 bytes", closes=True)

    def test_an_end_within_a_frame(self):
        self.check_nonsense(b"\0\0\1\0", "closed the connection within a frame", closes=True)

    def test_another_station(self):
        other = wire.arp(wire.REQUEST, bytes(6), wire.HOST_IP, b"\2\2\2\2\2\2", bytes([10, 0, 7, 7]))
        self.check_nonsense(wire.framed(other), r"its station \(02:02:02:02:02:02\)", closes=False)

    def test_a_second_peer_is_turned_away(self):
        def play(path):
            with wire.Peer(path) as peer, wire.Peer(path) as second:
                self.assertTrue(second.is_closed())
                peer.ping()

        self.assertEqual(self.with_peer(play).err.count("it is refused"), 1)

    # The peer sends 128 MB of frames that no queue pair takes: the NIC counts the frames.
    def test_a_flood(self):
        frame = wire.framed(wire.HOST_MAC + wire.MAC + b"\x88\xb5" + bytes(4000))

        def play(path):
            with wire.Peer(path) as peer:
                peer.resolve()
                for _ in range(500):
                    peer.send_bytes(frame * 64)
                peer.ping()

        result = self.with_peer(play)
        self.assertIn("nic.raw.no_flow", result.summary(), result)

    def test_wrong_options(self):
        for option, why in (("h1", "is needed"), ("h7=unix:x", "no such host"), ("h1=udp:x", "unix:PATH or tap:NAME"),
                            ("h1=unix:", "path is needed"), ("h1=tap:", "1 to 15 bytes"),
                            ("h1=tap:a-name-that-is-too-long", "1 to 15 bytes"),
                            (f"h1=unix:{'x' * 120}", "1 to 107 bytes"),
                            (f"h1=unix:{'x' * 120},connect", "1 to 107 bytes"),
                            ("h1=unix:/nowhere/socket", "No such file")):
            result = apps.call("run", "--wire", option, "--on", "h0", "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(why, result.err)
            self.assertEqual(len(result.err.strip().splitlines()), 1, result)

    def test_what_does_not_go_together(self):
        for options, why in ((("--wire", "h1=unix:x", "--time=sim"), "needs real time"),
                             (("--wire", "h1=unix:x", "--wire", "h1=unix:y"), "already has a wire"),
                             (("--wire", "h1=unix:x", "--wire", "h0=unix:y"), "at least one host must be simulated"),
                             (("--wire", "h0=unix:x"), "no program can run there")):
            result = apps.call("run", *options, "--on", "h0", "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(why, result.err)


# The real kernel in a network namespace is the peer.
ECHO_SERVER = r"""
import socket
import sys
address, peer = sys.argv[1:]
server = socket.create_server((address, 7777), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
client, name = server.accept()
assert name[0] == peer, name
total = 0
while data := client.recv(65536):
    total += len(data)
    client.sendall(data)
client.close()
print(total)
"""
ECHO_CLIENT = r"""
import socket, sys, threading, time
for attempt in range(60):
    try:
        client = socket.create_connection((sys.argv[1], 7777), timeout=100)
        break
    except OSError:
        time.sleep(0.5)
sent = bytes(i * 7 % 251 for i in range(1_000_000))
def send():
    client.sendall(sent)
    client.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
came = b""
while data := client.recv(65536):
    came += data
print("same" if came == sent else "different")
"""
IN_NAMESPACE = r"""
cd "$FOLDER" || exit
"$RNICSIM" run --wire h1=tap:wire0 --wall-limit 240s $FAULTS --on h0 "python3 server.py $HOST $PEER" >simulator 2>&1 &
for attempt in $(seq 100); do ip link set wire0 address 02:00:00:00:01:01 2>/dev/null && break; sleep 0.1; done
ip link set wire0 up
ip address add 10.0.1.1/16 dev wire0
ip address add fd00::1:1/64 dev wire0 nodad
python3 client.py $HOST >client 2>&1
wait $!
echo $? >status
"""


class Tap(apps.TestCase):
    def setUp(self):
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            self.skipTest("there is no /dev/net/tun")
        self.unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
        if subprocess.run([*self.unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no network namespace can be made")

    def check_echo(self, faults="", host="10.0.0.1", peer="10.0.1.1"):
        with apps.folder() as path:
            (path / "server.py").write_text(ECHO_SERVER)
            (path / "client.py").write_text(ECHO_CLIENT)
            subprocess.run([*self.unshare, "sh", "-c", IN_NAMESPACE], check=True, timeout=apps.RUN_SECONDS,
                           env={**os.environ, "FOLDER": str(path), "RNICSIM": apps.rnicsim(), "FAULTS": faults,
                                "HOST": host, "PEER": peer})
            simulator, client, status = ((path / name).read_text() for name in ("simulator", "client", "status"))
        self.assertEqual(status, "0\n", simulator)
        self.assertIn("h0| 1000000", simulator)
        self.assertEqual(client, "same\n")

    def test_tcp_with_the_kernel(self):
        self.check_echo()

    def test_tcp_over_ipv6(self):
        self.check_echo(host="fd00::1", peer="fd00::1:1")

    def test_tcp_with_the_kernel_and_losses(self):
        self.check_echo("--fault drop=1e-2")


if __name__ == "__main__":
    apps.main()
