# SPDX-License-Identifier: Apache-2.0
"""Imitated virtual machines: the client's end of each protocol of `rnicsim device`. A machine has the members that
tests/library/python/driver.py needs: configuration space, BAR0, memory and interrupts."""

import array
import errno
import json
import mmap
import os
import pathlib
import select
import socket
import struct
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Loads only the driver and the layouts: the package's C++ module is not needed, and need not be built.
package = types.ModuleType("rnicsim")
package.__path__ = [str(ROOT / "sim" / "python" / "rnicsim")]
sys.modules.setdefault("rnicsim", package)
sys.path.insert(0, str(ROOT / "tests" / "library" / "python"))

from rnicsim import abi  # noqa: E402

PATIENCE = 60  # s; longest time of an answer on a busy machine
MEMORY_AT, MEMORY_BYTES = 0x1000_0000, 16 << 20  # first address of driver.py's DmaMemory
PAGE = 4096


class Refused(Exception):
    """A reply with an errno."""

    def __init__(self, number):
        super().__init__(errno.errorcode.get(number, number))
        self.errno = number


class Gone(Exception):
    """The device closed the connection."""


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(str(path))
    return client


def receive(client, count):
    data = b""
    while len(data) < count:
        try:
            more = client.recv(count - len(data))
        except ConnectionResetError:
            more = b""
        if not more:
            raise Gone
        data += more
    return data


def send(client, data, descriptors=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    try:
        sent = client.sendmsg([data], rights)
        if sent < len(data):
            client.sendall(data[sent:])
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Gone from error


class Piece:
    """Memory for DmaMemory: `data` is a view of it."""

    def __init__(self, view, offset):
        self.data, self.offset = view, offset

    def __len__(self):
        return len(self.data)


class Machine:
    """Shared by all protocols: memory, and register accesses by width."""

    def __init__(self):
        self.file = os.memfd_create("guest")
        os.ftruncate(self.file, MEMORY_BYTES)
        self.memory = mmap.mmap(self.file, MEMORY_BYTES)
        self._allocated = 0
        self.peers = []  # other machines of this process, served while this machine waits

    def close(self):
        os.close(self.file)

    def forget(self):
        """Frees all memory, for a driver that starts again."""
        self._allocated = 0
        self.memory[:1 << 20] = bytes(1 << 20)

    # --- The interface that driver.py uses.
    def allocate(self, size):
        size = (size + PAGE - 1) // PAGE * PAGE
        at = self._allocated
        self._allocated += size
        assert self._allocated <= MEMORY_BYTES
        return Piece(memoryview(self.memory)[at:at + size], at)

    def map(self, memory, iova, pasid=0):
        assert iova == MEMORY_AT + memory.offset and pasid == 0

    def unmap(self, iova, pasid=0):
        pass

    def read32(self, offset):
        return int.from_bytes(self.read(offset, 4), "big")

    def write32(self, offset, value):
        self.write(offset, value.to_bytes(4, "big"))

    def write64(self, offset, value):
        self.write(offset, value.to_bytes(8, "big"))

    def function_reset(self):
        self.config_write(abi.config.kDeviceControl, abi.config.kFunctionLevelReset, 2)

    # --- Capabilities, walked as a kernel does: {id: offset}.
    def capabilities(self):
        found, at = {}, self.config_read(abi.config.kCapabilityPointer, 1)
        while at and len(found) < 48:
            found[self.config_read(at, 1)] = at
            at = self.config_read(at + 1, 1)
        return found


class QemuMachine(Machine):
    """x-pci-proxy-dev of QEMU 7.2, and its -qtest socket."""

    SYNC_MEMORY, ANSWER, CONFIG_WRITE, CONFIG_READ, BAR_WRITE, BAR_READ, SET_IRQFD, RESET = range(8)

    def __init__(self, path, qtest_path):
        super().__init__()
        self.qtest_listener = socket.socket(socket.AF_UNIX)
        self.qtest_listener.bind(str(qtest_path))
        self.qtest_listener.listen()
        self.qtest, self.qtest_text = None, b""
        self.interrupts = []
        self._base = None  # address of BAR0, read at the first use
        self.client = connect(path)
        self.ask(self.RESET)
        self.share([(MEMORY_AT, MEMORY_BYTES, 0)])

    def close(self):
        self.client.close()
        self.qtest_listener.close()
        if self.qtest:
            self.qtest.close()
        super().close()

    def share(self, ranges, files=None):
        """`ranges`: [(address, bytes, offset)], all memory of the machine."""
        columns = [list(column) + [0] * (8 - len(ranges)) for column in zip(*ranges)] if ranges else [[0] * 8] * 3
        self.tell(self.SYNC_MEMORY, struct.pack("<8Q8Q8q", *columns[0], *columns[1], *columns[2]),
                  files or [self.file] * len(ranges))

    def tell(self, command, body=b"", descriptors=()):
        if command == self.RESET:
            self._base = None
        send(self.client, struct.pack("<iIQ", command, 0, len(body)) + body, descriptors)

    def ask(self, command, body=b""):
        self.tell(command, body)
        answer, _, size = struct.unpack("<iIQ", receive(self.client, 16))
        assert (answer, size) == (self.ANSWER, 8)
        return struct.unpack("<Q", receive(self.client, 8))[0]

    def config_read(self, offset, size=4):
        return self.ask(self.CONFIG_READ, struct.pack("<IIi", offset, 0, size)) & ((1 << 8 * size) - 1)

    def config_write(self, offset, value, size=4):
        self._base = None
        self.ask(self.CONFIG_WRITE, struct.pack("<IIi", offset, value, size))

    def _bar(self):
        if self._base is None:
            low, high = self.config_read(abi.config.kBar0), self.config_read(abi.config.kBar0 + 4)
            self._base = high << 32 | low & ~0xf
        return self._base

    def read(self, offset, size):
        value = self.ask(self.BAR_READ, struct.pack("<QQIB3x", self._bar() + offset, 0, size, 1))
        return value.to_bytes(8, "little")[:size]

    def write(self, offset, data):
        data = bytes(data)
        for at in range(0, len(data), 8):  # at most 8 bytes at a time, like a processor's stores
            part = data[at:at + 8]
            value = int.from_bytes(part, "little")
            self.ask(self.BAR_WRITE, struct.pack("<QQIB3x", self._bar() + offset + at, value, len(part), 1))

    def wait_interrupt(self, vector, ms=0):
        """True if the interrupt arrived; waits long, because a busy machine may be slow."""
        message = (abi.kMsiWindow + 16 * vector, vector)
        deadline = time.monotonic() + (PATIENCE if ms else 0)
        while message not in self.interrupts:
            watched = [self.qtest or self.qtest_listener]
            if not select.select(watched, [], [], max(deadline - time.monotonic(), 0))[0]:
                return False
            if self.qtest is None:
                self.qtest = self.qtest_listener.accept()[0]
                continue
            self.qtest_text += self.qtest.recv(4096)
            *lines, self.qtest_text = self.qtest_text.split(b"\n")
            for line in lines:
                name, address, data = line.split()
                assert name == b"writel"
                self.interrupts.append((int(address, 0), int(data, 0)))
                self.qtest.sendall(b"OK\n")
        self.interrupts.remove(message)
        return True


class VfioMachine(Machine):
    """A client of vfio-user. `shares`: memory has a descriptor; otherwise the device requests memory contents by
    messages."""

    (VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, GET_REGION_IO_FDS, GET_IRQ_INFO, SET_IRQS, REGION_READ,
     REGION_WRITE, DMA_READ, DMA_WRITE, RESET) = range(1, 14)
    WRITE_MULTI, FEATURE = 15, 16
    REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
    BAR0, CONFIG, MSIX = 0, 7, 2
    NONE, BOOL, EVENTFD, MASK, UNMASK, TRIGGER = 1, 2, 4, 8, 16, 32
    CAPABILITIES = {"max_msg_fds": 8, "max_data_xfer_size": 1 << 20, "pgsizes": 4096, "write_multiple": True}

    def __init__(self, path, shares=True, vectors=8, start=True):
        super().__init__()
        self.shares, self.next_id = shares, 1
        self.client = connect(path)
        self.eventfds = []
        self.asked = []  # (command, address, count) of the device's memory requests
        if not start:
            return
        self.agree()
        self.share(MEMORY_AT, MEMORY_BYTES)
        self.eventfds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(vectors)]
        self.set_irqs(self.EVENTFD | self.TRIGGER, 0, vectors, self.eventfds)

    def close(self):
        self.client.close()
        for eventfd in self.eventfds:
            os.close(eventfd)
        super().close()

    def agree(self, major=0, minor=0, data=None):
        text = json.dumps({"capabilities": self.CAPABILITIES}).encode() + b"\0" if data is None else data
        answer = self.ask(self.VERSION, struct.pack("<HH", major, minor) + text)
        return struct.unpack("<HH", answer[:4]), json.loads(answer[4:].rstrip(b"\0"))

    def share(self, address, size, offset=0, flags=3, descriptors=None):
        if descriptors is None:
            descriptors = [self.file] if self.shares else []
        return self.ask(self.DMA_MAP, struct.pack("<IIQQQ", 32, flags, offset, address, size), descriptors)

    def unshare(self, address, size, flags=0):
        return self.ask(self.DMA_UNMAP, struct.pack("<IIQQ", 24, flags, address, size))

    def set_irqs(self, flags, start, count, descriptors=(), data=b"", index=MSIX):
        return self.ask(self.SET_IRQS, struct.pack("<IIIII", 20 + len(data), flags, index, start, count) + data,
                        descriptors)

    def tell(self, command, body=b"", descriptors=(), flags=0, size=None):
        self.next_id = (self.next_id + 1) % (1 << 16)
        header = struct.pack("<HHIII", self.next_id, command, 16 + len(body) if size is None else size, flags, 0)
        send(self.client, header + body, descriptors)
        return self.next_id

    def ask(self, command, body=b"", descriptors=()):
        number = self.tell(command, body, descriptors)
        while True:
            header, answer = self.take()
            if header[3] & 0xf == self.REPLY:
                break
        assert header[:2] == (number, command), header
        if header[3] & self.ERROR:
            assert not answer
            raise Refused(header[4])
        return answer

    def take(self):
        """A message of the device: a reply, or a memory request, which is answered at once."""
        header = struct.unpack("<HHIII", receive(self.client, 16))
        body = receive(self.client, header[2] - 16)
        if header[3] & 0xf == self.REPLY:
            return header, body
        address, count = struct.unpack("<QQ", body[:16])
        self.asked.append((header[1], address, count))
        at = address - MEMORY_AT
        answer, flags, number = body[:16], self.REPLY, 0
        if not (0 <= at and at + count <= MEMORY_BYTES):
            answer, flags, number = b"", self.REPLY | self.ERROR, errno.EFAULT
        elif header[1] == self.DMA_READ:
            answer += self.memory[at:at + count]
        else:
            self.memory[at:at + count] = body[16:]
        send(self.client, struct.pack("<HHIII", header[0], header[1], 16 + len(answer), flags, number) + answer)
        return header, body

    def region_read(self, region, offset, count):
        answer = self.ask(self.REGION_READ, struct.pack("<QII", offset, region, count))
        assert answer[:16] == struct.pack("<QII", offset, region, count) and len(answer) == 16 + count
        return answer[16:]

    def region_write(self, region, offset, data):
        data = bytes(data)
        self.ask(self.REGION_WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def config_read(self, offset, size=4):
        return int.from_bytes(self.region_read(self.CONFIG, offset, size), "little")

    def config_write(self, offset, value, size=4):
        self.region_write(self.CONFIG, offset, value.to_bytes(size, "little"))

    def read(self, offset, size):
        return self.region_read(self.BAR0, offset, size)

    def write(self, offset, data):
        self.region_write(self.BAR0, offset, data)

    def wait_interrupt(self, vector, ms=0):
        deadline = time.monotonic() + (PATIENCE if ms else 0)
        while True:
            machines = {machine.client: machine for machine in [self, *self.peers]}
            ready = select.select([self.eventfds[vector], *machines], [], [], max(deadline - time.monotonic(), 0))[0]
            if not ready:
                return False
            for client, machine in machines.items():
                if client in ready:
                    machine.take()
            if self.eventfds[vector] in ready:
                os.eventfd_read(self.eventfds[vector])
                return True
