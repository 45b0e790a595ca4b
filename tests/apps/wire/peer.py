# SPDX-License-Identifier: Apache-2.0
"""A machine at the far end of a live wire: the test implements QEMU's stream framing, Ethernet, ARP and ICMP echo."""
import dataclasses
import socket
import struct
import time

PATIENCE = 60  # s; longest time of an answer on a busy machine
MAC, IP = bytes.fromhex("525400aabbcc"), bytes([10, 0, 1, 1])  # the peer's; the topology gives this IP address to h1
HOST_MAC, HOST_IP = bytes.fromhex("020000000001"), bytes([10, 0, 0, 1])  # h0's
BROADCAST = b"\xff" * 6
IPV4, ARP = 0x0800, 0x0806
ICMP, TCP, UDP = 1, 6, 17
REQUEST, REPLY = 1, 2


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp(operation, target_mac, target_ip, sender_mac=MAC, sender_ip=IP):
    destination = target_mac if operation == REPLY else BROADCAST
    return (destination + sender_mac + struct.pack("!HHHBBH", ARP, 1, IPV4, 6, 4, operation) + sender_mac + sender_ip
            + target_mac + target_ip)


def echo_request(number, payload=b"0123456789abcdef"):
    icmp = struct.pack("!BBHHH", 8, 0, 0, 1, number) + payload
    icmp = icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(icmp), 1, 0, 64, ICMP, 0) + IP + HOST_IP
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return HOST_MAC + MAC + struct.pack("!H", IPV4) + ip + icmp


FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


@dataclasses.dataclass
class Segment:
    source: int
    destination: int
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes = b""

    def frame(self):
        """The segment as a frame from the peer to h0."""
        tcp = struct.pack("!HHIIBBHHH", self.source, self.destination, self.sequence & 0xFFFFFFFF,
                          self.acknowledged & 0xFFFFFFFF, 5 << 4, self.flags, 65535, 0, 0) + self.payload
        pseudo = IP + HOST_IP + struct.pack("!BBH", 0, TCP, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp + b"\0" * (len(tcp) % 2))) + tcp[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, TCP, 0) + IP + HOST_IP
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        return HOST_MAC + MAC + struct.pack("!H", IPV4) + ip + tcp

    @staticmethod
    def of(frame):
        """The segment of a frame from h0; None if the frame has none."""
        if frame[12:14] != struct.pack("!H", IPV4) or frame[23] != TCP:
            return None
        source, destination, sequence, acknowledged, offset, flags = struct.unpack_from("!HHIIBB", frame, 34)
        end = 14 + struct.unpack_from("!H", frame, 16)[0]
        return Segment(source, destination, sequence, acknowledged, flags, frame[34 + (offset >> 4) * 4:end])


def framed(frame):
    return struct.pack("!I", len(frame)) + frame


class Peer:
    """A connection to the socket at which rnicsim listens."""

    def __init__(self, path):
        deadline = time.monotonic() + PATIENCE
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            try:
                self.socket.connect(str(path))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                self.socket.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, frame):
        self.send_bytes(framed(frame))

    def send_bytes(self, data):
        self.socket.sendall(data)

    def _take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        return self._take(*struct.unpack("!I", self._take(4)))

    def receive_until(self, wanted):
        """The first frame for which `wanted` is true. Answers ARP requests meanwhile."""
        while True:
            frame = self.receive()
            if frame[12:14] == struct.pack("!H", ARP) and frame[20:22] == b"\0\1" and frame[38:42] == IP:
                self.send(arp(REPLY, frame[22:28], frame[28:32]))
            if wanted(frame):
                return frame

    def resolve(self):
        """h0's MAC address, by ARP."""
        self.send(arp(REQUEST, bytes(6), HOST_IP))
        reply = self.receive_until(lambda frame: frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2")
        return reply[22:28]

    def ping(self, number=1):
        """The frame of h0's echo reply."""
        self.send(echo_request(number))
        return self.receive_until(lambda frame: frame[12:14] == b"\x08\x00" and frame[23] == ICMP and frame[34] == 0
                                  and frame[40:42] == struct.pack("!H", number))

    def receive_segment(self, port, wanted):
        """The first segment to the peer's `port` that has a flag of `wanted`; with wanted 0, the first with payload."""
        while True:
            segment = Segment.of(self.receive_until(lambda frame: Segment.of(frame) is not None))
            if segment.destination == port and (segment.flags & wanted if wanted else segment.payload):
                return segment

    def connect(self, own_port, port, payload=b""):
        """The handshake of a connection; `payload` follows the last segment at once. Returns the answer to the SYN,
        which may be an RST."""
        self.send(Segment(own_port, port, 1000, 0, SYN).frame())
        answer = self.receive_segment(own_port, SYN | RST)
        if answer.flags & SYN:
            last = Segment(own_port, port, 1001, answer.sequence + 1, ACK)
            more = Segment(own_port, port, 1001, answer.sequence + 1, ACK | PSH, payload)
            self.send_bytes(framed(last.frame()) + (framed(more.frame()) if payload else b""))
        return answer

    def is_closed(self):
        try:
            while self.socket.recv(65536):
                continue
        except ConnectionResetError:
            return True
        return True
