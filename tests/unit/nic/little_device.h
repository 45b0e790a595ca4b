// SPDX-License-Identifier: Apache-2.0
// A second personality that shares no layout with ours: little-endian, packed, with another order of fields, other
// sizes of queue entries, other opcodes, and one doorbell register for all queues. Supported: RC queue pairs with SEND,
// WRITE and READ.
#pragma once

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "model/nic/personality/personality.h"

namespace rnicsim::nic::test {

// Writes numbers one after the other, least significant byte first.
class LittleWriter {
 public:
  explicit LittleWriter(std::span<std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_enum_v<T> || std::integral<T>
  void operator()(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) rest_[i] = std::byte(static_cast<std::uint64_t>(value) >> (8 * i));
    rest_ = rest_.subspan(sizeof(T));
  }
  template <class T, std::size_t size>
  void operator()(const std::array<T, size>& values) {
    for (const auto& value : values) (*this)(value);
  }

 private:
  std::span<std::byte> rest_;
};

class LittleReader {
 public:
  explicit LittleReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_enum_v<T> || std::integral<T>
  void operator()(T& value) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) sum |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    value = static_cast<T>(sum);
    rest_ = rest_.subspan(sizeof(T));
  }
  template <class T, std::size_t size>
  void operator()(std::array<T, size>& values) {
    for (auto& value : values) (*this)(value);
  }
  template <class T>
  T take() {
    T value{};
    (*this)(value);
    return value;
  }
  void skip(std::size_t bytes) { rest_ = rest_.subspan(bytes); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

namespace little {

constexpr std::uint32_t kUar = 0x10000;
constexpr std::uint32_t kUarPageBytes = 8192;
constexpr std::uint32_t kMsixTable = 0x3000;
constexpr std::uint32_t kRegisters = 0x200000;
constexpr std::uint32_t kCommandQueue = kRegisters + 0x10;  // 64 bits
constexpr std::uint32_t kStatus = kRegisters + 0x20;        // 8 bits
constexpr std::uint32_t kExecute = kRegisters + 0x30;       // 8 bits: index of the command entry to execute
constexpr std::uint32_t kDoorbell = 0x40;                   // offset in a UAR page
constexpr std::size_t kDoorbellBytes = 12;
enum class Ring : std::uint8_t { send = 's', arm = 'a', arm_solicited = 'A', events = 'e' };

constexpr std::size_t kSendHead = 28;
constexpr std::size_t kSegment = 20;
constexpr std::size_t kReceiveHead = 4;
enum class Opcode : std::uint8_t { send = 'S', send_imm = 's', write = 'W', write_imm = 'w', read = 'R' };
constexpr std::uint8_t kSignaled = 0x80;
constexpr std::uint8_t kSolicited = 0x40;
constexpr std::uint8_t kFence = 0x20;

constexpr std::uint8_t kDevices = 0x77;  // the device owns the command entry; 1: the entry is complete
constexpr std::size_t kCommandHead = 8;
constexpr std::size_t kResultHead = 12;
constexpr std::uint16_t code_of(CommandOpcode opcode) { return static_cast<std::uint16_t>(~unsigned(opcode)); }

// --- Objects, as encoded in memory and in mailboxes.
template <class Visit, class P>
void path_fields(Visit& visit, P& path) {
  visit(path.sgid_index);
  visit(path.hop_limit);
  visit(path.traffic_class);
  visit(path.flow_label);
  visit(path.static_rate);
  visit(path.service_level);
  visit(path.remote_mac);
  visit(path.remote_gid);
}

template <class Visit, class Q>
requires std::same_as<std::remove_const_t<Q>, QpContext>
void fields(Visit& visit, Q& qp) {
  path_fields(visit, qp.path);
  visit(qp.receive_psn);
  visit(qp.send_psn);
  visit(qp.remote_qpn);
  visit(qp.rnr_retry);
  visit(qp.retry_count);
  visit(qp.timeout);
  visit(qp.min_rnr_timer);
  visit(qp.max_dest_rd_atomic);
  visit(qp.max_rd_atomic);
  visit(qp.access_flags);
  visit(qp.qkey);
  visit(qp.path_mtu);
  visit(qp.port);
  visit(qp.pkey_index);
  visit(qp.sqd_notify);
  visit(qp.state);
  visit(qp.transport);
  visit(qp.has_receive);
  visit(qp.has_send);
  visit(qp.log_receive_stride);
  visit(qp.log_receive_wqes);
  visit(qp.log_send_blocks);
  visit(qp.inline_receive);
  visit(qp.doorbell_record);
  visit(qp.receive_ring);
  visit(qp.send_ring);
  visit(qp.receive_cqn);
  visit(qp.send_cqn);
  visit(qp.pasid);
  visit(qp.pd);
  visit(qp.uar_page);
  visit(qp.expected_psn);
  visit(qp.next_send_psn);
  visit(qp.oldest_unacked_psn);
  visit(qp.msn);
  visit(qp.send_consumer);
  visit(qp.send_next);
  visit(qp.receive_consumer);
}

template <class Visit, class Q>
requires std::same_as<std::remove_const_t<Q>, CompletionQueue>
void fields(Visit& visit, Q& cq) {
  visit(cq.eqn);
  visit(cq.consumer);
  visit(cq.producer);
  visit(cq.solicited);
  visit(cq.doorbell_record);
  visit(cq.ring);
  visit(cq.armed);
  visit(cq.uar_page);
  visit(cq.pasid);
  visit(cq.ignore_overrun);
  visit(cq.dead);
  visit(cq.log_entries);
}

template <class Visit, class Q>
requires std::same_as<std::remove_const_t<Q>, EventQueueContext>
void fields(Visit& visit, Q& eq) {
  visit(eq.ring);
  visit(eq.consumer);
  visit(eq.producer);
  visit(eq.vector);
  visit(eq.pasid);
  visit(eq.log_entries);
}

template <class Visit, class Q>
requires std::same_as<std::remove_const_t<Q>, SharedReceiveQueue>
void fields(Visit& visit, Q& srq) {
  visit(srq.ring);
  visit(srq.doorbell_record);
  visit(srq.pasid);
  visit(srq.pd);
  visit(srq.limit);
  visit(srq.head);
  visit(srq.taken);
  visit(srq.log_stride);
  visit(srq.log_entries);
  visit(srq.dead);
}

template <class Visit, class R>
requires std::same_as<std::remove_const_t<R>, MemoryRegion>
void fields(Visit& visit, R& region) {
  visit(region.length);
  visit(region.start);
  visit(region.bus_address);
  visit(region.access);
  visit(region.key);
  visit(region.pasid);
  visit(region.pd);
  visit(region.first_page);
  visit(region.log_page);
  visit(region.kind);
  visit(region.valid);
  visit(region.windows);
}

template <class Visit, class R>
requires std::same_as<std::remove_const_t<R>, IcmRange>
void fields(Visit& visit, R& range) {
  visit(range.memory);
  visit(range.count);
  visit(range.first);
  visit(range.table);
}

template <class Visit, class S>
requires std::same_as<std::remove_const_t<S>, GidSetting>
void fields(Visit& visit, S& setting) {
  visit(setting.gid);
  visit(setting.mac);
  visit(setting.valid);
  visit(setting.index);
}

template <class Visit, class M>
requires std::same_as<std::remove_const_t<M>, QpModification>
void fields(Visit& visit, M& modification) {
  fields(visit, modification.context);
  visit(modification.current_state);
  visit(modification.attributes);
}

}  // namespace little

class LittlePersonality final : public Personality {
 public:
  LittlePersonality() : Personality(sizes()) {}

  bool read_registers(const DeviceRegisters& registers, std::uint32_t offset, std::span<std::byte> out) const override {
    if (offset != little::kStatus - little::kRegisters || out.size() != 1) return false;
    out[0] = std::byte(registers.status);
    return true;
  }
  std::optional<RegisterWrite> write_registers(const DeviceRegisters&, std::uint32_t offset,
                                               std::span<const std::byte> data) const override {
    LittleReader read(data);
    if (offset == little::kCommandQueue - little::kRegisters && data.size() == 8)
      return RegisterWrite{.command_queue = read.take<std::uint64_t>()};
    if (offset == little::kExecute - little::kRegisters && data.size() == 1)
      return RegisterWrite{.commands = 1u << (read.take<std::uint8_t>() % 32)};
    return std::nullopt;
  }

  DoorbellWrite decode_doorbell(std::uint32_t offset, std::span<const std::byte> data) const override {
    using Kind = DoorbellWrite::Kind;
    if (offset != little::kDoorbell || data.size() != little::kDoorbellBytes) return {.sound = false};
    LittleReader read(data);
    DoorbellWrite said;
    read(said.position);
    read(said.number);
    switch (read.take<little::Ring>()) {
      case little::Ring::send: said.kind = Kind::send; break;
      case little::Ring::arm_solicited: said.solicited_only = true; [[fallthrough]];
      case little::Ring::arm: said.kind = Kind::cq_arm; break;
      case little::Ring::events: said.kind = Kind::eq; break;
      default: said.sound = false;
    }
    return said;
  }
  std::uint16_t receives_posted(std::span<const std::byte> record) const override {
    return LittleReader(record.subspan(8)).take<std::uint16_t>();
  }
  std::uint32_t cqes_consumed(std::span<const std::byte> record) const override {
    return LittleReader(record).take<std::uint32_t>() >> 8;
  }

  std::optional<std::uint16_t> send_blocks(std::span<const std::byte> wqe) const override {
    const auto blocks = LittleReader(wqe).take<std::uint8_t>();
    return blocks == 0 ? std::nullopt : std::optional<std::uint16_t>(blocks);
  }
  void decode_send(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index, const SendRules& rules, SendWqe& wqe,
                   roce::SendRequest& request) const override {
    wqe.index = index;
    request.refused = decode_body(bytes, qpn, rules, wqe, request);
  }
  ReceiveWqe decode_receive(std::span<const std::byte> wqe, std::uint16_t index) const override {
    ReceiveWqe receive{.index = index};
    take_segments(wqe.subspan(little::kReceiveHead), LittleReader(wqe).take<std::uint8_t>(), receive.regions,
                  receive.bytes);
    return receive;
  }
  SharedReceive decode_shared_receive(std::span<const std::byte> entry, std::uint16_t index) const override {
    return {decode_receive(entry, index), LittleReader(entry.subspan(2)).take<std::uint16_t>()};
  }

  void encode(const Cqe& cqe, const CqePlace& place, std::span<const std::byte> brought,
              std::span<std::byte> entry) const override {
    std::ranges::fill(entry, std::byte{0});
    LittleWriter write(entry);
    write(place.timestamp);
    write(cqe.immediate);
    write(cqe.byte_count);
    write(cqe.qpn);
    write(cqe.wqe_counter);
    write(static_cast<std::uint8_t>(brought.size()));
    write(cqe.syndrome);
    write(static_cast<std::uint8_t>(0x40 + static_cast<unsigned>(cqe.opcode)));
    write(static_cast<std::uint8_t>(1 + (place.position >> place.log_entries & 1)));
    std::ranges::copy(brought, entry.begin() + 32);
  }
  void encode(EventType type, std::uint32_t number, bool owner, std::span<std::byte> entry) const override {
    std::ranges::fill(entry, std::byte{0});
    LittleWriter write(entry);
    write(number);
    write(type);
    write(static_cast<std::uint8_t>(owner ? 2 : 1));
  }

  void decode(std::span<const std::byte> bytes, QpContext& context) const override { read_fields(bytes, context); }
  void decode(std::span<const std::byte> bytes, CompletionQueue& queue) const override { read_fields(bytes, queue); }
  void decode(std::span<const std::byte> bytes, EventQueueContext& queue) const override { read_fields(bytes, queue); }
  void decode(std::span<const std::byte> bytes, SharedReceiveQueue& queue) const override { read_fields(bytes, queue); }
  void decode(std::span<const std::byte> bytes, MemoryRegion& region) const override { read_fields(bytes, region); }
  void decode(std::span<const std::byte> bytes, PageEntry& page) const override { LittleReader{bytes}(page.page); }
  void encode(const QpContext& context, std::span<std::byte> bytes) const override { write_fields(bytes, context); }
  void encode(const CompletionQueue& queue, std::span<std::byte> bytes) const override { write_fields(bytes, queue); }
  void encode(const EventQueueContext& queue, std::span<std::byte> bytes) const override { write_fields(bytes, queue); }
  void encode(const SharedReceiveQueue& queue, std::span<std::byte> bytes) const override {
    write_fields(bytes, queue);
  }
  void encode(const MemoryRegion& region, std::span<std::byte> bytes) const override { write_fields(bytes, region); }

  CommandEntry decode_command_entry(std::span<const std::byte> entry) const override {
    LittleReader read(entry);
    CommandEntry command{.device_owns = read.take<std::uint8_t>() == little::kDevices};
    read.skip(3);
    read(command.output_bytes);
    read(command.input_bytes);
    read(command.output);
    read(command.input);
    return command;
  }
  Command decode_command(std::span<const std::byte> mailbox, std::uint32_t output_bytes) const override {
    LittleReader read(mailbox);
    Command command;
    read(command.object);
    const auto code = read.take<std::uint16_t>();
    read.skip(2);
    if (output_bytes < little::kResultHead) command.refused = CommandStatus::bad_output_length;
    for (const auto opcode : {CommandOpcode::initialize, CommandOpcode::map_icm, CommandOpcode::set_gid,
                              CommandOpcode::create_eq, CommandOpcode::create_cq, CommandOpcode::create_mpt,
                              CommandOpcode::create_qp, CommandOpcode::modify_qp, CommandOpcode::query_qp})
      if (little::code_of(opcode) == code) command.opcode = opcode;
    switch (command.opcode) {
      case CommandOpcode::initialize:
      case CommandOpcode::query_qp: break;
      case CommandOpcode::map_icm: take_input<IcmRange>(read, command); break;
      case CommandOpcode::set_gid: take_input<GidSetting>(read, command); break;
      case CommandOpcode::create_eq: take_input<EventQueueContext>(read, command); break;
      case CommandOpcode::create_cq: take_input<CompletionQueue>(read, command); break;
      case CommandOpcode::create_mpt: take_input<MemoryRegion>(read, command); break;
      case CommandOpcode::create_qp: take_input<QpContext>(read, command); break;
      case CommandOpcode::modify_qp: take_input<QpModification>(read, command); break;
      default: command.refused = CommandStatus::bad_opcode;
    }
    return command;
  }
  std::vector<std::byte> encode(const CommandResult& result, const CommandOutput& output) const override {
    std::vector<std::byte> bytes(512);
    LittleWriter write(bytes);
    write(result.syndrome);
    write(result.object);
    write(static_cast<std::uint32_t>(result.status));
    if (const auto* context = std::get_if<QpContext>(&output)) little::fields(write, *context);
    return bytes;
  }
  std::vector<std::byte> command_done(CommandStatus status) const override {
    return {std::byte{1}, static_cast<std::byte>(status)};
  }

 private:
  static Layout sizes() {
    Layout layout;
    layout.pci = {.vendor = 0x1234,
                  .device = 0x5678,
                  .class_code = 0x020000,
                  .revision = 3,
                  .pcie_capability = 0x60,
                  .msix_capability = 0xa0,
                  .power_capability = 0xb0,
                  .serial_capability = 0x200,
                  .bar_bytes = 4u << 20,
                  .registers = little::kRegisters,
                  .msix_table = little::kMsixTable,
                  .msix_pending = 0x2000,
                  .msix_vectors = 8,
                  .uar = little::kUar,
                  .uar_page_bytes = little::kUarPageBytes,
                  .uar_pages = 16};
    layout.log_send_block = 5;
    layout.send_head = 1;
    layout.data_segment = little::kSegment;
    layout.qp_record = 16;
    layout.cq_record = 4;
    layout.cqe = 48;
    layout.inline_receive = 8;
    layout.eqe = 16;
    layout.log_commands = 2;
    layout.command_entry = 40;
    layout.command_header = little::kCommandHead;
    layout.mailbox = 1024;
    layout.contexts = {192, 80, 40, 96, 16, 72};
    return layout;
  }

  template <class Object>
  static void read_fields(std::span<const std::byte> bytes, Object& object) {
    LittleReader read(bytes);
    little::fields(read, object);
  }
  template <class Object>
  static void write_fields(std::span<std::byte> bytes, const Object& object) {
    std::ranges::fill(bytes, std::byte{0});
    LittleWriter write(bytes);
    little::fields(write, object);
  }
  // Refuses a mailbox below 200 bytes. Every command's input fits in 200 bytes.
  template <class Input>
  static void take_input(LittleReader& read, Command& command) {
    if (read.rest().size() < 200) return void(command.refused = CommandStatus::bad_input_length);
    Input input;
    little::fields(read, input);
    command.input = input;
  }

  template <class Bytes>
  static void take_segments(std::span<const std::byte> rest, std::size_t count, Regions& regions, Bytes& total) {
    for (; count != 0 && rest.size() >= little::kSegment; --count, rest = rest.subspan(little::kSegment)) {
      LittleReader read(rest);
      Region region{};
      read(region.length);
      read(region.address);
      read(region.key);
      regions.push_back(region);
      total += region.length;
    }
  }

  static std::optional<roce::Status> decode_body(std::span<const std::byte> bytes, Qpn qpn, const SendRules& rules,
                                                 SendWqe& entry, roce::SendRequest& request) {
    constexpr auto kRefused = roce::Status::local_qp_operation_error;
    if (bytes.size() < little::kSendHead || rules.transport != roce::Transport::rc) return kRefused;
    LittleReader read(bytes);
    entry.blocks = read.take<std::uint8_t>();
    const auto opcode = read.take<little::Opcode>();
    const auto flags = read.take<std::uint8_t>();
    const auto segments = read.take<std::uint8_t>();
    const auto index = read.take<std::uint16_t>();
    read.skip(2);
    const auto number = read.take<std::uint32_t>();
    const auto immediate = read.take<std::uint32_t>();
    request.signaled = (flags & little::kSignaled) != 0;
    request.solicited = (flags & little::kSolicited) != 0;
    request.fence = (flags & little::kFence) != 0;
    if (number != qpn.value || index != entry.index) return kRefused;
    const bool has_immediate = opcode == little::Opcode::send_imm || opcode == little::Opcode::write_imm;
    if (has_immediate) request.immediate = immediate;
    switch (opcode) {
      case little::Opcode::send:
      case little::Opcode::send_imm:
        request.operation = roce::SendOperation::send;
        entry.opcode = has_immediate ? SendOpcode::send_with_imm : SendOpcode::send;
        break;
      case little::Opcode::write:
      case little::Opcode::write_imm:
        request.operation = roce::SendOperation::write;
        entry.opcode = has_immediate ? SendOpcode::write_with_imm : SendOpcode::write;
        break;
      case little::Opcode::read:
        request.operation = roce::SendOperation::read;
        entry.opcode = SendOpcode::read;
        break;
      default: return kRefused;
    }
    read(request.remote_address);
    read(request.rkey.value);
    std::uint64_t total = 0;
    take_segments(bytes.subspan(little::kSendHead), segments, entry.regions, total);
    if (total > rules.max_message) return roce::Status::local_length_error;
    request.length = static_cast<std::uint32_t>(total);
    return std::nullopt;
  }
};

}  // namespace rnicsim::nic::test
