# SPDX-License-Identifier: Apache-2.0
"""Errors of the Python module: refused accesses, memory, a second simulation, bad profiles."""

import pickle

import pytest
import rnicsim
from rnicsim import abi


@pytest.fixture(scope="module")
def device():
    for nic, sets, told in [("cx5", [], "no NIC profile is called 'cx5'; there are: "),
                            ("no/such.toml", [], "no/such.toml: no such file"),
                            ("", ["nic.prt.rate=1Gb/s"], "there is no parameter nic.prt.rate"),
                            ("", ["nic.port.rate=1"], "nic.port.rate")]:
        with pytest.raises(rnicsim.ConfigError) as wrong:
            rnicsim.device(nic, sets)
        assert told in str(wrong.value) and isinstance(wrong.value, ValueError)
    with pytest.raises(rnicsim.SimulationError):
        rnicsim.run(us=1)
    for latency in (-1, float("nan"), float("inf"), 1e30):
        with pytest.raises(ValueError):
            rnicsim.pair(latency_ns=latency)
    device = rnicsim.device("cx6-200g", ["nic.device.core_clock_khz=1000"])
    device.config_write(abi.config.kCommand, abi.config.kCommandMemory | abi.config.kCommandBusMaster, 2)
    return device


def test_one_simulation_a_process(device):
    for make in (rnicsim.device, rnicsim.pair):
        with pytest.raises(rnicsim.SimulationError) as refused:
            make()
        assert "start another process" in str(refused.value)
    assert device.read32(abi.reg.kMagic) == abi.kMagicValue  # the first simulation goes on


@pytest.mark.parametrize("offset, size, name", [
    (abi.reg.kMagic, 8, "kMagic, 32 bits, RO"),
    (abi.reg.kCommandDoorbell, 4, "kCommandDoorbell, 32 bits, WO"),
    (0x34, 4, "no register"),
    (abi.kUarBase + 2 * abi.kUarPageSize + abi.uar.kCqArm, 8, "UAR page 2 + 0x10, WO"),
    (abi.kBarSize, 4, "behind the BAR"),
    (abi.kBarSize - 4, 8, "no register"),
])
def test_wrong_reads_of_the_bar(device, offset, size, name):
    refused = device.counters()["nic.pcie.mmio_refused"]
    with pytest.raises(rnicsim.RegisterError) as wrong:
        device.read32(offset) if size == 4 else device.read64(offset)
    assert str(wrong.value) == f"read of {size} bytes at {offset:#x} of BAR0 ({name}): unsupported request"
    assert (wrong.value.space, wrong.value.offset, wrong.value.name) == ("BAR0", offset, name)
    assert device.counters()["nic.pcie.mmio_refused"] == refused + 1


def test_wrong_writes_and_configuration(device):
    for offset, data, name in [(abi.reg.kMagic, bytes(4), "kMagic"), (abi.kMsixPba, bytes(8), "MSI-X pending bits"),
                               (abi.reg.kCommandDoorbell, bytes(8), "kCommandDoorbell"), (0x34, b"1", "no register")]:
        with pytest.raises(rnicsim.RegisterError) as wrong:
            device.write(offset, data)
        assert name in str(wrong.value) and f"write of {len(data)} bytes" in str(wrong.value)
    for access in (lambda: device.config_read(abi.config.kSize), lambda: device.config_write(0xffe, 0, 4)):
        with pytest.raises(rnicsim.RegisterError) as wrong:
            access()
        assert wrong.value.space == "configuration space"


@pytest.mark.parametrize("wrong", [-1, 2**64, 2**70])
def test_numbers_that_are_none_of_a_register(device, wrong):
    for access in (lambda: device.read32(wrong), lambda: device.write32(wrong, 1), lambda: device.config_read(wrong),
                   lambda: device.config_read(0, wrong), lambda: device.config_write(0, wrong),
                   lambda: device.write32(abi.reg.kCommandDoorbell, wrong), lambda: device.unmap(wrong),
                   lambda: device.load(wrong, 1), lambda: device.load(0, wrong), lambda: device.store(wrong, b"1"),
                   lambda: device.load(0, 1, pasid=wrong), lambda: device.wait_interrupt(wrong, us=1),
                   lambda: device.allocate(wrong), lambda: device.map(device.allocate(1), wrong)):
        with pytest.raises(ValueError) as told:
            access()
        assert "\n" not in str(told.value)


def test_a_number_is_no_bytes(device):
    for access in (lambda: device.write(abi.kUarBase, 8), lambda: device.store(0, 8), lambda: device.inject(60)):
        with pytest.raises(TypeError):
            access()


def test_errors_can_be_sent_to_another_process(device):
    with pytest.raises(rnicsim.RegisterError) as refused:
        device.read32(3)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (str(copied), copied.offset) == (str(refused.value), 3)


def test_every_register_has_its_name(device):
    for offset, (name, bits, access) in abi.REGISTERS.items():
        assert rnicsim.bar_name(offset).startswith(name)
        if access != "WO":
            assert isinstance(device.read32(offset) if bits == 32 else device.read64(offset), int)


def test_layouts_are_big_endian_with_the_manuals_names():
    entry = abi.CommandEntry(owner=1, token=0x1234, input=0x10000)
    assert bytes(entry)[:16] == bytes.fromhex("01001234" "00000000" "0000000000010000")
    assert len(bytes(abi.Qpc())) == 256 and abi.Qpc.send_ring.offset == 0x20
    assert "token=4660" in repr(entry)


def test_layouts_have_no_other_fields_and_cut_nothing_off():
    entry = abi.CommandEntry(token=0xffff, owner=abi.CommandStatus.ok)
    for wrong in (lambda: abi.CommandEntry(tokn=1), lambda: setattr(entry, "inputs", 1)):
        with pytest.raises(AttributeError) as told:
            wrong()
        assert "CommandEntry has no field" in str(told.value)
    for value in (-1, 1 << 16):
        with pytest.raises(ValueError) as told:
            entry.token = value
        assert "CommandEntry.token" in str(told.value) and "2 bytes" in str(told.value)
    assert entry.token == 0xffff


def test_memory(device):
    memory = device.allocate(5000)
    assert len(memory) == 8192 and not any(memory.data)
    device.map(memory, 0x10000, pasid=7)
    device.map(memory, 0x20000, pasid=7, writable=False)
    device.store(0x10ffe, b"across", pasid=7)
    assert bytes(memory.data[0xffe:0x1004]) == b"across" == device.load(0x20ffe, 6, pasid=7)
    for wrong in (lambda: device.map(memory, 0x11000, pasid=7), lambda: device.map(memory, 0xf000, pasid=7),
                  lambda: device.map(memory, 0x30001), lambda: device.unmap(0x11000, pasid=7),
                  lambda: device.map(memory, 2**64 - 4096), lambda: device.allocate(0),
                  lambda: device.map(memory, abi.kMsiWindow), lambda: device.map(memory, abi.kMsiWindow - 0x1000)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(rnicsim.Fault):
        device.load(0x11ffe, 4, pasid=7)
    with pytest.raises(rnicsim.Fault):
        device.load(0x10000, 4)
    device.store(0x11ff0, bytes(16), pasid=7)
    for iova in (0x11ff0, 0x1fff0, 0x20000):  # partly unmapped, or read-only: nothing is stored
        with pytest.raises(rnicsim.Fault):
            device.store(iova, 32 * b"x", pasid=7)
    assert not any(memory.data[0x1ff0:])
    with pytest.raises(rnicsim.Fault):
        device.load(0x10000, 1 << 40, pasid=7)
    for iova in (0x10000, 0x20000):
        device.unmap(iova, pasid=7)
    with pytest.raises(rnicsim.Fault):
        device.store(0x10000, b"1", pasid=7)


def test_time_and_interrupts(device):
    before = device.now
    device.run(us=2, ns=0.5)
    assert device.now == before + 2_000_500
    clock = device.read64(abi.reg.kClock)
    device.run(ms=3)
    assert device.read64(abi.reg.kClock) == clock + 3000
    assert device.wait_interrupt(us=1) is None and device.now == before + 2_000_500 + 3_001_000_000
    for wrong in ({"us": -1}, {"us": float("nan")}, {"s": float("inf")}, {"s": 10**7}, {"ps": 2**64}):
        with pytest.raises(ValueError):
            device.run(**wrong)


def test_a_run_of_nothing_is_silent(device, capfd):
    now = device.now
    device.run(us=0)
    assert device.now == now and capfd.readouterr() == ("", "")


def test_frames_of_strangers(device):
    dropped = device.counters()["nic.steering.not_roce"]
    device.inject(bytes(60))
    device.run(us=1)
    assert device.counters()["nic.steering.not_roce"] == dropped + 1
    assert device.frames() == []
    for size in (0, 1 << 16):
        with pytest.raises(ValueError):
            device.inject(bytes(size))


def test_a_command_queue_that_is_not_mapped_faults(device):
    """An unmapped address is a completer abort, visible in trace and counters; the host goes on."""
    device.record()
    faults = device.counters()["iommu.faults"]
    device.write64(abi.reg.kCommandQueueBase, 0x5000)
    device.write32(abi.reg.kCommandDoorbell, 1)
    device.run(us=5)
    counters = device.counters()
    assert counters["iommu.faults"] == faults + 1 and counters["nic.command.bad_entries"] == 1
    abort = [event for event in device.trace() if event["kind"] == "dma_abort"]
    assert len(abort) == 1 and abort[0]["write"] == 0 and abort[0]["device"] == 0
    assert device.trace() == []


def test_function_reset(device):
    device.function_reset()
    with pytest.raises(rnicsim.RegisterError):
        device.read32(abi.reg.kMagic)
    assert device.config_read(abi.config.kCommand, 2) == 0


def test_time_ends(device):
    """The last test of this file: the simulation cannot run further."""
    device.run(s=9_000_000 - device.now // 10**12 - 1)
    end = device.now
    with pytest.raises(ValueError) as told:
        device.run(s=1000)
    assert "simulated time ends at 9000000 s" in str(told.value) and device.now == end
    device.run(us=1)
    assert device.now == end + 1_000_000
