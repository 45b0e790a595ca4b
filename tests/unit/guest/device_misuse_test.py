#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim device`: virtual machines that break the rules. The device stays up and serves the other machines.

usage: device_misuse_test.py RNICSIM [TESTS]
"""

import os
import select
import signal
import socket
import struct
import sys
import time

from machines import MEMORY_AT, MEMORY_BYTES, PATIENCE, QemuMachine, VfioMachine, abi, connect, receive, send
from served_device import ACCESS, LENGTH, ServedDevice, main


class Misuse(ServedDevice):
    def fails_to_answer(self, machine, driver):
        """A command in a queue that the device cannot access: no completion, and the machine goes on."""
        machine.write32(abi.reg.kCommandDoorbell, 1)
        self.assertEqual(machine.read32(abi.reg.kMagic), abi.kMagicValue)

    def test_memory_that_is_not_mapped(self):
        self.start(qemu=["h0"], vfio=["h1"])
        qemu, vfio = self.machine("h0", QemuMachine), self.machine("h1")
        for machine, take_away in ((qemu, lambda: qemu.share([])),
                                   (vfio, lambda: vfio.unshare(MEMORY_AT, MEMORY_BYTES))):
            driver = self.driver(machine, 1)
            take_away()
            self.fails_to_answer(machine, driver)
        for host in ("h0", "h1"):
            self.wait_for(f"rnicsim: {host}: DMA read of 64 bytes at 0x10000000: "
                          "no memory of the guest is mapped at this address")
        # Received Master Abort in the Status register.
        self.assertEqual(vfio.config_read(6, 2) & 0x2000, 0x2000)
        vfio.share(MEMORY_AT, MEMORY_BYTES)
        self.driver(vfio, 2)
        self.end()

    def test_memory_that_may_not_be_written(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        driver = self.driver(machine, 1)
        machine.unshare(MEMORY_AT, MEMORY_BYTES)
        machine.share(MEMORY_AT, MEMORY_BYTES, flags=1)
        driver.commands._entries.entry(0).owner = 1
        self.fails_to_answer(machine, driver)
        self.wait_for("the guest did not map the memory for this access")
        self.end()

    def test_a_file_that_shrinks(self):
        self.start(qemu=["h0"], vfio=["h1"])
        for host, kind in (("h0", QemuMachine), ("h1", VfioMachine)):
            machine = self.machine(host, kind)
            driver = self.driver(machine, 1)
            os.ftruncate(machine.file, 0)
            self.fails_to_answer(machine, driver)
            self.wait_for(f"{host}: DMA read of 64 bytes at 0x10000000: "
                          "the guest removed the memory: its file became smaller")
        self.end()

    def test_a_pasid_of_a_machine_that_has_none(self):
        self.start(vfio=["h0", "h1"])
        a, source, b, target = self.connected(self.machine("h0"), self.machine("h1"))
        foreign = abi.Mpt(key=0x455, pd=1, pasid=5, access_flags=ACCESS, start=source.address, length=4096,
                          bus_address=source.address)
        a.driver.commands.execute(abi.CommandOpcode.create_mpt, 4, abi.CreateMpt(context=foreign))
        segment = abi.DataSegment(byte_count=64, lkey=foreign.key, address=source.address)
        a.send.post(abi.SendOpcode.write, target.remote(), segment)
        a.send.ring(a.driver.device)
        self.wait_for(f"DMA read of 64 bytes at {source.address:#x} in PASID 5: a guest has PASID 0 only")
        self.assertIsNotNone(b)
        self.end()

    def test_traffic_over_memory_that_goes(self):
        """Memory unmapped between doorbell and completion: an error, and no crash."""
        self.start(vfio=["h0", "h1"])
        one, other = self.machine("h0"), self.machine("h1")
        a, source, b, target = self.connected(one, other)
        for _ in range(8):
            a.send.post(abi.SendOpcode.write, target.remote(), source.segment(LENGTH))
        a.send.ring(one)
        other.unshare(MEMORY_AT, MEMORY_BYTES)
        one.unshare(MEMORY_AT, MEMORY_BYTES)
        self.alive(one)
        self.alive(other)
        one.share(MEMORY_AT, MEMORY_BYTES)
        other.share(MEMORY_AT, MEMORY_BYTES)
        for machine in (one, other):
            machine.function_reset()
            while any(machine.wait_interrupt(vector) for vector in range(8)):
                pass
        self.exchange(one, other)
        self.end()

    def test_garbage_by_vfio_user(self):
        self.start(vfio=["h0", "h1"])
        other = self.machine("h1")

        def version(text=b"", major=0):
            return struct.pack("<HHIII", 1, 1, 20 + len(text), 0, 0) + struct.pack("<HH", major, 0) + text

        header = struct.Struct("<HHIII")
        for said, why in (
                (b"GET / HTTP/1.0\r\n\r\n", "which vfio-user does not have"),
                (header.pack(1, 1, 15, 0, 0), "a message of 15 bytes"),
                (header.pack(1, 1, 2**32 - 1, 0, 0), "a message of 4294967295 bytes"),
                (header.pack(1, 4, 32, 0, 0) + struct.pack("<IIII", 16, 0, 0, 0), "is command 4, not VERSION"),
                (header.pack(1, 1, 18, 0, 0) + b"\0\0", "the client's VERSION has no version"),
                (version(major=1), "the client has version 1.0 of vfio-user"),
                (version(b"{nonsense\0"), "the client's VERSION is not valid JSON"),
                (version(b'{"capabilities":{"max_data_xfer_size":"x"}}\0'), "the client's VERSION is not valid JSON"),
                (version(b'{"capabilities":{"max_data_xfer_size":0}}\0'), "its max_data_xfer_size is 0"),
                (version(b"[" * 100 + b"\0"), "the client's VERSION is not valid JSON"),
                (version() + header.pack(1, 9, 16, 1, 0), "the client sent an unexpected reply"),
                (version() + header.pack(1, 9, 16, 2, 0), "the client sent a message of type 2"),
                (version()[:9], "the client closed the connection in the middle of a message")):
            client = connect(self.path("h0"))
            send(client, said)
            if "middle" in why:
                client.shutdown(socket.SHUT_WR)
            self.gone(client)
            client.close()
            self.wait_for(f"rnicsim: h0: {why}" if why.startswith("the client") else why)
            self.alive(other)
        # More descriptors than permitted.
        client = connect(self.path("h0"))
        send(client, version(), 12 * [client.fileno()])
        self.gone(client)
        client.close()
        self.wait_for("more than 8 descriptors")
        # Version data is optional.
        machine = self.machine("h0", start=False)
        self.assertEqual(machine.agree(data=b""), ((0, 0), {"capabilities": {}}))
        self.end()

    def test_garbage_by_qemu(self):
        self.start(qemu=["h0"], vfio=["h1"])
        other = self.machine("h1")
        header = struct.Struct("<iIQ")
        for said, why in ((header.pack(2, 0, 2**63), "which x-pci-proxy does not have"),
                          (header.pack(99, 0, 0), "command 99, which x-pci-proxy does not have"),
                          (header.pack(-1, 0, 0), "command -1, which x-pci-proxy does not have"),
                          (header.pack(1, 0, 8) + bytes(8), "command 1, which x-pci-proxy does not have"),
                          (header.pack(3, 0, 4) + bytes(4), "QEMU's command 3 has 4 bytes instead of 12"),
                          (header.pack(0, 0, 4) + bytes(4), "QEMU's command 0 has 4 bytes instead of 192")):
            client = connect(self.path("h0"))
            send(client, said)
            self.gone(client)
            client.close()
            self.wait_for(why)
            self.alive(other)
        machine = self.machine("h0", QemuMachine)
        everything = 2**64 - 1
        for command, body in ((machine.CONFIG_READ, struct.pack("<IIi", 0, 0, 3)),
                              (machine.CONFIG_READ, struct.pack("<IIi", 4094, 0, 4)),
                              (machine.CONFIG_READ, struct.pack("<IIi", 0, 0, -1)),
                              (machine.CONFIG_WRITE, struct.pack("<IIi", 2**32 - 1, 0, 4)),
                              (machine.BAR_READ, struct.pack("<QQIB3x", 0, 0, 5, 1))):
            self.assertEqual(machine.ask(command, body), everything, (command, body))
        # Invalid ranges are refused; the valid range of the same message is mapped.
        machine.share([(MEMORY_AT, MEMORY_BYTES, 0), (MEMORY_AT, 4096, 0), (0, 2 * MEMORY_BYTES, 0)])
        self.wait_for("4096 bytes of QEMU's memory at 0x10000000 cannot be shared")
        self.wait_for("the file of the descriptor has 16777216 bytes, but the range ends at 33554432")
        self.driver(machine, 1)
        self.end()

    def test_machines_that_die(self):
        self.start(vfio=["h0", "h1"])
        other = self.machine("h1")
        # The connection closes in the middle of a message, while a DMA may wait for the machine.
        for shares in (True, False):
            machine = self.machine("h0", shares=shares)
            driver = self.driver(machine, 1)
            send(machine.client, struct.pack("<HHIII", 1, machine.REGION_WRITE, 36, machine.NO_REPLY, 0) +
                 struct.pack("<QII", abi.reg.kCommandDoorbell, machine.BAR0, 4) + b"\0\0\0\1" + b"\1\0")
            machine.client.close()
            self.wait_for("rnicsim: h0: the client closed the connection")
            self.path("errors").write_text("")
            self.alive(other)
            self.assertIsNotNone(driver)
        self.driver(self.machine("h0"), 1)
        self.end()

    def test_a_machine_that_does_not_answer(self):
        """The device asks the machine for memory; the other machine waits at most 5 s."""
        self.start(vfio=["h0", "h1"])
        other = self.machine("h1")
        machine = self.machine("h0", shares=False)
        driver = self.driver(machine, 1)
        machine.write32(abi.reg.kCommandDoorbell, 1)
        self.assertIsNotNone(driver)
        self.wait_for("the client did not answer a DMA request within 5000 ms")
        self.alive(other)
        self.gone(machine.client)
        self.end()

    def test_a_machine_that_takes_no_answers(self):
        self.start(vfio=["h0", "h1"])
        other, machine = self.machine("h1"), self.machine("h0")
        machine.client.setblocking(False)
        question = struct.pack("<HHIIIQII", 1, machine.REGION_READ, 32, 0, 0, 0, machine.CONFIG, 4096)
        for _ in range(1_000_000):
            if not select.select([], [machine.client], [], 2)[1]:
                break
            try:
                machine.client.send(question)
            except BlockingIOError:
                pass
        else:
            self.fail("it is asked for ever")
        self.alive(other)
        self.end()


class MachineThatIsKilled(VfioMachine):
    """The machine's process is killed when the device asks for memory: in a DMA."""

    def take(self):
        header = struct.unpack("<HHIII", receive(self.client, 16))
        body = receive(self.client, header[2] - 16)
        if header[3] & 0xf != self.REPLY:
            os.kill(os.getpid(), signal.SIGKILL)
        return header, body


class Neighbours(ServedDevice):
    """Three machines behind a switch: one breaks the rules under traffic to and from it, and the others go on."""
    LONG = 1 << 20  # bytes; 8 such messages take longer than the device's next look at its clients

    def setUp(self):
        super().setUp()
        self.start("--topology", "star:3", vfio=["h0", "h1", "h2"])
        self.one = self.machine("h0")
        self.good = self.connected(self.one, self.machine("h1"))

    def link(self, machine):
        """A queue pair of h0 with a machine at h2, under traffic in both directions."""
        ends = []
        for driver, number in ((self.good[0].driver, 0xc), (self.driver(machine, 3), 0xb)):
            ends.append((driver.create_qp(number, driver.create_cq(2)), driver.register(4, self.LONG, ACCESS)))
        (link, source), (back, target) = ends
        link.connect(back)
        back.connect(link)
        for qp, remote, local in ((link, target, source), (back, source, target)):
            for _ in range(8):
                qp.send.post(abi.SendOpcode.write, remote.remote(), local.segment(self.LONG))
            qp.send.ring(qp.driver.device)
        return link

    def statuses(self, link):
        """Syndromes of the link's WRITEs, which complete all."""
        found, deadline = [], time.monotonic() + PATIENCE
        while len(found) < 8:
            self.assertLess(time.monotonic(), deadline, found)
            self.alive(self.one)
            cqe = link.cq.poll()
            if cqe is not None:
                found.append(abi.CqeSyndrome(cqe.syndrome))
        return found

    def check_others(self, link, *errors):
        """Messages between h0 and h1; the WRITEs to the broken machine end with one error, and the rest is flushed."""
        for _ in range(8):
            self.write(*self.good)
        found = self.statuses(link)
        arrived = found.count(abi.CqeSyndrome.success)
        self.assertLess(arrived, 8)
        self.assertEqual(found[:arrived], [abi.CqeSyndrome.success] * arrived)
        self.assertIn(found[arrived], errors)
        self.assertEqual(found[arrived + 1:], [abi.CqeSyndrome.flushed_error] * (7 - arrived))

    def test_beside_memory_that_is_unmapped(self):
        machine = self.machine("h2")
        link = self.link(machine)
        machine.unshare(MEMORY_AT, MEMORY_BYTES)
        self.check_others(link, abi.CqeSyndrome.remote_operation_error, abi.CqeSyndrome.transport_retry_exceeded)
        self.end()

    def test_beside_a_file_that_shrinks(self):
        machine = self.machine("h2")
        link = self.link(machine)
        os.ftruncate(machine.file, 4096)
        self.check_others(link, abi.CqeSyndrome.remote_operation_error, abi.CqeSyndrome.transport_retry_exceeded)
        self.end()

    def test_beside_a_reset(self):
        machine = self.machine("h2")
        link = self.link(machine)
        machine.function_reset()
        self.check_others(link, abi.CqeSyndrome.transport_retry_exceeded)
        self.driver(machine, 3)
        self.end()

    @staticmethod
    def kill_later(machine, work):
        """Executes `work` in another process, which alone has the machine's connection. Returns its PID."""
        child = os.fork()
        if child == 0:
            try:
                work()
            finally:
                os._exit(0)
        machine.client.close()
        return child

    def test_beside_a_process_that_is_killed(self):
        machine = self.machine("h2")
        link = self.link(machine)

        def ring():
            while True:
                machine.write32(abi.reg.kCommandDoorbell, 1)

        child = self.kill_later(machine, ring)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGKILL)
        self.check_others(link, abi.CqeSyndrome.transport_retry_exceeded)
        self.wait_for("rnicsim: h2: the client closed the connection")
        self.end()

    def test_beside_a_process_that_is_killed_in_a_dma(self):
        machine = self.machine("h2", MachineThatIsKilled, shares=False)
        child = self.kill_later(machine, lambda: self.driver(machine, 3))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGKILL)
        for _ in range(8):
            self.write(*self.good)
        self.wait_for("rnicsim: h2: the client closed the connection")
        self.end()


if __name__ == "__main__":
    main(sys.argv)
