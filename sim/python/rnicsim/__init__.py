# SPDX-License-Identifier: Apache-2.0
"""The device for driver writers: the model of an RDMA NIC, driven by hand as a driver drives it.

    import rnicsim
    from rnicsim import abi

    a, b = rnicsim.pair("cx5-100g")                  # two devices on a cable; rnicsim.device() makes one alone
    a.config_write(abi.config.kCommand, abi.config.kCommandMemory | abi.config.kCommandBusMaster, 2)
    assert a.read32(abi.reg.kMagic) == abi.kMagicValue
    queue = a.allocate(4096)
    a.map(queue, 0x10000)                            # IOVA 0x10000 of PASID 0, the kernel's
    a.write64(abi.reg.kCommandQueueBase, 0x10000)
    a.run(us=1)

docs/device.md describes registers and layouts; `rnicsim.abi` has their names.

Time is simulated: time passes only in run() and wait_interrupt(), which run all devices. An access to a register or to
memory takes no time, because the costs of a CPU are not modelled here. Ctrl-C ends run() and wait_interrupt() at the
present simulated time.

One process is one simulation: SystemC elaborates once and cannot begin anew, so all devices are made by one call of
device() or pair(), and another raises SimulationError. For a second simulation start a second process; for a fresh
device reset the one there is (function_reset), which is what hardware offers, too.

Not for threads: whoever calls runs the simulation.
"""

import collections
import math
import operator

from rnicsim import _core, abi
from rnicsim._core import ConfigError, SimulationError

__all__ = ["Check", "ConfigError", "Device", "Fault", "Finding", "Frame", "Interrupt", "Memory", "RegisterError",
           "SimulationError", "abi", "device", "now", "pair", "run"]

# A mistake of the driver: kind (docs/driver-check.md), time in picoseconds, text in one line, section of
# docs/device.md, and the lines of the last accesses before it.
Finding = collections.namedtuple("Finding", "kind time text section accesses")
Interrupt = collections.namedtuple("Interrupt", "time vector")  # time in picoseconds
Frame = collections.namedtuple("Frame", "time data")            # time when the last bit left, and bytes without FCS


class RegisterError(Exception):
    """The device refuses an access: `space` ("BAR0", "configuration space"), `offset`, and the `name` of the place."""

    def __init__(self, what, space, offset, name):
        super().__init__(f"{what} at {offset:#x} of {space} ({name}): unsupported request")
        self.what, self.space, self.offset, self.name = what, space, offset, name

    def __reduce__(self):
        return type(self), (self.what, self.space, self.offset, self.name)


class Fault(Exception):
    """load() or store() at an address that is not mapped, or not mapped for writing."""


def run(*, s=0, ms=0, us=0, ns=0, ps=0):
    """Runs the simulation for this duration. ValueError: not a duration, or beyond the end of simulated time."""
    _core.run(_picoseconds(s, ms, us, ns, ps))


def now():
    """Simulated time in picoseconds."""
    return _core.now()


class Check:
    """How a driver is checked: `reset_window_ms` behind a function-level reset in which it must not touch BAR0; and the
    modes that make hidden mistakes show, `poison` (a CQE's place holds a pattern until the CQE is there) and
    `owner_delay_ns` (the owner bit of an entry lands so much later than the rest)."""

    def __init__(self, reset_window_ms=100, poison=False, owner_delay_ns=0):
        self._given = {"reset_window_ps": _picoseconds(ms=reset_window_ms), "poison": bool(poison),
                       "owner_delay_ps": _picoseconds(ns=owner_delay_ns)}


def _check(check):
    if isinstance(check, Check):
        return check._given
    return Check()._given if check else None


def device(nic="", sets=(), check=False):
    """One device without a cable: what it sends is in frames(), what it receives is what inject() is given.

    `nic`: a shipped profile ("cx5-100g") or a TOML file; "": the defaults. `sets`: "nic.port.rate=10Gb/s" and the like.
    `check`: True or a Check: the driver's mistakes are in Device.findings().
    ConfigError says what is wrong with them, SimulationError that there is a simulation already.
    """
    return Device(_core.make(1, str(nic), _sets(sets), 0, _check(check))[0])


def pair(nic="", sets=(), latency_ns=90, check=False):
    """Two devices on a cable; as device()."""
    latency = _picoseconds(ns=latency_ns)
    return tuple(Device(station) for station in _core.make(2, str(nic), _sets(sets), latency, _check(check)))


def _sets(sets):
    return [sets] if isinstance(sets, str) else list(sets)


_LAST_PS = 9 * 10**18  # end of simulated time, 104 days: later times would exceed 64 bits


def _picoseconds(s=0, ms=0, us=0, ns=0, ps=0):
    duration = s * 10**12 + ms * 10**9 + us * 10**6 + ns * 1000 + ps
    if not math.isfinite(duration):
        raise ValueError(f"no time: {duration} ps")
    duration = round(duration)
    if duration < 0:
        raise ValueError(f"time does not run backwards: {duration} ps")
    if duration > _LAST_PS - now():
        raise ValueError(f"simulated time ends at {_LAST_PS // 10**12} s: {duration} ps more are not possible")
    return duration


def _number(value, what, limit=1 << 64):
    """Checks an integer: at least 0 and below the limit."""
    value = operator.index(value)
    if not 0 <= value < limit:
        raise ValueError(f"{what} {value:#x} is not within 0 to {limit - 1:#x}")
    return value


def _bytes(data):
    """Bytes of a bytes-like object or a layout. Refuses a number, of which bytes() would make zeros."""
    if isinstance(data, (int, str)):
        raise TypeError(f"bytes or a layout are needed, not {data!r}")
    return bytes(data)


class Memory:
    """Memory of a device's host, whole pages of it, made by Device.allocate(). `data` is a memoryview that Python reads
    and writes."""

    PAGE = 4096

    def __init__(self, station, buffer):
        self._station = station
        self._buffer = buffer
        self.data = memoryview(buffer)

    def __len__(self):
        return len(self.data)


class Device:
    """A NIC in a host without software."""

    def __init__(self, station):
        self._station = station

    # --- Configuration space: little-endian, any width.

    def config_read(self, offset, size=4):
        """Reads a number of `size` bytes. RegisterError: beyond the end."""
        size = _number(size, "size", abi.config.kSize + 1)
        data = self._station.config_read(_number(offset, "offset"), size)
        if data is None:
            raise RegisterError(f"read of {size} bytes", "configuration space", offset, _config_name(offset))
        return int.from_bytes(data, "little")

    def config_write(self, offset, value, size=4):
        """Writes `value`, a number of `size` bytes. RegisterError: beyond the end."""
        size = _number(size, "size", abi.config.kSize + 1)
        value = _number(value, "value", 1 << 8 * size)
        if not self._station.config_write(_number(offset, "offset"), value.to_bytes(size, "little")):
            raise RegisterError(f"write of {size} bytes", "configuration space", offset, _config_name(offset))

    def function_reset(self):
        """Function-level reset (PCIe 4.0, 6.6.2): the device is as after power-up. Memory and IOMMU belong to the host
        and keep their state."""
        self.config_write(abi.config.kDeviceControl, abi.config.kFunctionLevelReset, 2)

    # --- BAR0: big-endian. RegisterError: the device refuses the access.

    def read32(self, offset):
        """Reads a register of 32 bits, or half of a larger one."""
        return self._read(offset, 4)

    def read64(self, offset):
        """Reads a register of 64 bits."""
        return self._read(offset, 8)

    def write32(self, offset, value):
        """Writes a register of 32 bits, or half of a larger one."""
        self.write(offset, _number(value, "value", 1 << 32).to_bytes(4, "big"))

    def write64(self, offset, value):
        """Writes a register of 64 bits."""
        self.write(offset, _number(value, "value").to_bytes(8, "big"))

    def write(self, offset, data):
        """Writes `data`: bytes, or a layout of abi."""
        data = _bytes(data)
        if not self._station.bar_write(_number(offset, "offset"), data):
            raise RegisterError(f"write of {len(data)} bytes", "BAR0", offset, bar_name(offset))

    def _read(self, offset, size):
        data = self._station.bar_read(_number(offset, "offset"), size)
        if data is None:
            raise RegisterError(f"read of {size} bytes", "BAR0", offset, bar_name(offset))
        return int.from_bytes(data, "big")

    # --- Memory. An access of the device to an unmapped address is a completer abort (counter iommu.faults).

    def allocate(self, size):
        """Allocates zeroed memory, rounded up to whole pages; not mapped."""
        size = operator.index(size)
        if not 0 < size < 1 << 48:
            raise ValueError(f"memory of {size} bytes")
        return Memory(self._station, self._station.allocate(-(-size // Memory.PAGE) * Memory.PAGE))

    def map(self, memory, iova, pasid=0, writable=True):
        """The device reaches `memory`, of its own host, at that address of that PASID. ValueError: not a page's, mapped
        already, or where writes are interrupts."""
        if not isinstance(memory, Memory):
            raise TypeError(f"memory must be a result of allocate(), not {memory!r}")
        if memory._station is not self._station:
            raise ValueError("the memory is another host's")
        iova, pasid = _number(iova, "IOVA"), _pasid(pasid)
        if iova % Memory.PAGE:
            raise ValueError(f"IOVA {iova:#x} is not a page's")
        if iova + len(memory) >= 1 << 64:
            raise ValueError(f"IOVA {iova:#x}: the range ends after the last address")
        window = range(abi.kMsiWindow, abi.kMsiWindow + abi.kMsiWindowSize)
        if pasid == 0 and iova < window.stop and iova + len(memory) > window.start:
            raise ValueError(f"IOVA {iova:#x}: the range overlaps kMsiWindow, where writes are interrupts")
        self._station.map(memory._buffer, iova, pasid, bool(writable))

    def unmap(self, iova, pasid=0):
        """Removes the whole mapping that begins at that address. ValueError: no mapping begins there."""
        self._station.unmap(_number(iova, "IOVA"), _pasid(pasid))

    def load(self, iova, size, pasid=0):
        """Reads mapped memory. Fault: the range is not mapped completely."""
        iova, size = _number(iova, "IOVA"), _number(size, "size", 1 << 48)
        data = self._station.load(iova, _pasid(pasid), size)
        if data is None:
            raise Fault(f"PASID {pasid}: {size} bytes at {iova:#x} are not mapped")
        return data

    def store(self, iova, data, pasid=0):
        """Writes `data`: bytes, or a layout of abi. Fault: the range is not mapped completely for writing; nothing is
        stored."""
        iova, data = _number(iova, "IOVA"), _bytes(data)
        if not self._station.store(iova, _pasid(pasid), data):
            raise Fault(f"PASID {pasid}: {len(data)} bytes at {iova:#x} are not mapped for writing")

    # --- Interrupts: MSI-X messages into abi.kMsiWindow.

    def wait_interrupt(self, vector=None, *, s=0, ms=0, us=0, ns=0, ps=0):
        """The next interrupt, of that vector or of any, that was not taken: runs until there is one, or for so long.

        Returns an Interrupt, or None. One that has come before is taken at once.
        """
        if vector is not None:
            vector = _number(vector, "vector", abi.kMsixVectors)
        taken = self._station.next_interrupt(vector, _picoseconds(s, ms, us, ns, ps))
        return Interrupt(*taken) if taken else None

    # --- Time of the simulation, common to all devices.

    def run(self, **duration):
        """rnicsim.run()."""
        run(**duration)

    @property
    def now(self):
        """rnicsim.now()."""
        return now()

    # --- The wire.

    def inject(self, frame):
        """Lets the device receive an Ethernet frame without FCS, of 1 to 65535 bytes, whose last bit arrives now."""
        frame = _bytes(frame)
        if not 0 < len(frame) < 1 << 16:
            raise ValueError(f"a frame of {len(frame)} bytes")
        self._station.inject(frame)

    def frames(self):
        """Frames that the device sent since the last call; the peer of a cable receives them as well."""
        return [Frame(*frame) for frame in self._station.take_frames()]

    # --- Inspection.

    def counters(self):
        """Counters by name, as in `rnicsim describe counters`: {"nic.tx.packets": 3, ...}, and those of the IOMMU."""
        return self._station.counters()

    def findings(self):
        """Mistakes of the driver so far, as Finding; needs `check`."""
        return [Finding(*finding) for finding in self._station.findings()]

    def finish_check(self):
        """Call when the driver has ended: pending problems, such as an interrupt of a masked vector, become
        findings."""
        self._station.finish_check()

    def burndown(self):
        """Lines about registers, doorbells and commands that the driver used, never used, or requested without
        success."""
        return self._station.burndown()

    def record(self):
        """Keeps the events of the device's trace points for trace(), from now on."""
        self._station.record()

    def log(self, *choices):
        """Prints each event on standard error from now on, a line for each: "info", "debug", "trace", or a level of one
        block, "debug:doorbell", as `rnicsim run --log` has them. Without a choice: nothing more."""
        self._station.log([str(choice) for choice in choices] or ["off"])

    def trace(self):
        """Events since the last call: dicts with time (ps), device, kind, and the kind's fields (traces/README.md)."""
        return self._station.take_trace()


def _pasid(pasid):
    return _number(pasid, "PASID", 1 << 20)  # PCIe 4.0, 6.20


def bar_name(offset):
    """Name of the place at an offset of BAR0, as in the manual."""
    for at, (name, bits, access) in abi.REGISTERS.items():
        if at <= offset < at + bits // 8:
            return f"{name}, {bits} bits, {access}"
    if abi.kMsixTable <= offset < abi.kMsixTable + 16 * abi.kMsixVectors:
        return f"MSI-X table, vector {(offset - abi.kMsixTable) // 16}"
    if abi.kMsixPba <= offset < abi.kMsixPba + abi.kMsixVectors // 8:
        return "MSI-X pending bits, RO"
    if abi.kUarBase <= offset < abi.kUarBase + abi.kUarPages * abi.kUarPageSize:
        page, within = divmod(offset - abi.kUarBase, abi.kUarPageSize)
        return f"UAR page {page} + {within:#x}, WO"
    return "no register" if offset < abi.kBarSize else "behind the BAR"


def _config_name(offset):
    names = {getattr(abi.config, name): name for name in ("kCommand", "kBar0", "kCapabilityPointer", "kPcieCapability",
                                                          "kDeviceControl", "kMsixCapability", "kMsixControl",
                                                          "kPowerCapability", "kPowerControl", "kErrorReporting",
                                                          "kSerialNumber")}
    return names.get(offset, "no register" if offset >= abi.config.kSize else "no name")
