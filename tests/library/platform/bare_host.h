// SPDX-License-Identifier: Apache-2.0
// A host without an operating system: memory, a CPU of one thread, and a minimal driver for the NIC in the host's slot
// (docs/device.md, Bring-up).
#pragma once

#include <cstring>
#include <systemc>
#include <vector>

#include "model/abi/command.h"
#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "model/device/device.h"

namespace bare {

namespace abi = rnicsim::abi;

class BareHost : public sc_core::sc_module {
 public:
  static constexpr std::uint32_t kQpn = 1, kCqn = 1, kPd = 1, kKey = 1 << 8, kUarPage = 1, kVector = 3;
  static constexpr std::uint64_t kBuffer = 0x40000, kBufferBytes = 0x10000;

  BareHost(sc_core::sc_module_name name, std::uint8_t number) : sc_module(name), number_(number) {
    memory.register_b_transport(this, &BareHost::serve);
    memory.register_transport_dbg(this, &BareHost::peek);
  }

  // Bind these sockets to the NIC's sockets of the same kind.
  tlm_utils::simple_initiator_socket<BareHost> config{"config"};
  tlm_utils::simple_initiator_socket<BareHost> bar{"bar"};
  tlm_utils::simple_target_socket<BareHost> memory{"memory"};

  std::vector<unsigned char> bytes = std::vector<unsigned char>(1 << 20);
  sc_core::sc_event interrupted;  // notified at each interrupt with vector kVector
  unsigned interrupts = 0;
  sc_core::sc_time memory_time;  // time that an access waits; 0: the NIC's parameters alone give the time
  bool memory_busy = false;      // an access is waiting

  // Takes the device from reset to a QP in INIT with CQ, EQ and memory region.
  void bring_up() {
    config_write(abi::config::kCommand, abi::config::kCommandMemory | abi::config::kCommandBusMaster);
    require(bar_read(abi::reg::kMagic) == abi::kMagicValue, "this is no such device");
    const std::uint32_t entry[] = {abi::kMsiWindow, 0, kVector, 0 /* not masked */};
    for (unsigned word = 0; word < 4; ++word)  // little-endian, as PCI requires
      bar_write(abi::kMsixTable + 16 * kVector + 4 * word, __builtin_bswap32(entry[word]));
    config_write(abi::config::kMsixControl, abi::config::kMsixEnable);
    bar_write(abi::reg::kCommandQueueBase, std::uint64_t{kCommands});
    for (std::uint32_t table = 0; table < 4; ++table) {
      abi::MapIcm map;
      map.table = table;
      map.count = 8;
      map.memory = kIcm + 0x1000 * table;
      command(abi::CommandOpcode::map_icm, 0, map);
    }
    command(abi::CommandOpcode::initialize, 0, abi::MapIcm());
    std::fill_n(&bytes[kEqes], 16 * sizeof(abi::Eqe), abi::Eqe::kInitialOwner);
    abi::CreateEq eq;
    eq.context.log_entries = 4;
    eq.context.msix_vector = kVector;
    eq.context.ring = kEqes;
    command(abi::CommandOpcode::create_eq, 0, eq);
    bar_write(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{0});
    abi::SetGid gid;
    gid.valid = 1;
    gid.mac[5] = number_;
    put_gid(gid.gid, number_);
    command(abi::CommandOpcode::set_gid, 1, gid);
    abi::CreateMpt region;
    region.context.key = kKey;
    region.context.pd = kPd;
    region.context.access_flags = abi::access::kLocalWrite | abi::access::kRemoteWrite;
    region.context.start = region.context.bus_address = kBuffer;
    region.context.length = kBufferBytes;
    command(abi::CommandOpcode::create_mpt, kKey >> 8, region);
    std::fill_n(&bytes[kCqes], 16 * sizeof(abi::Cqe), abi::Cqe::kInitialOwner);
    abi::CreateCq cq;
    cq.context.log_entries = 4;
    cq.context.uar_page = kUarPage;
    cq.context.ring = kCqes;
    cq.context.doorbell_record = kCqRecord;
    command(abi::CommandOpcode::create_cq, kCqn, cq);
    abi::CreateQp qp;
    qp.context.log_send_blocks = 4;
    qp.context.flags = abi::Qpc::kHasSend;
    qp.context.uar_page = kUarPage;
    qp.context.pd = kPd;
    qp.context.send_cqn = qp.context.receive_cqn = kCqn;
    qp.context.send_ring = kSendRing;
    qp.context.doorbell_record = kQpRecord;
    command(abi::CommandOpcode::create_qp, kQpn, qp);
  }

  void connect(const BareHost& peer) {
    using namespace abi::qp_attr;
    abi::ModifyQp modify;
    abi::Qpc& to = modify.context;
    to.port = 1;
    to.access_flags = abi::access::kRemoteWrite;
    to.path_mtu = 3;  // enum ibv_mtu: 1024 bytes
    to.remote_qpn = kQpn;
    to.max_rd_atomic = to.max_dest_rd_atomic = 1;
    to.timeout = 14;
    to.retry_count = to.rnr_retry = 7;
    put_gid(to.path.remote_gid, peer.number_);
    to.path.remote_mac[5] = peer.number_;
    const std::pair<abi::QpState, std::uint32_t> steps[] = {
        {abi::QpState::init, kPkeyIndex | kPort | kAccessFlags},
        {abi::QpState::rtr, kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer},
        {abi::QpState::rts, kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic}};
    for (const auto& [state, attributes] : steps) {
      to.state = state;
      modify.attributes = attributes | kState;
      command(abi::CommandOpcode::modify_qp, kQpn, modify);
    }
  }

  // Writes the whole buffer to the peer's buffer, and waits for the completion's interrupt.
  abi::Cqe write_buffer() {
    abi::ControlSegment control;
    control.opcode = abi::SendOpcode::write;
    control.segments = 3;
    control.qpn_flags = kQpn << 8 | abi::ControlSegment::kSignaled;
    abi::RemoteAddressSegment remote;
    remote.address = kBuffer;
    remote.rkey = kKey;
    abi::DataSegment data;
    data.byte_count = kBufferBytes;
    data.lkey = kKey;
    data.address = kBuffer;
    put(kSendRing, control);
    put(kSendRing + 16, remote);
    put(kSendRing + 32, data);
    abi::QpDoorbellRecord record;
    record.send_producer = 1;
    put(kQpRecord, record);
    const std::uint64_t page = abi::kUarBase + kUarPage * abi::kUarPageSize;
    bar_write(page + abi::uar::kCqArm, std::uint64_t{kCqn << 8} << 32);
    bar_write(page + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1);
    wait(sc_core::sc_time(1, sc_core::SC_MS), interrupted);
    return get<abi::Cqe>(kCqes);
  }

  std::uint32_t bar_read(std::uint64_t offset) {
    abi::Be32 data;
    access(bar, tlm::TLM_READ_COMMAND, offset, &data, sizeof data);
    return data;
  }

 private:
  static constexpr std::uint64_t kCommands = 0x1000, kInput = 0x2000, kOutput = 0x3000, kEqes = 0x4000, kCqes = 0x5000,
                                 kSendRing = 0x6000, kQpRecord = 0x7000, kCqRecord = 0x7040, kIcm = 0x8000;

  static void require(bool holds, const char* what) {
    if (!holds) SC_REPORT_FATAL("bare host", what);
  }
  static void put_gid(std::uint8_t (&gid)[16], std::uint8_t number) {
    const std::uint8_t ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, number};  // ::ffff:10.0.0.n
    std::copy_n(ipv4, 16, gid);
  }
  template <class T>
  void put(std::uint64_t address, const T& value) {
    std::memcpy(&bytes[address], &value, sizeof value);
  }
  template <class T>
  T get(std::uint64_t address) const {
    T value;
    std::memcpy(&value, &bytes[address], sizeof value);
    return value;
  }

  // --- Requests of the device: memory (one address space for all PASIDs) and interrupts.
  void serve(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
    const std::uint64_t address = request.get_address();
    const std::uint64_t size = request.get_data_length();
    if (memory_time != sc_core::SC_ZERO_TIME) {
      memory_busy = true;
      wait(memory_time);
      memory_busy = false;
    }
    request.set_response_status(tlm::TLM_OK_RESPONSE);
    if (request.is_write() && address == abi::kMsiWindow) {
      ++interrupts;
      interrupted.notify();
    } else if (address >= bytes.size() || size > bytes.size() - address) {
      request.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    } else if (request.is_write()) {
      std::memcpy(&bytes[address], request.get_data_ptr(), size);
    } else if (request.is_read()) {
      std::memcpy(request.get_data_ptr(), &bytes[address], size);
    } else {
      request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);  // no address translation (ATS)
    }
  }

  // Debug transport, used by the driver check: reads memory without side effects.
  unsigned peek(tlm::tlm_generic_payload& request) {
    const std::uint64_t address = request.get_address();
    const unsigned size = request.get_data_length();
    if (!request.is_read() || address >= bytes.size() || size > bytes.size() - address) return 0;
    std::memcpy(request.get_data_ptr(), &bytes[address], size);
    return size;
  }

  // --- Requests of the CPU.
  template <class Socket>
  void access(Socket& socket, tlm::tlm_command command, std::uint64_t address, void* data, unsigned size) {
    tlm::tlm_generic_payload request;
    request.set_command(command);
    request.set_address(address);
    request.set_data_ptr(static_cast<unsigned char*>(data));
    request.set_data_length(size);
    request.set_streaming_width(size);
    sc_core::sc_time delay(200, sc_core::SC_NS);  // from the CPU to the device
    socket->b_transport(request, delay);
    require(request.is_response_ok(), "the device refuses a request");
  }
  void config_write(std::uint64_t offset, std::uint16_t value) {
    access(config, tlm::TLM_WRITE_COMMAND, offset, &value, sizeof value);
  }
  template <std::unsigned_integral T>
  void bar_write(std::uint64_t offset, T value) {
    abi::BigEndian<T> data = value;
    access(bar, tlm::TLM_WRITE_COMMAND, offset, &data, sizeof data);
  }
  template <class Mailbox>
  void command(abi::CommandOpcode opcode, std::uint32_t object, Mailbox mailbox) {
    mailbox.header.opcode = static_cast<std::uint16_t>(opcode);
    mailbox.header.object = object;
    put(kInput, mailbox);
    abi::CommandEntry entry;
    entry.owner = 1;
    entry.input_bytes = opcode == abi::CommandOpcode::initialize ? sizeof mailbox.header : sizeof mailbox;
    entry.input = kInput;
    entry.output = kOutput;
    entry.output_bytes = abi::kMailboxBytes;
    put(kCommands, entry);
    bar_write(abi::reg::kCommandDoorbell, std::uint32_t{1});
    while (get<abi::CommandEntry>(kCommands).owner != 0) wait(1, sc_core::SC_US);
    require(get<abi::CommandEntry>(kCommands).status == abi::CommandStatus::ok, "a command fails");
  }

  const std::uint8_t number_;
};

}  // namespace bare
