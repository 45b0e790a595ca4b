#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the properties of netlink sockets that calls of the socket API return. Runs on a simulated host."""
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys

RTM_NEWLINK, RTM_GETLINK, RTM_GETNEIGH = 16, 18, 30
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
SOL_NETLINK, NETLINK_PKTINFO, NETLINK_CAP_ACK = 270, 3, 10
NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT, NETLINK_GENERIC = 4, 15, 16


def request(kind, flags, sequence=1, body=bytes(16)):
    return struct.pack("IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, sequence, 0) + body


def opened(protocol=socket.NETLINK_ROUTE, kind=socket.SOCK_RAW):
    return socket.socket(socket.AF_NETLINK, kind, protocol)


def kinds(data):
    """Types and sequence numbers of a datagram's messages."""
    found = []
    while data:
        length, kind, _, sequence, _ = struct.unpack_from("IHHII", data)
        found.append((kind, sequence))
        data = data[(length + 3) & ~3:]
    return found


def error_of(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "no error"


def names():
    first, second, third = opened(), opened(), opened()
    print("unbound", first.getsockname())
    first.bind((0, 0))
    second.bind((0, 0xffffffff))
    print("bound", first.getsockname()[0] == os.getpid(), second.getsockname()[0])
    print("taken", error_of(lambda: third.bind((os.getpid(), 0))))
    third.bind((77, 0))
    print("chosen", third.getsockname(), error_of(lambda: third.bind((78, 0))))
    third.close()
    again = opened()
    again.bind((77, 0))
    print("free again", again.getsockname())
    print("kind", again.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN), again.getsockopt(socket.SOL_SOCKET,
                                                                                         socket.SO_PROTOCOL))


def reading():
    link = opened()
    poll = select.poll()
    poll.register(link, select.POLLIN)
    print("nothing yet", poll.poll(0), error_of(lambda: link.recv(100, socket.MSG_DONTWAIT)))
    link.sendto(request(RTM_GETLINK, NLM_F_DUMP), (0, 0))
    print("readable", len(poll.poll(0)))
    whole = link.recv_into(bytearray(1), 0, socket.MSG_PEEK | socket.MSG_TRUNC)
    data, _, flags, sender = link.recvmsg(65536, 100)
    print("peeked", whole == len(data), "flags", flags, "from", sender, "messages", kinds(data))
    link.send(request(RTM_GETLINK, NLM_F_DUMP))
    print("cut", link.recvmsg(20)[2] == socket.MSG_TRUNC, "rest lost", poll.poll(0))
    link.setsockopt(SOL_NETLINK, NETLINK_PKTINFO, 1)
    os.write(link.fileno(), request(RTM_GETLINK, NLM_F_DUMP))
    print("group", link.recvmsg(65536, 100)[1])
    print("switches", link.getsockopt(SOL_NETLINK, NETLINK_PKTINFO), link.getsockopt(SOL_NETLINK, NETLINK_CAP_ACK))


def processes():
    """A duplicate, a child and an exec'ed image read the answers to the first socket's requests."""
    link = opened()
    link.bind((0, 0))
    copy = link.dup()
    copy.send(request(RTM_GETLINK, NLM_F_DUMP, 5))
    if os.fork() == 0:
        print("child", kinds(link.recv(65536)), link.getsockname()[0] == os.getppid(), flush=True)
        os._exit(0)
    os.wait()
    link.send(request(RTM_GETLINK, NLM_F_DUMP, 6))
    again = [sys.executable, sys.argv[0], "inherited", str(link.fileno())]
    subprocess.run(again, pass_fds=[link.fileno()], check=True)


def inherited():
    link = socket.socket(fileno=int(sys.argv[2]))
    print("image", kinds(link.recv(65536)), link.getsockname()[0] == os.getppid())


def refusals():
    for protocol in (NETLINK_SOCK_DIAG, NETLINK_GENERIC, NETLINK_KOBJECT_UEVENT, 99):
        print(protocol, error_of(lambda: opened(protocol)))
    link = opened()
    print("stream", error_of(lambda: opened(kind=socket.SOCK_STREAM)))
    print("nothing", error_of(lambda: link.send(b"")), "too much", error_of(lambda: link.send(bytes(40000))))
    print("to a program", error_of(lambda: link.sendto(request(RTM_GETLINK, 0), (5, 0))))
    link.send(b"no message at all")
    print("no message", error_of(lambda: link.recv(100, socket.MSG_DONTWAIT)))
    link.send(request(RTM_NEWLINK, 0))
    data = link.recv(65536)
    print("a change", kinds(data), errno.errorcode[-struct.unpack_from("i", data, 16)[0]])
    for _ in range(10000):
        if (full := error_of(lambda: link.send(request(RTM_GETLINK, NLM_F_DUMP)))) != "no error":
            break
    print("never read", full)
    # Names a device that no machine has, in case the request reaches the machine.
    device = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for change in (0x8914, 0x8922, 0x89f0):  # SIOCSIFFLAGS, SIOCSIFMTU, SIOCDEVPRIVATE
        print(hex(change), error_of(lambda: fcntl.ioctl(device, change, b"nosuch0".ljust(40, b"\0"))))


def numbers():
    """Same calls by syscall()."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    socket_call, sendto, recvfrom = 41, 44, 45
    fd = call(socket_call, socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    asked = request(RTM_GETLINK, NLM_F_DUMP, 9)
    sent = call(sendto, fd, asked, len(asked), 0, None, 0)
    buffer = ctypes.create_string_buffer(65536)
    got = call(recvfrom, fd, buffer, len(buffer), 0, None, None)
    print("by number", sent == len(asked), kinds(buffer.raw[:got]))


def neighbours():
    link = opened()
    link.send(request(RTM_GETNEIGH, NLM_F_DUMP, body=bytes(12)))
    datagrams, found = 0, []
    while (NLMSG_DONE, 1) not in found:
        found += kinds(link.recv(4096))
        datagrams += 1
    print("neighbours", len(found) - 1, "in several", datagrams > 1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
