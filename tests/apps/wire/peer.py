"""A machine at the far end of a live wire: QEMU's stream framing, Ethernet, ARP and ICMP echo, by hand."""
import socket
import struct
import time

PATIENCE = 60  # s that a busy machine may take for an answer
MAC, IP = bytes.fromhex("525400aabbcc"), bytes([10, 0, 1, 1])      # the peer's; the address is h1's in the topology
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


def framed(frame):
    return struct.pack("!I", len(frame)) + frame


class Peer:
    """Connected to the socket at which rnicsim listens."""

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
        """The first frame that `wanted` likes. Answers ARP meanwhile."""
        while True:
            frame = self.receive()
            if frame[12:14] == struct.pack("!H", ARP) and frame[20:22] == b"\0\1" and frame[38:42] == IP:
                self.send(arp(REPLY, frame[22:28], frame[28:32]))
            if wanted(frame):
                return frame

    def resolve(self):
        """h0's MAC address."""
        self.send(arp(REQUEST, bytes(6), HOST_IP))
        reply = self.receive_until(lambda frame: frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2")
        return reply[22:28]

    def ping(self, number=1):
        """The echo's reply from h0, as a frame."""
        self.send(echo_request(number))
        return self.receive_until(lambda frame: frame[12:14] == b"\x08\x00" and frame[23] == ICMP and frame[34] == 0
                                  and frame[40:42] == struct.pack("!H", number))

    def is_closed(self):
        try:
            while self.socket.recv(65536):
                continue
        except ConnectionResetError:
            return True
        return True
