#!/usr/bin/env python3
"""`rnicsim device`: machines of pretence enumerate its NICs, drive them, and misbehave.

usage: device_command_test.py RNICSIM [TESTS]
"""

import errno
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from machines import MEMORY_AT, MEMORY_BYTES, PATIENCE, Gone, QemuMachine, Refused, VfioMachine, abi, connect, send

from driver import Driver  # beside tests/library/python/rings.py

RNICSIM = ""
ACCESS = abi.access.kLocalWrite | abi.access.kRemoteWrite | abi.access.kRemoteRead
LENGTH = 5000
DEVICE_STATUS = abi.config.kPcieCapability + 0x0a


class DeviceCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program, self.macs = None, {}
        self.addCleanup(self.kill)

    def kill(self):
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.wait()

    def path(self, name):
        return self.folder / name

    def start(self, *options, qemu=(), vfio=()):
        """Serves these hosts at sockets of their names."""
        words = [RNICSIM, "device", *options]
        for host in qemu:
            words += ["--qemu", f"{host}={self.path(host)}", "--qtest", f"{host}={self.path(host + '.qtest')}"]
        for host in vfio:
            words += ["--vfio-user", f"{host}={self.path(host)}"]
        self.errors = open(self.path("errors"), "w+")
        self.addCleanup(self.errors.close)
        self.program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.addCleanup(self.program.stdout.close)
        for host in [*qemu, *vfio]:
            line = self.program.stdout.readline()
            told = re.fullmatch(rf"rnicsim: {host} \(MAC ([0-9a-f:]+), [0-9.]+\): (x-pci-proxy|vfio-user) at .*\n",
                                line)
            self.assertTrue(told, line)
            self.macs[host] = bytes.fromhex(told[1].replace(":", ""))

    def machine(self, host, kind=VfioMachine, **options):
        made = (QemuMachine(self.path(host), self.path(host + ".qtest")) if kind is QemuMachine else
                kind(self.path(host), **options))
        self.addCleanup(made.close)
        made.mac = self.macs[host]
        return made

    def driver(self, machine, number):
        machine.forget()
        driver = Driver(machine, number)
        driver.mac = machine.mac
        return driver.bring_up()

    def end(self, how=signal.SIGTERM, status=0):
        """The summary."""
        if how:
            self.program.send_signal(how)
        text = self.program.stdout.read()
        self.assertEqual(self.program.wait(PATIENCE), status, self.said())
        return text

    def said(self):
        self.errors.flush()
        return self.path("errors").read_text()

    def wait_for(self, text):
        for deadline in [time.monotonic() + PATIENCE]:
            while text not in self.said():
                self.assertIsNone(self.program.poll(), self.said())
                self.assertLess(time.monotonic(), deadline, self.said())
                time.sleep(0.01)

    def connected(self, one, other):
        """A queue pair and a region at each of two machines."""
        ends = []
        for number, machine in enumerate((one, other)):
            driver = self.driver(machine, number + 1)
            ends.append((driver.create_qp(0xb, driver.create_cq(1)), driver.register(3, 8192, ACCESS)))
        (a, source), (b, target) = ends
        a.connect(b)
        b.connect(a)
        return a, source, b, target

    def write(self, a, source, b, target):
        """By an interrupt, an event and a completion."""
        message = bytes(i * 7 & 0xff for i in range(LENGTH))
        source.data[:LENGTH] = message
        a.cq.arm(a.driver.device)
        a.send.post(abi.SendOpcode.write, target.remote(100), source.segment(LENGTH))
        a.send.ring(a.driver.device)
        self.assertTrue(a.driver.device.wait_interrupt(Driver.EQ_VECTOR, ms=1))
        event = a.driver.events.poll()
        self.assertEqual((event.type, event.number), (abi.EventType.completion, a.cq.cqn))
        a.driver.events.arm(a.driver.device)
        cqe = a.cq.poll()
        self.assertEqual(cqe.syndrome, abi.CqeSyndrome.success)
        self.assertEqual(bytes(target.data[100:100 + LENGTH]), message)

    def alive(self, machine):
        self.assertEqual(machine.config_read(0), abi.kPciDeviceId << 16 | abi.kPciVendorId)

    # --- What a kernel's PCI code does.

    def enumerate(self, machine, extended):
        self.alive(machine)
        self.assertEqual(machine.capabilities(), {0x10: abi.config.kPcieCapability, 0x11: abi.config.kMsixCapability,
                                                  0x01: abi.config.kPowerCapability})
        for half in (0, 4):
            machine.config_write(abi.config.kBar0 + half, 0xffff_ffff)
        low, high = (machine.config_read(abi.config.kBar0 + half) for half in (0, 4))
        self.assertEqual((1 << 64) - (high << 32 | low & ~0xf), abi.kBarSize)
        self.assertEqual(low & 0xf, 0xc)  # 64 bits, prefetchable
        machine.config_write(abi.config.kBar0, 0xfe00_0000)
        machine.config_write(abi.config.kBar0 + 4, 0)
        machine.config_write(abi.config.kCommand, abi.config.kCommandMemory, 2)
        self.assertEqual(machine.read32(abi.reg.kMagic), abi.kMagicValue)
        self.assertEqual(machine.read32(abi.reg.kAbiVersion) >> 16, abi.kAbiMajor)
        self.assertEqual(machine.read(abi.reg.kMagic, 2), b"\xff\xff")  # no such width
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0x9)
        machine.config_write(DEVICE_STATUS, 0xf, 2)
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0)
        table = abi.kMsixTable
        self.assertEqual(machine.read(table + 12, 4), b"\1\0\0\0")  # masked; little-endian
        machine.write(table, struct.pack("<I", 0xfee0_1004))
        self.assertEqual(machine.read(table, 4), struct.pack("<I", 0xfee0_1004))
        if extended:
            self.assertEqual(machine.config_read(abi.config.kErrorReporting) & 0xffff, 1)
            self.assertEqual(machine.config_read(abi.config.kSerialNumber) & 0xffff, 3)

    def test_enumeration(self):
        self.start(qemu=["h0"], vfio=["h1"])
        self.enumerate(self.machine("h0", QemuMachine), extended=False)
        self.enumerate(self.machine("h1"), extended=True)
        self.end()

    def reset(self, machine):
        driver = self.driver(machine, 1)
        machine.function_reset()
        self.assertEqual(machine.read32(abi.reg.kMagic), 0xffff_ffff)  # memory space is off
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0x9)
        self.assertEqual(machine.config_read(abi.config.kDeviceControl, 2), 0x2810)
        driver.bring_up()

    def test_a_function_level_reset(self):
        self.start(qemu=["h0"], vfio=["h1"])
        self.reset(self.machine("h0", QemuMachine))
        self.reset(self.machine("h1"))
        self.end()

    # --- Two machines, one simulation.

    def exchange(self, *machines):
        a, source, b, target = self.connected(*machines)
        self.write(a, source, b, target)
        self.write(b, target, a, source)

    def test_qemu_and_vfio_user(self):
        self.start("--pcap", self.path("frames.pcapng"), "--audit", "--waterfall", qemu=["h0"], vfio=["h1"])
        self.exchange(self.machine("h0", QemuMachine), self.machine("h1"))
        summary = self.end()
        self.assertRegex(summary, r"nic\.tx\.packets +6 +6 ")
        self.assertIn("nic.pcie.interrupts", summary)
        self.assertGreater(self.path("frames.pcapng").stat().st_size, 2 * LENGTH)

    def test_two_of_qemu_behind_a_switch(self):
        self.start("--topology", "star:2", qemu=["h0", "h1"])
        self.exchange(self.machine("h0", QemuMachine), self.machine("h1", QemuMachine))
        self.end()

    def test_memory_by_messages(self):
        self.start("--record", self.path("run.trace"), vfio=["h0", "h1"])
        one, other = self.machine("h0", shares=False), self.machine("h1")
        other.peers = [one]
        self.exchange(one, other)
        self.assertIn(one.DMA_READ, [asked[0] for asked in one.asked])
        self.assertIn(one.DMA_WRITE, [asked[0] for asked in one.asked])
        self.end()

    def test_the_others_have_hosts(self):
        """Of a topology with a host that no machine took."""
        self.start("--topology", "star:3", vfio=["h0", "h2"])
        self.exchange(self.machine("h0"), self.machine("h2"))
        self.end()

    # --- Interrupts, by vfio-user.

    def test_interrupts_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        info = machine.ask(machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, machine.MSIX, 0))
        self.assertEqual(struct.unpack("<IIII", info), (16, 1, 2, abi.kMsixVectors))
        for index in (0, 1, 3, 4):
            info = machine.ask(machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0))
            self.assertEqual(struct.unpack("<IIII", info), (16, 0, index, 0))
        # By the machine itself: all, and those that are named.
        machine.set_irqs(machine.NONE | machine.TRIGGER, 0, 8)
        self.assertTrue(all(machine.wait_interrupt(vector) for vector in range(8)))
        machine.set_irqs(machine.BOOL | machine.TRIGGER, 2, 3, data=b"\1\0\1")
        self.assertEqual([vector for vector in range(8) if machine.wait_interrupt(vector)], [2, 4])
        # Eventfds outlive a reset, of each kind.
        driver = self.driver(machine, 1)
        machine.ask(machine.RESET)
        driver.bring_up()
        # One without an eventfd pends.
        machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 1)
        driver.commands._input_data[:16] = bytes(16)
        machine.write32(abi.reg.kCommandDoorbell, 1)
        self.assertFalse(machine.wait_interrupt(0))
        machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 1, machine.eventfds[:1])
        driver.bring_up()
        machine.set_irqs(machine.NONE | machine.TRIGGER, 0, 0)
        self.assertEqual(machine.config_read(abi.config.kMsixControl, 2) & abi.config.kMsixEnable, 0)
        for wrong in ((machine.EVENTFD | machine.TRIGGER, 63, 2), (machine.TRIGGER, 0, 1), (machine.EVENTFD, 0, 1),
                      (machine.NONE | machine.BOOL | machine.TRIGGER, 0, 1), (machine.BOOL | machine.TRIGGER, 0, 1)):
            with self.assertRaises(Refused) as refused:
                machine.set_irqs(*wrong)
            self.assertEqual(refused.exception.errno, errno.EINVAL, wrong)
        with self.assertRaises(Refused) as refused:
            machine.set_irqs(machine.NONE | machine.MASK, 0, 1)
        self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP)
        with self.assertRaises(Refused):
            machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 3, machine.eventfds[:2])
        self.alive(machine)
        self.end()

    # --- Regions and memory, by vfio-user.

    def test_regions_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        info = machine.ask(machine.GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))
        self.assertEqual(struct.unpack("<IIII", info), (16, 3, 9, 5))
        for index in range(9):
            info = machine.ask(machine.GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0))
            size = {0: abi.kBarSize, 7: 4096}.get(index, 0)
            self.assertEqual(struct.unpack("<IIIIQQ", info), (32, 3 if size else 0, index, 0, size, 0))
            info = machine.ask(machine.GET_REGION_IO_FDS, struct.pack("<IIII", 16, 0, index, 0))
            self.assertEqual(struct.unpack("<IIII", info), (16, 0, index, 0))
        self.assertEqual(len(machine.region_read(machine.CONFIG, 0, 4096)), 4096)
        # Without answers, and several at once.
        machine.tell(machine.REGION_WRITE, struct.pack("<QII", abi.config.kCommand, machine.CONFIG, 2) + b"\2\0",
                     flags=machine.NO_REPLY)
        self.assertEqual(machine.config_read(abi.config.kCommand, 2), 2)
        writes = struct.pack("<QIIQ", abi.config.kCommand, machine.CONFIG, 2, 6)
        answer = machine.ask(machine.WRITE_MULTI, struct.pack("<Q", 2) + 2 * writes)
        self.assertEqual((answer, machine.config_read(abi.config.kCommand, 2)), (struct.pack("<Q", 2), 6))
        for command, body in ((machine.REGION_READ, struct.pack("<QII", 4095, machine.CONFIG, 2)),
                              (machine.REGION_READ, struct.pack("<QII", 0, 9, 4)),
                              (machine.REGION_READ, struct.pack("<QII", 0, 1, 4)),
                              (machine.REGION_READ, struct.pack("<QII", 0, machine.BAR0, 2 << 20)),
                              (machine.REGION_READ, struct.pack("<QII", 2**64 - 1, machine.BAR0, 4)),
                              (machine.REGION_WRITE, struct.pack("<QII", 0, machine.CONFIG, 4) + b"123"),
                              (machine.WRITE_MULTI, struct.pack("<Q", 2**63) + writes),
                              (machine.GET_INFO, b"123"), (machine.GET_INFO, struct.pack("<IIII", 15, 0, 0, 0)),
                              (machine.GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 9, 0, 0, 0)),
                              (machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, 5, 0)),
                              (machine.DMA_READ, bytes(16)), (14, b""), (99, b""), (machine.VERSION, bytes(4))):
            with self.assertRaises(Refused) as refused:
                machine.ask(command, body)
            self.assertEqual(refused.exception.errno, errno.EINVAL, (command, body))
        with self.assertRaises(Refused) as refused:
            machine.ask(machine.FEATURE, struct.pack("<II", 8, 1 << 16 | 1))
        self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP)
        self.end()

    def test_maps_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        free = MEMORY_AT + MEMORY_BYTES
        for wrong, number in (((MEMORY_AT, 4096), errno.EEXIST), ((MEMORY_AT - 4096, 8192), errno.EEXIST),
                              ((free - 4096, 8192), errno.EEXIST), ((free, 0), errno.EINVAL),
                              ((2**64 - 4096, 8192), errno.EINVAL), ((free, MEMORY_BYTES, 4096), errno.EINVAL),
                              ((free, 4096, 1), errno.EINVAL), ((free, 4096, 0, 4), errno.EINVAL),
                              ((free, 4096, 2**63), errno.EINVAL)):
            with self.assertRaises(Refused) as refused:
                machine.share(*wrong)
            self.assertEqual(refused.exception.errno, number, wrong)
        with self.assertRaises(Refused):
            machine.share(free, 4096, descriptors=[machine.file, machine.file])
        reader = os.open(f"/proc/self/fd/{machine.file}", os.O_RDONLY)
        with self.assertRaises(Refused) as refused:
            machine.share(free, 4096, descriptors=[reader])
        self.assertEqual(refused.exception.errno, errno.EACCES)
        os.close(reader)
        for wrong in ((MEMORY_AT, 4096), (free, 4096), (MEMORY_AT + 4096, MEMORY_BYTES - 4096)):
            with self.assertRaises(Refused) as refused:
                machine.unshare(*wrong)
            self.assertEqual(refused.exception.errno, errno.ENOENT)
        self.assertEqual(machine.unshare(MEMORY_AT, MEMORY_BYTES), struct.pack("<IIQQ", 24, 0, MEMORY_AT, MEMORY_BYTES))
        machine.share(MEMORY_AT, MEMORY_BYTES // 2)
        machine.share(MEMORY_AT + MEMORY_BYTES // 2, MEMORY_BYTES // 2, MEMORY_BYTES // 2)
        self.driver(machine, 1)
        machine.unshare(0, 0, flags=2)  # all
        machine.share(MEMORY_AT, MEMORY_BYTES)
        self.end()

    # --- What a machine must not do.

    def fails_to_answer(self, machine, driver):
        """A command whose queue the device does not reach: nothing comes, and the machine goes on."""
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
                          "no memory of the guest is mapped there")
        # Master abort in Status.
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
        self.wait_for("the guest did not map it for that")
        self.end()

    def test_a_file_that_shrinks(self):
        self.start(qemu=["h0"], vfio=["h1"])
        for host, kind in (("h0", QemuMachine), ("h1", VfioMachine)):
            machine = self.machine(host, kind)
            driver = self.driver(machine, 1)
            os.ftruncate(machine.file, 0)
            self.fails_to_answer(machine, driver)
            self.wait_for(f"{host}: DMA read of 64 bytes at 0x10000000: "
                          "the guest took the memory away: its file shrank")
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
        """Unmapped between doorbell and completion: an error, and no crash."""
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

    def test_a_reset_under_traffic(self):
        self.start(qemu=["h0"], vfio=["h1"])
        one, other = self.machine("h0", QemuMachine), self.machine("h1")
        a, source, b, target = self.connected(one, other)
        for _ in range(8):
            a.send.post(abi.SendOpcode.write, target.remote(), source.segment(LENGTH))
        a.send.ring(one)
        one.function_reset()
        self.alive(one)
        self.alive(other)
        other.ask(other.RESET)
        one.ask(one.RESET)
        for machine in (one, other):
            while any(machine.wait_interrupt(vector) for vector in range(4)):
                pass
        self.exchange(one, other)
        self.end()

    def gone(self, client):
        """The device closes it."""
        client.settimeout(PATIENCE)
        try:
            while client.recv(4096):
                pass
        except ConnectionResetError:
            pass

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
                (header.pack(1, 4, 32, 0, 0) + struct.pack("<IIII", 16, 0, 0, 0), "is command 4, and not VERSION"),
                (header.pack(1, 1, 18, 0, 0) + b"\0\0", "its VERSION has no version"),
                (version(major=1), "it speaks version 1.0 of vfio-user"),
                (version(b"{nonsense\0"), "its VERSION is no JSON that makes sense"),
                (version(b'{"capabilities":{"max_data_xfer_size":"x"}}\0'), "its VERSION is no JSON that makes sense"),
                (version(b'{"capabilities":{"max_data_xfer_size":0}}\0'), "its max_data_xfer_size is 0"),
                (version(b"[" * 100 + b"\0"), "its VERSION is no JSON that makes sense"),
                (version() + header.pack(1, 9, 16, 1, 0), "it sent a reply that nobody waits for"),
                (version() + header.pack(1, 9, 16, 2, 0), "it sent a message of type 2"),
                (version()[:9], "the client has gone in the middle of a message")):
            client = connect(self.path("h0"))
            send(client, said)
            if "middle" in why:
                client.shutdown(socket.SHUT_WR)
            self.gone(client)
            client.close()
            self.wait_for(f"rnicsim: h0: {why}" if why.startswith("the client") else why)
            self.alive(other)
        # Too many descriptors.
        client = connect(self.path("h0"))
        send(client, version(), 12 * [client.fileno()])
        self.gone(client)
        client.close()
        self.wait_for("more than 8 descriptors")
        # Version data may be missing.
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
                          (header.pack(3, 0, 4) + bytes(4), "its command 3 has 4 bytes of 12"),
                          (header.pack(0, 0, 4) + bytes(4), "its command 0 has 4 bytes of 192")):
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
        # Ranges that are none: the others are mapped.
        machine.share([(MEMORY_AT, MEMORY_BYTES, 0), (MEMORY_AT, 4096, 0), (0, 2 * MEMORY_BYTES, 0)])
        self.wait_for("4096 bytes of its memory at 0x10000000 cannot be shared")
        self.wait_for("its descriptor's file holds 16777216 bytes, and the range ends at 33554432")
        self.driver(machine, 1)
        self.end()

    def test_machines_that_die(self):
        self.start(vfio=["h0", "h1"])
        other = self.machine("h1")
        # In the middle of everything, and of a DMA that waits for it.
        for shares in (True, False):
            machine = self.machine("h0", shares=shares)
            driver = self.driver(machine, 1)
            send(machine.client, struct.pack("<HHIII", 1, machine.REGION_WRITE, 36, machine.NO_REPLY, 0) +
                 struct.pack("<QII", abi.reg.kCommandDoorbell, machine.BAR0, 4) + b"\0\0\0\1" + b"\1\0")
            machine.client.close()
            self.wait_for("rnicsim: h0: the client has gone")
            self.path("errors").write_text("")
            self.alive(other)
            self.assertIsNotNone(driver)
        self.driver(self.machine("h0"), 1)
        self.end()

    def test_a_machine_that_does_not_answer(self):
        """It is asked for its memory, and the other one waits 5 s at the most."""
        self.start(vfio=["h0", "h1"])
        other = self.machine("h1")
        machine = self.machine("h0", shares=False)
        driver = self.driver(machine, 1)
        machine.write32(abi.reg.kCommandDoorbell, 1)
        self.assertIsNotNone(driver)
        self.wait_for("it did not answer a DMA request within 5000 ms")
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

    def test_a_second_client_is_turned_away(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        self.alive(machine)
        second = connect(self.path("h0"))
        self.gone(second)
        second.close()
        self.wait_for("another client came to")
        self.alive(machine)
        self.end()

    # --- The command.

    def test_once(self):
        self.start("--once", vfio=["h0", "h1"])
        one, other = self.machine("h0"), self.machine("h1")
        self.alive(other)
        one.client.close()
        self.alive(other)
        other.client.close()
        self.end(how=None)
        self.assertEqual(sorted(self.folder.glob("h?")), [])

    def test_limits_and_signals(self):
        self.start("--wall-limit", "1s", vfio=["h0"])
        summary = self.end(how=None, status=124)
        self.assertIn("ended at the limit of 1 s of wall time", summary)
        self.assertIn("h0: nobody is connected", summary)
        self.start("--limit", "300ms", vfio=["h0"])
        machine = self.machine("h0")
        self.driver(machine, 1)
        while self.program.poll() is None:
            try:
                self.alive(machine)
            except Gone:
                break
        self.end(how=None, status=124)
        self.start(vfio=["h0"])
        self.program.send_signal(signal.SIGUSR1)
        self.wait_for("h0: nobody is connected, 0 BAR accesses")
        self.end(how=signal.SIGINT)

    def test_a_socket_that_was_left(self):
        self.start(vfio=["h0"])
        self.program.kill()
        self.program.wait()
        self.assertTrue(self.path("h0").is_socket())
        self.start(vfio=["h0"])
        self.alive(self.machine("h0"))
        second = subprocess.run([RNICSIM, "device", "--vfio-user", f"h0={self.path('h0')}"], capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertEqual(second.returncode, 2)
        self.assertIn("it exists, and is in use", second.stderr)
        self.end()

    def test_it_sleeps_while_nothing_is_asked(self):
        self.start(qemu=["h0"], vfio=["h1"])
        one, other = self.machine("h0", QemuMachine), self.machine("h1")
        self.exchange(one, other)

        def cpu():
            fields = pathlib.Path(f"/proc/{self.program.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = cpu()
        time.sleep(2)
        self.assertLess(cpu() - before, 0.3)
        self.end()

    def test_time_goes_with_the_wall_clock(self):
        """The device's clock, which ticks in simulated time, while nothing is asked of it."""
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        self.driver(machine, 1)
        khz = machine.read32(abi.reg.kCoreClockKhz)

        def clock():
            return int.from_bytes(machine.read(abi.reg.kClock, 8), "big") / khz / 1000

        before, wall = clock(), time.monotonic()
        time.sleep(1)
        passed, wall = clock() - before, time.monotonic() - wall
        self.assertGreater(passed, 0.9)
        self.assertLess(passed, wall + 0.1)
        self.end()

    def test_far_timers_wait_for_the_wall_clock(self):
        """A peer that is gone: as many timeouts of 67 ms as the queue pair retries, in the machine's time."""
        self.start(vfio=["h0", "h1"])
        one, other = self.machine("h0"), self.machine("h1")
        a, source, _, target = self.connected(one, other)
        other.function_reset()
        began = time.monotonic()
        a.cq.arm(one)
        a.send.post(abi.SendOpcode.write, target.remote(), source.segment(64))
        a.send.ring(one)
        self.assertTrue(one.wait_interrupt(Driver.EQ_VECTOR, ms=1))
        self.assertEqual(a.cq.poll().syndrome, abi.CqeSyndrome.transport_retry_exceeded)
        self.assertGreater(time.monotonic() - began, 7 * 0.067)
        self.end()

    def test_wrong_command_lines(self):
        for words, why in (([], "which machine is to have a device?"),
                           (["--qemu", "h0"], "--qemu: 'h0' is not HOST=SOCKET"),
                           (["--qemu", "h9=x"], "--qemu: the topology has no host 'h9'"),
                           (["--qemu", "h0="], "a socket's path has 1 to 107 bytes"),
                           (["--qemu", "h0=" + "x" * 108], "a socket's path has 1 to 107 bytes"),
                           (["--qemu", "h0=/nowhere/x"], "/nowhere/x: No such file or directory"),
                           (["--qemu", "h0=x,h0=y"], "--qemu: h0 has a socket already"),
                           (["--qemu", "h0=x", "--vfio-user", "h0=y"], "--vfio-user: h0 has a socket already"),
                           (["--qemu", "h0=x", "--qtest", "h1=y"], "--qtest: h1 has no --qemu socket"),
                           (["--vfio-user", "h0=x", "--qtest", "h0=y"], "--qtest: h0 has no --qemu socket"),
                           (["--vfio-user", f"h0={__file__}"], "it exists, and is in use or no socket")):
            done = subprocess.run([RNICSIM, "device", *words], capture_output=True, text=True, timeout=PATIENCE,
                                  cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(why, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
