# SPDX-License-Identifier: Apache-2.0
"""Brings two devices up from reset, connects a queue pair over a cable and sends, with the driver of this folder."""

import signal
import struct

import pytest
import rnicsim
from driver import CommandError, Driver
from rnicsim import abi

ACCESS = abi.access.kLocalWrite | abi.access.kRemoteWrite | abi.access.kRemoteRead
LENGTH = 5000  # five packets at a path MTU of 1024


@pytest.fixture(scope="session")
def cable():
    """A process has one simulation: all tests share its devices."""
    devices = rnicsim.pair("cx5-100g")
    for device in devices:
        device.record()
    return devices


@pytest.fixture
def devices(cable):
    """State as after power-up: memory of earlier tests is not mapped any more."""
    for device in cable:
        device.function_reset()
        device.frames()
        device.trace()
    yield cable
    for device in cable:
        device.function_reset()
        while device.wait_interrupt():
            pass


@pytest.fixture
def drivers(devices):
    made = [Driver(device, number + 1) for number, device in enumerate(devices)]
    yield [driver.bring_up() for driver in made]
    for driver in made:
        driver.memory.release()


@pytest.fixture
def ends(drivers):
    """(QP, region) of each side, connected."""
    ends = []
    for driver in drivers:
        cq = driver.create_cq(1)
        ends.append((driver.create_qp(0xb, cq), driver.register(3, 8192, ACCESS)))
    (a, _), (b, _) = ends
    a.connect(b)
    b.connect(a)
    return ends


def test_reset_state(devices):
    device = devices[0]
    assert device.config_read(abi.config.kCommand, 2) == 0
    with pytest.raises(rnicsim.RegisterError) as refused:  # memory space is not enabled
        device.read32(abi.reg.kMagic)
    assert refused.value.offset == abi.reg.kMagic and "kMagic, 32 bits, RO" in str(refused.value)


def test_bring_up(drivers):
    for driver in drivers:
        assert driver.device.read32(abi.reg.kStatus) == abi.DeviceStatus.ready
        assert driver.capabilities.max_rd_atomic == 16
        assert driver.capabilities.features & abi.feature.kRc
        assert driver.port.max_mtu == 5
        driver.stop()
        assert driver.device.read32(abi.reg.kStatus) == abi.DeviceStatus.initializing


def test_write_over_the_cable(ends):
    (a, source), (b, target) = ends
    message = bytes(i * 7 & 0xff for i in range(LENGTH))
    source.data[:LENGTH] = message
    device = a.driver.device
    device.frames()
    device.trace()
    before = device.counters()
    a.cq.arm(device)
    a.send.post(abi.SendOpcode.write, target.remote(100), source.segment(LENGTH))
    a.send.ring(device)
    posted = device.now

    # A completion is announced by an event and an interrupt.
    interrupt = device.wait_interrupt(Driver.EQ_VECTOR, ms=1)
    assert interrupt and posted < interrupt.time < posted + 10_000_000
    event = a.driver.events.poll()
    assert (event.type, event.number) == (abi.EventType.completion, a.cq.cqn)
    a.driver.events.arm(device)
    cqe = a.cq.poll()
    assert cqe.opcode_owner >> 4 == abi.CqeOpcode.requester and cqe.syndrome == abi.CqeSyndrome.success
    assert (cqe.qpn, cqe.wqe_counter, cqe.send_opcode) == (a.qpn, 0, abi.SendOpcode.write)
    assert a.cq.poll() is None and b.cq.poll() is None
    assert bytes(target.data[100:100 + LENGTH]) == message
    assert not any(target.data[:100]) and not any(target.data[100 + LENGTH:])

    frames = [frame.data for frame in device.frames()]
    assert len(frames) == 5 and all(frame[12:14] == b"\x08\x00" for frame in frames)
    bth = [struct.unpack_from(">BBHII", frame, 14 + 20 + 8) for frame in frames]
    write_first, write_middle, write_last = 6, 7, 8
    assert [header[0] for header in bth] == [write_first] + 3 * [write_middle] + [write_last]
    assert [header[4] & 0xffffff for header in bth] == [a.FIRST_PSN + i for i in range(5)]
    after = device.counters()
    assert after["nic.tx.packets"] - before["nic.tx.packets"] == 5
    assert after["nic.pcie.interrupts"] - before["nic.pcie.interrupts"] == 1
    kinds = [event["kind"] for event in device.trace()]
    for kind in ("cq_arm", "doorbell", "wqe_fetch", "wqe", "packet_sent", "frame_sent", "cqe", "eqe", "interrupt"):
        assert kind in kinds, kinds
    assert kinds.index("doorbell") < kinds.index("wqe_fetch") < kinds.index("packet_sent") < kinds.index("cqe")


def test_blueflame_needs_no_fetch(ends):
    (a, source), (_, target) = ends
    device = a.driver.device
    source.data[:8] = b"8 bytes!"
    fetched = device.counters()["nic.wqe_fetch.fetches"]
    a.send.blueflame(device, a.send.post(abi.SendOpcode.write, target.remote(), source.segment(8)))
    device.run(us=10)
    assert a.cq.poll().syndrome == abi.CqeSyndrome.success
    assert bytes(target.data[:8]) == b"8 bytes!"
    assert device.counters()["nic.wqe_fetch.fetches"] == fetched


def test_read_and_the_ring_wraps(ends):
    (a, target), (_, source) = ends
    device = a.driver.device
    for i in range(3 * a.send.size):
        source.data[:4] = struct.pack(">I", i)
        a.send.post(abi.SendOpcode.read, source.remote(), target.segment(4))
        a.send.ring(device)
        device.run(us=10)
        assert a.cq.poll().wqe_counter == i
        assert bytes(target.data[:4]) == struct.pack(">I", i)


def test_foreign_key_is_an_error(ends):
    (a, source), (b, target) = ends
    wrong = target.remote()
    wrong.rkey ^= 1
    a.send.post(abi.SendOpcode.write, wrong, source.segment(64))
    a.send.ring(a.driver.device)
    a.driver.device.run(us=20)
    assert a.cq.poll().syndrome == abi.CqeSyndrome.remote_access_error
    assert a.state() == abi.QpState.error and b.state() == abi.QpState.error


def test_memory_that_is_not_mapped_is_a_completer_abort(ends):
    (a, source), (_, target) = ends
    device = a.driver.device
    before = device.counters()["iommu.faults"]
    a.driver.memory.unmap(source.address)
    a.send.post(abi.SendOpcode.write, target.remote(), source.segment(64))
    a.send.ring(device)
    device.run(us=20)
    assert a.cq.poll().syndrome == abi.CqeSyndrome.local_protection_error
    assert device.counters()["iommu.faults"] > before
    assert any(event["kind"] == "dma_abort" and event["reason"] == "not_pinned" for event in device.trace())


def refusals(device):
    """(what, why, object, qp, address) of each `refused` event since the last call."""
    device.run(us=20)
    return [(event["what"], event["why"], event["object"], event["qp"], event["address"])
            for event in device.trace() if event["kind"] == "refused"]


def test_doorbells_that_are_ignored_say_why(ends):
    (a, _), _ = ends
    device = a.driver.device

    def ring(qpn, producer, page=1, offset=abi.uar.kSendDoorbell):
        device.write(abi.kUarBase + page * abi.kUarPageSize + offset, abi.SendDoorbell(qpn=qpn, producer=producer))

    send = abi.kUarBase + abi.kUarPageSize + abi.uar.kSendDoorbell
    before = device.counters()
    ring(a.qpn, 1, page=7)
    assert refusals(device) == [("send_doorbell", "wrong_page", a.qpn, a.qpn, send + 6 * abi.kUarPageSize)]
    # In the host's byte order: the device takes the QP number from 24 bits.
    ring(int.from_bytes(a.qpn.to_bytes(4, "big"), "little"), 1)
    wrong = a.qpn << 24 & 0xffffff
    assert refusals(device) == [("send_doorbell", "no_object", wrong, wrong, send)]
    ring(a.qpn, 1000)
    assert refusals(device) == [("send_doorbell", "past_ring", a.qpn, a.qpn, 0)]
    ring(a.qpn, 1, offset=0x700)
    assert refusals(device) == [("doorbell", "malformed", 0, 0, abi.kUarBase + abi.kUarPageSize + 0x700)]
    device.write(abi.kUarBase + abi.kUarPageSize + abi.uar.kCqArm, abi.CqArm(cqn_flags=9 << 8))
    assert refusals(device) == [("cq_arm", "no_object", 9, 0, abi.kUarBase + abi.kUarPageSize + abi.uar.kCqArm)]
    after = device.counters()
    grown = {name for name in after if after[name] != before[name] and name.startswith(("nic.doorbell", "nic.engine"))}
    assert grown >= {"nic.doorbell.doorbell_wrong_page", "nic.doorbell.doorbell_malformed",
                     "nic.engine.doorbell_invalid"}


def test_a_doorbell_in_reset_is_ignored(drivers):
    driver = drivers[0]
    qp = driver.create_qp(0xc, driver.create_cq(2))
    driver.device.trace()
    before = driver.device.counters()["nic.engine.doorbell_wrong_state"]
    qp.send.post(abi.SendOpcode.nop)
    qp.send.ring(driver.device)
    assert refusals(driver.device) == [("send_doorbell", "wrong_state", 0xc, 0xc, 0)]
    assert driver.device.counters()["nic.engine.doorbell_wrong_state"] == before + 1


def test_what_the_bar_and_memory_refuse_is_traced(ends):
    (a, source), (b, target) = ends
    device = a.driver.device
    with pytest.raises(rnicsim.RegisterError):
        device.read32(0x34)
    assert refusals(device) == [("mmio_read", "no_register", 0, 0, 0x34)]
    base = device.read64(abi.reg.kCommandQueueBase)
    with pytest.raises(rnicsim.RegisterError):
        device.write64(abi.reg.kCommandQueueBase, base + 0x10)
    assert refusals(device) == [("mmio_write", "bad_alignment", 0, 0, abi.reg.kCommandQueueBase)]
    assert device.read64(abi.reg.kCommandQueueBase) == base
    device.write32(abi.reg.kCommandDoorbell, 1)  # the driver still owns the entry
    assert refusals(device) == [("command", "not_owned", 0, 0, base)]
    segment = source.segment(64)
    segment.lkey ^= 1
    a.send.post(abi.SendOpcode.write, target.remote(), segment)
    a.send.ring(device)
    assert refusals(device) == [("memory", "bad_key", source.key ^ 1, a.qpn, source.address)]
    a.driver.device.config_write(abi.config.kCommand, abi.config.kCommandMemory, 2)
    device.write32(abi.reg.kCommandDoorbell, 1)
    assert ("dma_read", "bus_master_off", 0, 0, base) in refusals(device)


def test_an_abort_tells_its_address(ends):
    (a, source), (_, target) = ends
    a.driver.memory.unmap(source.address)
    a.send.post(abi.SendOpcode.write, target.remote(), source.segment(64, 128))
    a.send.ring(a.driver.device)
    a.driver.device.run(us=20)
    aborts = [event for event in a.driver.device.trace() if event["kind"] == "dma_abort"]
    assert [event["address"] for event in aborts] == [source.address + 128]


def test_events_can_be_watched(ends, capfd):
    (a, _), _ = ends
    device = a.driver.device
    device.log("debug:doorbell", "info:refused")
    a.send.post(abi.SendOpcode.nop)
    a.send.ring(device)
    device.write(abi.kUarBase + 7 * abi.kUarPageSize + abi.uar.kSendDoorbell, abi.SendDoorbell(qpn=a.qpn, producer=2))
    device.run(us=10)
    shown = capfd.readouterr().err
    assert "device0  doorbell  qp 0xb  producer 1" in shown
    assert "device0  refused  what send_doorbell  object 0xb  qp 0xb  why wrong_page" in shown
    device.log()
    a.send.ring(device)
    device.run(us=10)
    assert capfd.readouterr().err == ""
    with pytest.raises(rnicsim.ConfigError):
        device.log("loud")


def test_commands_that_fail_say_why(drivers):
    driver = drivers[0]
    with pytest.raises(CommandError) as failed:
        driver.commands.execute(abi.CommandOpcode.destroy_qp, 0xb)
    assert (failed.value.status, failed.value.syndrome) == (abi.CommandStatus.bad_resource, 0x0e)  # no_object
    with pytest.raises(CommandError) as failed:
        driver.commands.execute(abi.CommandOpcode.set_gid, 0, abi.MapIcm())
    assert failed.value.status == abi.CommandStatus.bad_input_length


def test_a_strangers_frame_harms_nobody(ends):
    (a, source), (b, target) = ends
    b.driver.device.inject(bytes(64))
    before = b.driver.device.counters()["nic.steering.not_roce"]
    a.send.post(abi.SendOpcode.write, target.remote(), source.segment(64))
    a.send.ring(a.driver.device)
    a.driver.device.run(us=10)
    assert a.cq.poll().syndrome == abi.CqeSyndrome.success
    assert b.driver.device.counters()["nic.steering.not_roce"] == before + 1


def test_a_frame_may_come_before_those_on_the_cable(ends):
    (a, source), (b, target) = ends
    device = a.driver.device
    source.data[:5] = b"later"
    a.send.post(abi.SendOpcode.write, target.remote(), source.segment(5))
    a.send.ring(device)
    while not device.frames():
        device.run(ns=10)
    before = b.driver.device.counters()["nic.rx.packets"]
    b.driver.device.inject(bytes(64))
    assert b.driver.device.counters()["nic.rx.packets"] == before  # the frame is still on its way
    device.run(us=10)
    assert a.cq.poll().syndrome == abi.CqeSyndrome.success and bytes(target.data[:5]) == b"later"


def test_memory_is_its_own_hosts(devices):
    a, b = devices
    with pytest.raises(ValueError):
        b.map(a.allocate(4096), 0x1000)


def test_a_signal_ends_a_long_run(ends):
    """A peer without receives and a sender that retries for ever, for longer than a test may take."""
    (a, source), _ = ends
    a.send.post(abi.SendOpcode.send, source.segment(8))
    a.send.ring(a.driver.device)
    retries = "nic.engine.rnr_nak_retry_err"
    before = a.driver.device.counters()[retries]

    def interrupt(*_):
        seen.append(a.driver.device.now)  # the device is idle here, and may be read
        raise KeyboardInterrupt

    for wait in (lambda: a.driver.device.run(s=1_000_000),
                 lambda: a.driver.device.wait_interrupt(Driver.EQ_VECTOR, s=1_000_000)):
        seen = []
        old = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            wait()
        signal.signal(signal.SIGALRM, old)
        assert seen == [a.driver.device.now]
    assert a.driver.device.counters()[retries] > before
    a.driver.device.run(us=10)  # the device can still run
