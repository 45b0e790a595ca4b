# SPDX-License-Identifier: Apache-2.0
"""Registers, layouts and numbers of the device, under the names that docs/device.md gives them.

Made from model/abi/*.h by tests/support/device_layouts.py --write.

A layout is a ctypes structure in the device's byte order: `Qpc(send_cqn=3)`, `bytes(qpc)`,
`Cqe.from_buffer(memory, offset)`. It has no field but those of the manual (AttributeError), and a number has to fit
(ValueError).
"""

import ctypes
import enum

u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64


class Layout(ctypes.BigEndianStructure):
    def __setattr__(self, name, value):
        # ctypes would take any name for one of Python's own, and cut a number to what fits.
        field = getattr(type(self), name, None)
        if not hasattr(field, "offset"):
            raise AttributeError(f"{type(self).__name__} has no field '{name}'")
        if isinstance(value, int) and value >> 8 * field.size:
            raise ValueError(f"{type(self).__name__}.{name}: {value:#x} does not fit into {field.size} bytes")
        super().__setattr__(name, value)

    def __repr__(self):
        fields = ((name, getattr(self, name)) for name, *_ in self._fields_ if not name.startswith("reserved"))
        shown = ((name, bytes(value).hex() if isinstance(value, ctypes.Array) else value) for name, value in fields)
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown)})"

kAbiMajor = 2  # Version of the contract: a driver refuses another major version.
kAbiMinor = 1
kPciVendorId = 0xd00d  # PCI identity (not assigned by the PCI-SIG: the device never sits on a real bus).
kPciDeviceId = 0x0001
kPciClassCode = 0x020700  # network controller, InfiniBand
kPciRevision = 1


# Configuration space: offsets of the capabilities and of the bits the model acts on.
class config:
    kCommand = 0x04  # bit 1 memory space, bit 2 bus master
    kBar0 = 0x10  # 64-bit, prefetchable
    kCapabilityPointer = 0x34
    kPcieCapability = 0x40
    kDeviceControl = 0x48  # bit 15: initiate function-level reset
    kMsixCapability = 0x80
    kMsixControl = 0x82  # bit 15 enable, bit 14 mask all
    kPowerCapability = 0x90
    kPowerControl = 0x94  # bits 1:0: 0 is D0, 3 is D3hot
    kErrorReporting = 0x100  # the extended capabilities begin
    kSerialNumber = 0x150  # EUI-64 of the port's MAC address
    kSize = 0x1000
    kCommandMemory = 0x2
    kCommandBusMaster = 0x4
    kFunctionLevelReset = 0x8000
    kMsixEnable = 0x8000
    kMsixMaskAll = 0x4000


kBarSize = 0x800000  # BAR0.
kRegisterPage = 0x000000
kMsixTable = 0x010000  # 16 bytes for each vector, little-endian, PCI layout
kMsixPba = 0x018000  # one bit for each vector, little-endian
kUarBase = 0x100000  # UAR pages, 4 KiB each
kUarPageSize = 4096
kUarPages = 1024  # page 0 belongs to the kernel's agent
kMsixVectors = 64
kDeviceMemoryBase = 0x600000  # device memory, up to its size
kMostDeviceMemory = 0x200000


# The register page. Width in bits, RO read only.
class reg:
    kMagic = 0x000  # 32 RO "RNIC"
    kAbiVersion = 0x004  # 32 RO major << 16 | minor
    kFeatures = 0x008  # 64 RO Feature bits
    kFirmwareVersion = 0x010  # 64 RO major << 32 | minor << 16 | patch
    kUarInfo = 0x018  # 32 RO number of UAR pages
    kBlueFlameSize = 0x01c  # 32 RO bytes a BlueFlame buffer
    kCommandLogEntries = 0x020  # 32 RO log2 of the number of entries of the command queue
    kStatus = 0x024  # 32 RO DeviceStatus
    kHealthSyndrome = 0x028  # 32 RO reason of kFatal: HealthSyndrome
    kCoreClockKhz = 0x02c  # 32 RO frequency of kClock
    kHealthCounter = 0x030  # 32 RO heartbeat: incremented each millisecond, unless kFatal
    kCommandQueueBase = 0x080  # 64 RW bus address of the command queue, 4 KiB aligned
    kCommandDoorbell = 0x088  # 32 WO one bit for each entry to execute
    kClock = 0x0a0  # 64 RO free-running clock, kCoreClockKhz


kMagicValue = 0x524e4943


class DeviceStatus(enum.IntEnum):
    initializing = 0
    ready = 1
    fatal = 2


class HealthSyndrome(enum.IntEnum):
    none = 0
    injected = 1  # a fault rule of the simulation
    icm_access = 2  # host memory refused the write of a context that is not a queue pair's
    event_queue_access = 3  # host memory refused an event queue entry
    command_queue_access = 4  # host memory refused the completion of a command


class feature:
    kBlueFlame = 0x1
    kRc = 0x2
    kInvalidate = 0x4  # send_with_inv and local_inv, and their packets
    kUc = 0x8
    kUd = 0x10
    kSrq = 0x20
    kMulticast = 0x40
    kWindows = 0x80  # memory windows of types 1 and 2B
    kRaw = 0x100  # raw packets: queue pairs, flows, receive-side scaling
    kXrc = 0x200
    kDeviceMemory = 0x400
    kOnDemand = 0x800  # regions whose pages the device requests from the host
    kAtomicWrite = 0x1000
    kPacing = 0x2000  # Qpc::rate_limit
    kSourceQpn = 0x4000  # Qpc::source_qpn
    kWritePadding = 0x8000  # Qpc::kPadWrites
    kRelaxedOrdering = 0x10000
    kFastRegister = 0x20000  # MptKind::fast_register and its work request


# A UAR page. A process maps only its own pages; the device refuses a doorbell whose QP or CQ names another page.
class uar:
    kSendDoorbell = 0x000  # SendDoorbell, 8 bytes
    kCqArm = 0x010  # CqArm, 8 bytes
    kEqDoorbell = 0x020  # EqDoorbell, 8 bytes; page 0 only
    kBlueFlame0 = 0x800  # a whole send WQE, at most kBlueFlameBytes
    kBlueFlame1 = 0x900  # used in turn with kBlueFlame0
    kBlueFlameBytes = 256


# A write to a bus address in the MSI window is an interrupt, as on x86: address kMsiWindow + 16 * vector, data =
# vector.
kMsiWindow = 0xfee00000
kMsiWindowSize = 0x100000


class QpState(enum.IntEnum):
    reset = 0
    init = 1
    rtr = 2
    rts = 3
    sqd = 4
    sqe = 5
    error = 6


class Transport(enum.IntEnum):
    rc = 2
    uc = 3
    ud = 4
    raw = 8
    xrc_send = 9  # requester of RC whose messages name an SRQ
    xrc_recv = 10  # responder of RC without queues


# Access rights of an MPT entry or a QP; the values are those of enum ibv_access_flags.
class access:
    kLocalWrite = 0x1
    kRemoteWrite = 0x2
    kRemoteRead = 0x4
    kRemoteAtomic = 0x8
    kWindowBind = 0x10
    kZeroBased = 0x20
    kOnDemand = 0x40  # region: pages requested from the host (ATS, PRI)
    kRelaxedOrdering = 0x100000  # region: its TLPs may pass writes


# RoCEv2 address vector (IBTA vol 1 A17).
class AddressVector(Layout):
    _fields_ = [
        ("remote_gid", u8 * 16),
        ("remote_mac", u8 * 6),
        ("sgid_index", u16),
        ("flow_label", u32),  # 20 bits
        ("traffic_class", u8),
        ("hop_limit", u8),
        ("service_level", u8),
        ("static_rate", u8),
    ]


# Queue pair context. The driver sets `fixed` at creation and the attributes by modify_qp; the device owns `progress`.
class Qpc(Layout):
    kHasSend = 0x1
    kHasReceive = 0x2
    kHasSrq = 0x4  # instead of a receive ring: RC and UD
    kBlockSelfMulticast = 0x8  # this device does not receive the QP's own multicasts
    kStripVlan = 0x10  # raw: a frame's outermost VLAN tag is moved to the CQE
    kScatterFcs = 0x20  # raw: the FCS follows the frame
    kPadWrites = 0x40  # received data is written in whole cache lines
    _fields_ = [
        ("state", u8),  # QpState
        ("transport", u8),  # Transport
        ("log_send_blocks", u8),  # log2 of the send ring's 64-byte blocks
        ("log_receive_wqes", u8),
        ("log_receive_stride", u8),  # log2 of a receive WQE's bytes, 4..9
        ("flags", u8),  # kHasSend .. kPadWrites
        ("uar_page", u16),
        ("pd", u32),
        ("pasid", u32),
        ("send_cqn", u32),
        ("receive_cqn", u32),
        ("srqn", u32),  # with kHasSrq
        ("inline_receive", u8),  # largest SEND of one packet that is received in its CQE, in bytes; 0: none
        ("reserved0", u8 * 3),
        ("send_ring", u64),  # bus addresses, in the PASID's space, 64-byte aligned
        ("receive_ring", u64),
        ("doorbell_record", u64),  # 8-byte aligned
        ("port", u8),
        ("path_mtu", u8),  # enum ibv_mtu: 1 = 256 .. 5 = 4096
        ("pkey_index", u16),
        ("qkey", u32),
        ("access_flags", u32),  # access::kRemote*
        ("remote_qpn", u32),
        ("send_psn", u32),  # initial, 24 bits
        ("receive_psn", u32),
        ("max_rd_atomic", u8),  # outstanding as requester
        ("max_dest_rd_atomic", u8),  # resources as responder
        ("min_rnr_timer", u8),  # RNR timer code, 0..31
        ("timeout", u8),  # local ACK timeout code, 0..31
        ("retry_count", u8),
        ("rnr_retry", u8),
        ("path_migration_state", u8),
        ("sqd_notify", u8),
        ("path", AddressVector),
        ("alternate_path", AddressVector),
        ("alternate_pkey_index", u16),
        ("alternate_port", u8),
        ("alternate_timeout", u8),
        ("send_consumer", u32),  # blocks retired
        ("send_next", u32),  # blocks started
        ("receive_consumer", u32),
        ("next_send_psn", u32),
        ("oldest_unacked_psn", u32),
        ("expected_psn", u32),
        ("msn", u32),  # responder's message sequence number, 24 bits
        ("retries_left", u8),
        ("rnr_retries_left", u8),
        ("draining", u8),
        ("reserved1", u8),
        ("xrcd", u32),  # xrc_recv: domain of the SRQs that the QP serves
        ("source_qpn", u32),  # UD: QPN that the datagrams carry as their source; 0: the own QPN
        ("rate_limit", u32),  # rate limit in kb/s; 0: none
        ("max_burst", u32),  # bytes that may leave in one burst; 0: the device's choice
        ("typical_packet", u16),  # bytes; 0: unknown
        ("reserved2", u16),
        ("reserved3", u8 * 48),
    ]


class Cqc(Layout):
    kIgnoreOverrun = 0x1
    kInError = 0x2  # set by the device: the CQ overran
    _fields_ = [
        ("log_entries", u8),
        ("flags", u8),  # kIgnoreOverrun, kInError
        ("uar_page", u16),
        ("pasid", u32),
        ("ring", u64),  # 64-byte aligned
        ("doorbell_record", u64),  # CqDoorbellRecord
        ("eqn", u32),  # EQ for completion events
        ("producer", u32),
        ("armed", u32),  # 0 no, 1 next, 2 solicited
        ("consumer", u32),  # last consumer that the device knows
        ("solicited", u32),  # one past the last solicited CQE
        ("moderation_count", u16),  # an armed CQ's event waits for this number of CQEs,
        ("moderation_period", u16),  # or this number of microseconds after the first of them; either 0: no waiting
        ("withheld", u32),  # CQEs for which an event is delayed; owned by the device
        ("reserved", u32 * 3),
    ]


# Shared receive queue context.
class Srqc(Layout):
    kInError = 0x1
    kXrc = 0x2  # for xrc_recv QPs of its domain
    _fields_ = [
        ("log_entries", u8),
        ("log_stride", u8),  # log2 of an entry's bytes, its SrqNextSegment included, 5..10
        ("flags", u8),  # kXrc, kInError
        ("reserved0", u8),
        ("pasid", u32),
        ("pd", u32),  # PD of the entries' keys; a QP may have another PD
        ("limit", u32),  # srq_limit is raised once when fewer posted entries are left; 0: none
        ("ring", u64),  # bus addresses, 64-byte aligned; 8
        ("doorbell_record", u64),  # QpDoorbellRecord::receive_producer
        ("head", u32),  # index of the next entry
        ("taken", u32),  # number of entries taken so far, modulo 2^16
        ("xrcd", u32),
        ("cqn", u32),  # CQ for completions
        ("reserved1", u32 * 4),
    ]


class Eqc(Layout):
    _fields_ = [
        ("log_entries", u8),
        ("reserved0", u8),
        ("msix_vector", u16),
        ("pasid", u32),
        ("ring", u64),
        ("producer", u32),
        ("consumer", u32),
        ("reserved1", u32 * 10),
    ]


class MptKind(enum.IntEnum):
    region = 0
    window1 = 1  # type 1: any QP of the PD may bind and use it
    window2 = 2  # type 2B: bound to one QP, which alone may use it
    null = 3  # reads zeros, discards writes
    device_memory = 4  # memory on the device: `bus_address` is an offset in the device's memory
    fast_register = 5  # free until a fast_register gives it pages: `length` is the largest size


# Memory protection table entry of a region or window. A region is one range of bus addresses, or consists of pages of
# one size whose bus addresses are in the MTT from `first_page` on. Key = index << 8 | tag.
class Mpt(Layout):
    _fields_ = [
        ("key", u32),
        ("pd", u32),
        ("pasid", u32),
        ("access_flags", u32),
        ("start", u64),  # first address a work request may name (IOVA)
        ("length", u64),
        ("bus_address", u64),  # position of `start`: on the bus; with pages, in the first page; window: in its region
        ("valid", u32),  # 1; 0: free, a window that is not bound, or a region without pages yet
        ("log_page", u8),  # log2 of the page size, 12..30; 0: no pages
        ("kind", u8),  # MptKind
        ("reserved0", u8 * 2),
        ("first_page", u32),  # index in the MTT
        ("region", u32),  # window: index of its region
        ("qpn", u32),  # window2: QP that it is bound to
        ("windows", u32),  # region: number of windows bound to it; owned by the device
    ]


# Memory translation table entry: bus address of a page. The kernel writes it into the ICM that it has lent, before it
# creates the region.
class Mtt(Layout):
    _fields_ = [
        ("page", u64),
    ]


# ICM tables: before the driver creates an object, it lends memory for the object's index range by map_icm.
class IcmTable(enum.IntEnum):
    qpc = 0
    cqc = 1
    eqc = 2
    mpt = 3
    mtt = 4
    srqc = 5


kIcmEntryBytes = (256, 64, 64, 64, 8, 64)
# Send queue: a ring of 64-byte basic blocks. A WQE is a control segment, followed by the segments that its opcode needs
# (datagram, remote address, bind, register, data or inline), and occupies whole blocks. The producer counts blocks.
kSendBlock = 64
kMaxWqeBlocks = 16


class SendOpcode(enum.IntEnum):
    nop = 0
    send_with_inv = 1
    write = 8
    write_with_imm = 9
    send = 10
    send_with_imm = 11
    tso = 14  # raw packet: data split into frames, each with the given headers
    atomic_write = 15  # 8 aligned bytes, written atomically (IBTA 1.5)
    read = 16
    compare_swap = 17
    fetch_add = 18
    bind_window = 24
    fast_register = 25  # gives pages and a key to a region of MptKind::fast_register
    local_inv = 27


class ControlSegment(Layout):
    kSignaled = 0x1
    kSolicited = 0x2
    kFence = 0x4
    kChecksums = 0x8  # raw packet: the device fills in checksums of IP, TCP and UDP
    _fields_ = [
        ("reserved0", u16),
        ("reserved1", u8),
        ("opcode", u8),  # SendOpcode
        ("wqe_index", u16),  # index of this WQE's first block, modulo 2^16; must equal the consumer's
        ("reserved2", u8),
        ("segments", u8),  # length of the WQE in 16-byte units, this segment included
        ("qpn_flags", u32),  # qpn << 8 | kSignaled | kSolicited | kFence | kChecksums
        ("immediate", u32),  # immediate data, or the rkey to invalidate
    ]


class RemoteAddressSegment(Layout):
    _fields_ = [
        ("address", u64),
        ("rkey", u32),
        ("reserved", u32),
    ]


# First segment of an XRC QP's WQE: SRQ whose receive the message takes.
class XrcSegment(Layout):
    _fields_ = [
        ("srqn", u32),
        ("reserved", u32 * 3),
    ]


# First segment of a UD QP's WQE: destination of the message.
class DatagramSegment(Layout):
    _fields_ = [
        ("path", AddressVector),
        ("remote_qpn", u32),  # kMulticastQpn: every QP of the multicast group in `path`
        ("qkey", u32),  # if its top bit is set, the QP's own Q_Key is sent
        ("reserved", u32 * 2),
    ]


kMulticastQpn = 0xffffff
kOwnQkey = 0x80000000


# Segment of tso, followed by header_bytes of headers, padded to 16, and data segments.
class TsoSegment(Layout):
    _fields_ = [
        ("mss", u16),  # bytes of data in one frame
        ("header_bytes", u16),  # Ethernet, IP and TCP or UDP
        ("reserved", u32 * 3),
    ]


# Segment of bind_window.
class BindSegment(Layout):
    _fields_ = [
        ("window", u32),  # present rkey of the window, whose index is used
        ("rkey", u32),  # new rkey: same index, another tag
        ("region", u32),  # lkey of the region
        ("access_flags", u32),  # access::kRemote*, kZeroBased
        ("address", u64),
        ("length", u64),  # 0: type 1, unbinds the window
    ]


# Segment of fast_register. The pages' bus addresses are in the region's range of the MTT already.
class RegisterSegment(Layout):
    _fields_ = [
        ("key", u32),  # new key: the region's index, any tag
        ("access_flags", u32),  # access::kLocalWrite, kRemote*, kRelaxedOrdering
        ("start", u64),  # first address a work request may name (IOVA)
        ("length", u64),
        ("first_byte", u32),  # offset of `start` in the first page
        ("log_page", u8),  # log2 of the page size, 12..30
        ("reserved0", u8 * 3),
        ("reserved1", u32 * 4),
    ]


class AtomicSegment(Layout):
    _fields_ = [
        ("swap_add", u64),
        ("compare", u64),
    ]


class DataSegment(Layout):
    _fields_ = [
        ("byte_count", u32),  # at most 2^31 - 1; 0 is an empty segment
        ("lkey", u32),
        ("address", u64),
    ]


# Inline data: this word, then byte_count bytes, padded to 16.
class InlineHeader(Layout):
    kInline = 0x80000000
    _fields_ = [
        ("byte_count", u32),  # kInline | bytes
    ]


# Receive queue: entries of 2^log_stride bytes, each a list of DataSegments ended by the stride or by kInvalidLkey.
kInvalidLkey = 0x00000100


# Shared receive queue: entries of 2^log_stride bytes in a linked list, because they are freed in any order. Every entry
# names the entry that will be posted after it, so the driver always keeps one entry unposted. Entry 0 is posted first.
class SrqNextSegment(Layout):
    _fields_ = [
        ("next", u16),  # index of the next entry
        ("reserved0", u16),
        ("reserved1", u32 * 3),
    ]


# Doorbell record: in host memory, at Qpc::doorbell_record; the driver writes it before it rings the doorbell.
class QpDoorbellRecord(Layout):
    _fields_ = [
        ("receive_producer", u32),  # WQEs posted so far, modulo 2^16; of an SRQ: its entries
        ("send_producer", u32),  # blocks posted so far, modulo 2^16
    ]


class CqDoorbellRecord(Layout):
    _fields_ = [
        ("consumer", u32),  # CQEs consumed so far, modulo 2^24
        ("reserved", u32),
    ]


# Doorbells (MMIO, UAR page).
class SendDoorbell(Layout):
    _fields_ = [
        ("qpn", u32),
        ("producer", u32),  # = QpDoorbellRecord::send_producer
    ]


class CqArm(Layout):
    kSolicitedOnly = 0x1
    _fields_ = [
        ("cqn_flags", u32),  # cqn << 8 | kSolicitedOnly
        ("consumer", u32),  # CQEs consumed, modulo 2^24: if a later CQE is already written, the event fires at once
    ]


class EqDoorbell(Layout):
    _fields_ = [
        ("eqn", u32),
        ("consumer", u32),  # EQEs consumed so far, modulo 2^24; also arms the EQ's MSI-X vector
    ]


# Completion queue entry. The driver initialises every entry's owner to kInitialOwner. The entry at position n (counted
# without limit) belongs to the driver when owner bit 0 == (n >> log_entries) & 1 and the opcode is not `invalid`; the
# device writes the owner byte last.
class CqeOpcode(enum.IntEnum):
    requester = 0
    receive_write_with_imm = 1
    receive_send = 2
    receive_send_with_imm = 3
    receive_send_with_inv = 4
    requester_error = 13
    responder_error = 14
    invalid = 15


# The values are those of enum ibv_wc_status.
class CqeSyndrome(enum.IntEnum):
    success = 0
    local_length_error = 1
    local_qp_operation_error = 2
    local_protection_error = 4
    flushed_error = 5
    memory_window_bind_error = 6
    bad_response_error = 7
    local_access_error = 8
    remote_invalid_request_error = 9
    remote_access_error = 10
    remote_operation_error = 11
    transport_retry_exceeded = 12
    rnr_retry_exceeded = 13
    remote_aborted_error = 16
    fatal_error = 18
    general_error = 21


class Cqe(Layout):
    kInlineData = 0x1
    kGrh = 0x2  # UD: 40 bytes of GRH precede the payload and count in byte_count
    kIpv4 = 0x4  # with kGrh: the GRH contains an IPv4 header, else an IPv6 header
    kChecksumsRight = 0x8  # raw packet: checksums of IP, and TCP or UDP, are right
    kFlowTag = 0x10  # raw packet: its flow has a tag
    kVlan = 0x20
    kXrc = 0x40  # a receive of an XRC SRQ
    kInitialOwner = 0xf1
    _fields_ = [
        ("immediate", u32),  # immediate data or the invalidated rkey; raw packet: tag of its flow
        ("byte_count", u32),
        ("timestamp", u64),  # device clock
        ("qpn", u32),  # the local QP
        ("wqe_counter", u16),  # requester: wqe_index; responder: index of the receive WQE, or of the SRQ's entry
        ("send_opcode", u8),  # SendOpcode; requester: opcode of the completed WQE
        ("flags", u8),  # kInlineData .. kXrc
        ("syndrome", u8),  # CqeSyndrome
        ("vendor_error", u8),
        ("vlan", u16),  # with kVlan: priority 3 bits, DEI 1, VLAN 12
        ("inline_data", u8 * 32),  # with kInlineData: byte_count bytes of the message; raw packet: RawFacts
        ("source_qpn", u8 * 3),  # UD: QPN of the sender; with kXrc: number of the SRQ; 24 bits big-endian
        ("opcode_owner", u8),  # CqeOpcode << 4 | owner bit
    ]


class RawFacts(Layout):
    _fields_ = [
        ("rss_hash", u32),  # 0: no hash was computed
    ]


# Event queue entry. Ownership as for a CQE, by owner bit 0.
class EventType(enum.IntEnum):
    completion = 0  # number = cqn
    communication_established = 1
    send_queue_drained = 2
    last_wqe_reached = 3
    srq_limit = 4  # number = srqn
    cq_error = 16  # number = cqn
    qp_fatal = 17
    qp_request_error = 18
    qp_access_error = 19
    srq_error = 20  # number = srqn
    port_active = 32  # number = port
    port_error = 33
    device_fatal = 34  # number = 0


class Eqe(Layout):
    kInitialOwner = 0x01
    _fields_ = [
        ("type", u8),  # EventType
        ("reserved0", u8 * 3),
        ("number", u32),  # subject of the event: cqn, qpn, srqn or port
        ("reserved1", u32 * 5),
        ("reserved2", u8 * 3),
        ("owner", u8),
    ]


kCommandLogEntries = 5
kMailboxBytes = 4096  # the largest input or output


class CommandStatus(enum.IntEnum):
    ok = 0
    internal_error = 1
    bad_opcode = 2
    bad_parameter = 3  # EINVAL
    bad_resource = 4  # no such object: ENOENT
    resource_busy = 5  # EBUSY
    exceeds_limit = 6  # ENOMEM
    bad_state = 7  # not allowed in this state: EINVAL
    bad_input_length = 8
    bad_output_length = 9
    not_supported = 10  # EOPNOTSUPP
    bad_mailbox = 11  # the mailbox could not be read or written


class CommandEntry(Layout):
    _fields_ = [
        ("owner", u8),  # 1: the entry belongs to the device
        ("status", u8),  # CommandStatus
        ("token", u16),  # value of the driver, returned unchanged
        ("input_bytes", u32),
        ("input", u64),  # bus address in PASID 0
        ("output", u64),
        ("output_bytes", u32),
        ("reserved", u32 * 9),
    ]


class CommandOpcode(enum.IntEnum):
    query_device = 256  # out DeviceCapabilities
    initialize = 257  # after map_icm of the EQ table: the device becomes ready
    teardown = 258  # destroys every object, and returns all ICM
    map_icm = 272  # in MapIcm
    unmap_icm = 273  # in MapIcm, memory ignored
    query_port = 288  # object = port; out PortAttributes
    set_gid = 289  # object = port, in SetGid
    query_port_counters = 290  # object = port; out PortCounters
    create_eq = 512  # in CreateEq
    destroy_eq = 513
    create_cq = 528  # in CreateCq
    destroy_cq = 529  # resource_busy while a QP uses it
    query_cq = 530  # out QueryCq
    modify_cq = 531  # in ModifyCq
    resize_cq = 532  # in ResizeCq, out ResizedCq
    create_mpt = 544  # in CreateMpt; object = index
    destroy_mpt = 545  # resource_busy while a window is bound to it
    query_mpt = 546  # out QueryMpt
    modify_mpt = 547  # in CreateMpt: replaces a region that has no windows
    create_qp = 560  # in CreateQp; object = qpn
    destroy_qp = 561
    modify_qp = 562  # in ModifyQp
    query_qp = 563  # out QueryQp
    create_srq = 576  # in CreateSrq; object = srqn
    destroy_srq = 577  # resource_busy while a QP uses it
    query_srq = 578  # out QuerySrq
    modify_srq = 579  # in ModifySrq
    attach_multicast = 592  # object = qpn, in MulticastGroup: a UD QP receives the group's packets
    detach_multicast = 593  # object = qpn, in MulticastGroup
    create_rss = 608  # in CreateRss; object = a number in the QPs' range that no QP has, by which flows name it
    destroy_rss = 609  # resource_busy while a flow uses it
    create_flow = 624  # in CreateFlow; object = number
    destroy_flow = 625
    create_counter = 640  # object = number
    destroy_counter = 641  # resource_busy while a flow uses it
    query_counter = 642  # out QueryCounter


# Begins every input mailbox.
class CommandHeader(Layout):
    _fields_ = [
        ("opcode", u16),
        ("modifier", u16),
        ("object", u32),  # number of the object, chosen by the driver among those whose ICM is mapped
        ("reserved", u32 * 2),
    ]


# Begins every output mailbox. `syndrome` names the check that refused the command (docs/device.md).
class CommandResult(Layout):
    _fields_ = [
        ("status", u8),  # CommandStatus
        ("reserved0", u8 * 3),
        ("syndrome", u32),
        ("object", u32),
        ("reserved1", u32),
    ]


class MapIcm(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("table", u32),  # IcmTable
        ("first_index", u32),
        ("count", u32),
        ("reserved", u32),
        ("memory", u64),  # bus address in PASID 0, of count x kIcmEntryBytes bytes
    ]


class CreateEq(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("context", Eqc),
    ]


class CreateCq(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("context", Cqc),
    ]


class QueryCq(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("context", Cqc),
    ]


class ModifyCq(Layout):
    _fields_ = [
        ("header", CommandHeader),  # object = cqn
        ("moderation_count", u16),
        ("moderation_period", u16),  # microseconds
        ("reserved", u32 * 3),
    ]


# Moves a CQ to another ring. The driver must copy the entries that the device has written and the driver has not
# consumed.
class ResizeCq(Layout):
    _fields_ = [
        ("header", CommandHeader),  # object = cqn
        ("ring", u64),
        ("log_entries", u8),
        ("reserved", u8 * 7),
    ]


class ResizedCq(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("producer", u32),  # position of the first entry in the new ring
        ("reserved", u32 * 3),
    ]


class CreateMpt(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("context", Mpt),
    ]


class QueryMpt(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("context", Mpt),
    ]


class CreateQp(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("context", Qpc),  # only its `fixed` part is used
    ]


class QueryQp(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("context", Qpc),
    ]


class CreateSrq(Layout):
    _fields_ = [
        ("header", CommandHeader),
        ("context", Srqc),
    ]


class QuerySrq(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("context", Srqc),
    ]


class ModifySrq(Layout):
    kLimit = 0x1
    kRing = 0x2
    _fields_ = [
        ("header", CommandHeader),  # object = srqn
        ("attributes", u32),  # kLimit, kRing
        ("limit", u32),
        ("ring", u64),  # a larger ring, whose first entries are those of the old one
        ("log_entries", u8),
        ("reserved", u8 * 7),
    ]


class MulticastGroup(Layout):
    _fields_ = [
        ("header", CommandHeader),  # object = qpn
        ("gid", u8 * 16),
    ]


# Receive-side scaling: selects the raw packet QP that receives a frame.
class CreateRss(Layout):
    kMostLogQueues = 9
    _fields_ = [
        ("header", CommandHeader),
        ("fields", u32),  # fields of the frame for the hash: enum ibv_rx_hash_fields
        ("log_queues", u8),
        ("reserved", u8 * 3),
        ("key", u8 * 40),  # Toeplitz
        ("queues", u32 * 512),  # qpns, 2^log_queues; indexed by the last bits of the hash
    ]


# A frame that meets all conditions of a flow goes to the flow's raw packet QP, or to its receive-side scaling.
class FlowHeader(enum.IntEnum):
    ethernet = 0  # destination 6, source 6, EtherType after the VLAN tags 2, outermost VLAN tag 2
    ipv4 = 1  # source 4, destination 4, protocol, TOS, TTL, flags (1 more fragments, 2 do not fragment)
    ipv6 = 2  # source 16, destination 16, flow label 4, protocol, traffic class, hop limit
    esp = 3  # SPI 4, sequence number 4
    tcp = 4  # destination port 2, source port 2
    udp = 5  # destination port 2, source port 2
    vxlan = 6  # VNI 4
    gre = 7  # flags and version 2, protocol 2, key 4
    mpls = 8  # the outermost label's word 4


class FlowCondition(Layout):
    _fields_ = [
        ("header", u8),  # FlowHeader
        ("inner", u8),  # 1: the header inside a tunnel
        ("reserved", u8 * 6),
        ("value", u8 * 40),
        ("mask", u8 * 40),  # bits of the fields that must equal `value`
    ]


class FlowKind(enum.IntEnum):
    normal = 0
    all_default = 1  # frames that no normal flow takes
    multicast_default = 2  # of these frames, the multicast frames
    sniffer = 3  # a copy of all frames


class CreateFlow(Layout):
    kDrop = 0x1
    kTag = 0x2
    kCount = 0x4
    kPassOn = 0x8  # the flow gets a copy: later flows get the frame, too
    kMostConditions = 16
    _fields_ = [
        ("header", CommandHeader),
        ("qpn", u32),  # or the number of a create_rss
        ("priority", u16),  # the lowest value is first
        ("kind", u8),  # FlowKind
        ("flags", u8),
        ("tag", u32),  # with kTag: reported in the CQE
        ("counter", u32),  # with kCount
        ("conditions_count", u8),
        ("reserved", u8 * 7),
        ("conditions", FlowCondition * 16),
    ]


class QueryCounter(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("packets", u64),
        ("bytes", u64),
    ]


# Attributes that a modify_qp carries; the values are those of enum ibv_qp_attr_mask.
class qp_attr:
    kState = 0x1
    kCurrentState = 0x2
    kSqdNotify = 0x4
    kAccessFlags = 0x8
    kPkeyIndex = 0x10
    kPort = 0x20
    kQkey = 0x40
    kPath = 0x80
    kPathMtu = 0x100
    kTimeout = 0x200
    kRetryCount = 0x400
    kRnrRetry = 0x800
    kReceivePsn = 0x1000
    kMaxRdAtomic = 0x2000
    kAlternatePath = 0x4000
    kMinRnrTimer = 0x8000
    kSendPsn = 0x10000
    kMaxDestRdAtomic = 0x20000
    kPathMigrationState = 0x40000
    kCapabilities = 0x80000
    kRemoteQpn = 0x100000
    kRateLimit = 0x2000000  # of raw packets, with max_burst and typical_packet
    kStripVlan = 0x4000000  # extension of this device: Qpc::kStripVlan of raw packets


class ModifyQp(Layout):
    _fields_ = [
        ("header", CommandHeader),  # object = qpn
        ("attributes", u32),  # qp_attr bits
        ("current_state", u8),  # with kCurrentState
        ("reserved", u8 * 3),
        ("reserved1", u32 * 2),
        ("context", Qpc),  # the named attributes, and `state` with kState
    ]


class SetGid(Layout):
    _fields_ = [
        ("header", CommandHeader),  # object = port
        ("index", u16),
        ("roce_version", u8),
        ("valid", u8),  # 0 empties the entry
        ("mac", u8 * 6),
        ("vlan", u16),  # 1 .. 4094: frames have a tag of this VLAN, with the service level as PCP; 0: no tag
        ("reserved", u8 * 4),
        ("gid", u8 * 16),
    ]


class DeviceCapabilities(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("features", u64),  # feature bits
        ("firmware_version", u64),
        ("max_mr_size", u64),
        ("vendor_part_id", u32),
        ("max_qp", u32),
        ("max_qp_wr", u32),  # receive WQEs, or send blocks
        ("max_send_sge", u32),
        ("max_receive_sge", u32),
        ("max_cq", u32),
        ("max_cqe", u32),
        ("max_mr", u32),
        ("max_pd", u32),
        ("max_inline", u32),  # largest number of inline bytes of a WQE
        ("max_rd_atomic", u32),  # for one QP, as requester and as responder
        ("local_ca_ack_delay", u32),  # code: 4.096 us x 2^n
        ("max_eq", u32),
        ("ports", u32),
        ("core_clock_khz", u32),
        ("atomic", u32),  # enum ibv_atomic_cap
        ("max_srq", u32),
        ("max_ah", u32),
        ("max_mtt", u32),  # pages of all memory regions
        ("max_inline_receive", u32),  # bytes of a message that its CQE may hold
        ("max_cq_moderation_count", u16),
        ("max_cq_moderation_period", u16),  # microseconds
        ("max_srq_wr", u32),
        ("max_srq_sge", u32),
        ("max_multicast_groups", u32),
        ("max_group_qps", u32),  # QPs attached to one group
        ("max_attached_qps", u32),  # attachments to all groups together
        ("max_frame", u32),  # bytes of a raw packet, without FCS
        ("max_flows", u32),
        ("max_flow_counters", u32),
        ("max_rss", u32),  # contexts of receive-side scaling
        ("max_rss_queues", u32),  # queues of one such context
        ("max_tso", u32),  # bytes of data in a tso
        ("max_tso_header", u32),
        ("device_memory", u32),  # bytes
        ("min_rate_limit", u32),  # kb/s, for one QP
        ("max_rate_limit", u32),
    ]


class PortAttributes(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("state", u8),  # enum ibv_port_state
        ("max_mtu", u8),  # enum ibv_mtu
        ("active_mtu", u8),
        ("physical_state", u8),
        ("active_speed", u8),  # as ibv_port_attr
        ("active_width", u8),
        ("gid_table_length", u16),
        ("max_message", u32),
        ("pkey_table_length", u16),
        ("mac", u8 * 6),
        ("pkey_violations", u16),  # packets with a P_Key that is not in the table
        ("qkey_violations", u16),  # datagrams with another Q_Key than the QP's
        ("reserved", u32 * 2),
    ]


# Counters of port and transport since the device was powered on; a function reset changes no counter.
class PortCounters(Layout):
    _fields_ = [
        ("result", CommandResult),
        ("transmitted_packets", u64),  # RoCE packets of all transports
        ("transmitted_bytes", u64),  # bytes of their frames, without FCS
        ("transmitted_to_groups", u64),  # packets that went to a multicast group
        ("received_packets", u64),  # the same for valid received packets
        ("received_bytes", u64),
        ("received_from_groups", u64),
        ("transmit_discards", u64),  # packets whose source GID entry was empty
        ("receive_errors", u64),  # frames that were not valid RoCE packets
        ("rx_icrc_encapsulated", u64),
        ("rx_write_requests", u64),
        ("rx_read_requests", u64),
        ("rx_atomic_requests", u64),
        ("out_of_buffer", u64),
        ("out_of_sequence", u64),
        ("duplicate_request", u64),
        ("rnr_nak_retry_err", u64),
        ("packet_seq_err", u64),
        ("implied_nak_seq_err", u64),
        ("local_ack_timeout_err", u64),
        ("roce_adp_retrans", u64),
        ("resp_local_length_error", u64),
        ("resp_cqe_error", u64),
        ("resp_cqe_flush_error", u64),
        ("resp_remote_access_errors", u64),
        ("req_cqe_error", u64),
        ("req_cqe_flush_error", u64),
        ("req_remote_invalid_request", u64),
        ("req_remote_access_errors", u64),
        ("req_transport_retries_exceeded", u64),
        ("req_rnr_retries_exceeded", u64),
        ("roce_slow_restart_cnps", u64),
        ("np_cnp_sent", u64),
        ("np_ecn_marked_roce_packets", u64),
        ("rp_cnp_handled", u64),
        ("rp_cnp_ignored", u64),
    ]


# Offset: name, bits, access.
REGISTERS = {
    reg.kMagic: ("kMagic", 32, "RO"),
    reg.kAbiVersion: ("kAbiVersion", 32, "RO"),
    reg.kFeatures: ("kFeatures", 64, "RO"),
    reg.kFirmwareVersion: ("kFirmwareVersion", 64, "RO"),
    reg.kUarInfo: ("kUarInfo", 32, "RO"),
    reg.kBlueFlameSize: ("kBlueFlameSize", 32, "RO"),
    reg.kCommandLogEntries: ("kCommandLogEntries", 32, "RO"),
    reg.kStatus: ("kStatus", 32, "RO"),
    reg.kHealthSyndrome: ("kHealthSyndrome", 32, "RO"),
    reg.kCoreClockKhz: ("kCoreClockKhz", 32, "RO"),
    reg.kHealthCounter: ("kHealthCounter", 32, "RO"),
    reg.kCommandQueueBase: ("kCommandQueueBase", 64, "RW"),
    reg.kCommandDoorbell: ("kCommandDoorbell", 32, "WO"),
    reg.kClock: ("kClock", 64, "RO"),
}
