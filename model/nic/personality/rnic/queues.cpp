// SPDX-License-Identifier: Apache-2.0
// Queues of the device in docs/device.md: doorbells, work requests, completions, events.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "model/abi/device.h"
#include "model/nic/personality/rnic/rnic.h"
#include "model/roce/opcode.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kSegment = 16;
constexpr std::uint32_t kMaxSegments = abi::kMaxWqeBlocks * abi::kSendBlock / kSegment;

template <class Segment>
Segment load(std::span<const std::byte> bytes) {
  Segment segment;
  std::memcpy(static_cast<void*>(&segment), bytes.data(), sizeof(segment));
  return segment;
}

// Constructs an entry in the buffer that is written to memory; entries have no alignment.
template <class Entry>
Entry& make(std::span<std::byte> bytes) {
  return *new (bytes.data()) Entry;
}

struct OpcodeRow {
  abi::SendOpcode opcode;
  roce::SendOperation operation;
  roce::Extra extra = roce::Extra::none;  // meaning of ControlSegment::immediate

  bool takes_remote_address() const {
    using enum roce::SendOperation;
    return operation == write || operation == read || operation == atomic_write || is_atomic();
  }
  bool is_atomic() const {
    return operation == roce::SendOperation::fetch_add || operation == roce::SendOperation::compare_swap;
  }
  bool takes_data() const {
    using enum roce::SendOperation;
    return operation != nop && operation != local_invalidate && operation != change_key;
  }
  // IBTA vol 1, table 38, and ibv_post_send(3). UC has no packet that invalidates.
  bool is_of(const SendRules& rules) const {
    using enum roce::SendOperation;
    if (opcode == abi::SendOpcode::tso) return rules.transport == roce::Transport::raw;
    if (extra == roce::Extra::immediate && rules.transport == roce::Transport::raw) return false;
    if (opcode == abi::SendOpcode::fast_register && !rules.fast_register) return false;
    if (opcode == abi::SendOpcode::bind_window && !rules.windows) return false;
    if (operation == atomic_write) return rules.atomic_write && rules.transport == roce::Transport::rc;
    if (extra == roce::Extra::invalidate && !rules.invalidate) return false;
    if (operation == nop || roce::is_reliable(rules.transport)) return true;
    if (operation == send) return extra != roce::Extra::invalidate;
    const bool writes_or_keys = operation == write || operation == local_invalidate || operation == change_key;
    return rules.transport == roce::Transport::uc && writes_or_keys;
  }
  bool takes_inline() const {
    if (opcode == abi::SendOpcode::tso) return false;
    using enum roce::SendOperation;
    return operation == send || operation == write || operation == atomic_write;
  }
  bool takes_a_word() const { return operation == roce::SendOperation::atomic_write || is_atomic(); }
};
constexpr OpcodeRow kOpcodes[] = {
    {abi::SendOpcode::nop, roce::SendOperation::nop},
    {abi::SendOpcode::send, roce::SendOperation::send},
    {abi::SendOpcode::send_with_imm, roce::SendOperation::send, roce::Extra::immediate},
    {abi::SendOpcode::send_with_inv, roce::SendOperation::send, roce::Extra::invalidate},
    {abi::SendOpcode::tso, roce::SendOperation::send},
    {abi::SendOpcode::write, roce::SendOperation::write},
    {abi::SendOpcode::write_with_imm, roce::SendOperation::write, roce::Extra::immediate},
    {abi::SendOpcode::read, roce::SendOperation::read},
    {abi::SendOpcode::compare_swap, roce::SendOperation::compare_swap},
    {abi::SendOpcode::fetch_add, roce::SendOperation::fetch_add},
    {abi::SendOpcode::atomic_write, roce::SendOperation::atomic_write},
    {abi::SendOpcode::bind_window, roce::SendOperation::change_key},
    {abi::SendOpcode::fast_register, roce::SendOperation::change_key},
    {abi::SendOpcode::local_inv, roce::SendOperation::local_invalidate, roce::Extra::invalidate},
};

// Rows by opcode.
constexpr auto kRowOf = [] {
  std::array<const OpcodeRow*, 32> rows{};
  for (const auto& row : kOpcodes) rows[static_cast<std::size_t>(row.opcode)] = &row;
  return rows;
}();

const OpcodeRow* find(abi::SendOpcode opcode) {
  const auto code = static_cast<std::size_t>(opcode);
  return code < kRowOf.size() ? kRowOf[code] : nullptr;
}

// Appends one inline segment; returns its bytes in the WQE; 0: it exceeds the WQE.
std::size_t take_inline(std::span<const std::byte> rest, std::vector<std::byte>& data) {
  const auto count = load<abi::InlineHeader>(rest).byte_count & ~abi::InlineHeader::kInline;
  if (count > rest.size() - sizeof(abi::InlineHeader)) return 0;
  const auto bytes = rest.subspan(sizeof(abi::InlineHeader), count);
  data.insert(data.end(), bytes.begin(), bytes.end());
  return (sizeof(abi::InlineHeader) + count + kSegment - 1) / kSegment * kSegment;
}

std::optional<roce::Status> parse_data(std::span<const std::byte> rest, const OpcodeRow& row, SendWqe& wqe,
                                       std::uint64_t& total) {
  std::vector<std::byte> inline_data;
  bool has_inline = false;
  while (rest.size() >= kSegment) {
    const auto segment = load<abi::DataSegment>(rest);
    if ((segment.byte_count & abi::InlineHeader::kInline) != 0) {
      const auto taken = take_inline(rest, inline_data);
      if (taken == 0 || !row.takes_inline()) return roce::Status::local_qp_operation_error;
      has_inline = true;
      rest = rest.subspan(std::min(taken, rest.size()));
      continue;
    }
    rest = rest.subspan(kSegment);
    if (segment.byte_count == 0) continue;
    wqe.regions.push_back({segment.lkey, segment.address, segment.byte_count});
    total += segment.byte_count;
  }
  if (!has_inline) return std::nullopt;
  if (!wqe.regions.empty()) return roce::Status::local_qp_operation_error;
  total = inline_data.size();
  wqe.inline_data = Payload::copy_of(inline_data);
  return std::nullopt;
}

bool take_datagram(std::span<const std::byte>& rest, const SendRules& rules, SendWqe& wqe, roce::SendRequest& request) {
  if (rest.size() < sizeof(abi::DatagramSegment)) return false;
  const auto datagram = load<abi::DatagramSegment>(rest);
  wqe.path = path_of(datagram.path);
  request.remote = {datagram.remote_qpn & 0xffffff};
  request.qkey = (datagram.qkey & abi::kOwnQkey) != 0 ? rules.qkey : std::uint32_t(datagram.qkey);
  rest = rest.subspan(sizeof(datagram));
  return true;
}

bool take_queue(std::span<const std::byte>& rest, roce::SendRequest& request) {
  if (rest.size() < sizeof(abi::XrcSegment)) return false;
  request.srqn = load<abi::XrcSegment>(rest).srqn & 0xffffff;
  rest = rest.subspan(sizeof(abi::XrcSegment));
  return true;
}

// Takes the headers that precede each segment.
std::optional<roce::Status> take_headers(std::span<const std::byte>& rest, const SendRules& rules, SendWqe& wqe,
                                         roce::SendRequest& request) {
  if (rest.size() < sizeof(abi::TsoSegment)) return roce::Status::local_qp_operation_error;
  const auto tso = load<abi::TsoSegment>(rest);
  rest = rest.subspan(sizeof(tso));
  const std::size_t bytes = tso.header_bytes, padded = (bytes + kSegment - 1) / kSegment * kSegment;
  if (tso.mss == 0 || bytes < rules.least_message || bytes > rules.max_headers || padded > rest.size())
    return roce::Status::local_qp_operation_error;
  wqe.headers = Payload::copy_of(rest.first(bytes));
  request.segment = tso.mss;
  rest = rest.subspan(padded);
  return std::nullopt;
}

std::optional<roce::Status> validate_length(const SendRules& rules, const roce::SendRequest& request,
                                            const SendWqe& wqe, std::uint64_t total) {
  bool fits = total >= rules.least_message && total <= rules.max_message;
  if (request.segment != 0)
    fits = total != 0 && total <= rules.max_tso &&
           wqe.headers.size() + std::min<std::uint64_t>(total, request.segment) <= rules.max_message;
  return fits ? std::nullopt : std::optional(roce::Status::local_length_error);
}

std::optional<roce::Status> parse_binding(std::span<const std::byte> rest, SendWqe& wqe) {
  if (rest.size() < sizeof(abi::BindSegment)) return roce::Status::local_qp_operation_error;
  const auto bind = load<abi::BindSegment>(rest);
  wqe.key_work = WindowBinding{bind.window, bind.rkey, bind.region, bind.access_flags, bind.address, bind.length};
  return std::nullopt;
}

std::optional<roce::Status> parse_registration(std::span<const std::byte> rest, SendWqe& wqe) {
  if (rest.size() < sizeof(abi::RegisterSegment)) return roce::Status::local_qp_operation_error;
  const auto given = load<abi::RegisterSegment>(rest);
  wqe.key_work =
      Registration{given.key, given.access_flags, given.start, given.length, given.first_byte, given.log_page};
  return std::nullopt;
}

std::optional<roce::Status> parse_body(std::span<const std::byte> bytes, const OpcodeRow& row, const SendRules& rules,
                                       SendWqe& wqe, roce::SendRequest& request) {
  auto rest = bytes.subspan(sizeof(abi::ControlSegment));
  request.operation = row.operation;
  if (row.opcode == abi::SendOpcode::bind_window) return parse_binding(rest, wqe);
  if (row.opcode == abi::SendOpcode::fast_register) return parse_registration(rest, wqe);
  if (!row.takes_data()) return std::nullopt;
  const bool datagram = rules.transport == roce::Transport::ud;
  if (datagram && !take_datagram(rest, rules, wqe, request)) return roce::Status::local_qp_operation_error;
  const bool extended = rules.transport == roce::Transport::xrc_send;
  if (extended && !take_queue(rest, request)) return roce::Status::local_qp_operation_error;
  if (row.opcode == abi::SendOpcode::tso)
    if (const auto refused = take_headers(rest, rules, wqe, request)) return refused;
  if (row.takes_remote_address()) {
    if (rest.size() < sizeof(abi::RemoteAddressSegment)) return roce::Status::local_qp_operation_error;
    const auto remote = load<abi::RemoteAddressSegment>(rest);
    request.remote_address = remote.address;
    request.rkey = {remote.rkey};
    rest = rest.subspan(sizeof(remote));
  }
  if (row.is_atomic()) {
    if (rest.size() < sizeof(abi::AtomicSegment)) return roce::Status::local_qp_operation_error;
    const auto operands = load<abi::AtomicSegment>(rest);
    request.swap_add = operands.swap_add;
    request.compare = operands.compare;
    rest = rest.subspan(sizeof(operands));
  }
  std::uint64_t total = 0;
  if (const auto refused = parse_data(rest, row, wqe, total)) return refused;
  if (const auto refused = validate_length(rules, request, wqe, total)) return refused;
  if (row.takes_a_word() && total != roce::kAtomicBytes) return roce::Status::local_length_error;
  request.length = static_cast<std::uint32_t>(total);
  return std::nullopt;
}

}  // namespace

std::optional<std::uint16_t> RnicPersonality::send_blocks(std::span<const std::byte> wqe) const {
  const auto segments = load<abi::ControlSegment>(wqe).segments;
  if (segments == 0 || segments > kMaxSegments) return std::nullopt;
  return static_cast<std::uint16_t>((segments * kSegment + abi::kSendBlock - 1) / abi::kSendBlock);
}

void RnicPersonality::decode_send(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index,
                                  const SendRules& rules, SendWqe& wqe, roce::SendRequest& request) const {
  const auto control = load<abi::ControlSegment>(bytes);
  wqe.opcode = static_cast<SendOpcode>(control.opcode);
  wqe.index = index;
  request.signaled = (control.qpn_flags & abi::ControlSegment::kSignaled) != 0;
  request.solicited = (control.qpn_flags & abi::ControlSegment::kSolicited) != 0;
  request.fence = (control.qpn_flags & abi::ControlSegment::kFence) != 0;
  wqe.checksums = (control.qpn_flags & abi::ControlSegment::kChecksums) != 0;
  const auto* row = find(control.opcode);
  const auto length = control.segments * kSegment;
  const bool sound =
      control.wqe_index == index && control.qpn_flags >> 8 == qpn.value && length >= kSegment && length <= bytes.size();
  const bool known = row != nullptr && row->is_of(rules);
  if (!known || !sound) {
    request.refused = roce::Status::local_qp_operation_error;
    return;
  }
  if (row->extra == roce::Extra::immediate) request.immediate = control.immediate;
  if (row->extra == roce::Extra::invalidate) request.invalidate = roce::Rkey{control.immediate};
  request.refused = parse_body(bytes.first(length), *row, rules, wqe, request);
}

ReceiveWqe RnicPersonality::decode_receive(std::span<const std::byte> bytes, std::uint16_t index) const {
  ReceiveWqe wqe{.index = index};
  for (; bytes.size() >= kSegment; bytes = bytes.subspan(kSegment)) {
    const auto segment = load<abi::DataSegment>(bytes);
    if (segment.lkey == abi::kInvalidLkey) break;
    const auto count = segment.byte_count & ~abi::InlineHeader::kInline;
    if (count == 0) continue;
    wqe.regions.push_back({segment.lkey, segment.address, count});
    wqe.bytes += count;
  }
  return wqe;
}

SharedReceive RnicPersonality::decode_shared_receive(std::span<const std::byte> entry, std::uint16_t index) const {
  return {decode_receive(entry.subspan(sizeof(abi::SrqNextSegment)), index), load<abi::SrqNextSegment>(entry).next};
}

std::uint16_t RnicPersonality::receives_posted(std::span<const std::byte> record) const {
  return static_cast<std::uint16_t>(std::uint32_t(load<abi::QpDoorbellRecord>(record).receive_producer));
}

std::uint32_t RnicPersonality::cqes_consumed(std::span<const std::byte> record) const {
  return load<abi::CqDoorbellRecord>(record).consumer & kCounterMask;
}

DoorbellWrite RnicPersonality::decode_doorbell(std::uint32_t offset, std::span<const std::byte> data) const {
  using namespace abi::uar;
  using Kind = DoorbellWrite::Kind;
  if (offset == kBlueFlame0 || offset == kBlueFlame1) return decode_blueflame(data);
  if (data.size() != sizeof(abi::SendDoorbell)) return {.sound = false};
  const auto first = abi::load_be<std::uint32_t>(data.data());
  const auto second = abi::load_be<std::uint32_t>(data.data() + sizeof(first));
  switch (offset) {
    case kSendDoorbell: return {.kind = Kind::send, .number = first & 0xffffff, .position = second & 0xffff};
    case kCqArm:
      return {.kind = Kind::cq_arm,
              .solicited_only = (first & abi::CqArm::kSolicitedOnly) != 0,
              .number = first >> 8,
              .position = second & kCounterMask};
    case kEqDoorbell: return {.kind = Kind::eq, .number = first, .position = second & kCounterMask};
    default: return {.sound = false};
  }
}

DoorbellWrite RnicPersonality::decode_blueflame(std::span<const std::byte> data) {
  using Kind = DoorbellWrite::Kind;
  const auto size = data.size();
  if (size == 0 || size % abi::kSendBlock != 0 || size > abi::uar::kBlueFlameBytes)
    return {.kind = Kind::blueflame, .sound = false};
  const auto control = load<abi::ControlSegment>(data);
  const std::uint32_t bytes = control.segments * 16u;
  if (bytes == 0 || bytes > size) return {.kind = Kind::blueflame, .sound = false};
  const auto blocks = (bytes + abi::kSendBlock - 1) / abi::kSendBlock;
  return {.kind = Kind::blueflame,
          .number = control.qpn_flags >> 8,
          .position = (control.wqe_index + blocks) & 0xffff,
          .wqe = data.first(std::min<std::size_t>(blocks * abi::kSendBlock, size))};
}

void RnicPersonality::encode(const Cqe& cqe, const CqePlace& place, std::span<const std::byte> brought,
                             std::span<std::byte> bytes) const {
  auto& entry = make<abi::Cqe>(bytes);
  entry.immediate = cqe.immediate;
  entry.byte_count = cqe.byte_count;
  entry.timestamp = place.timestamp;
  entry.qpn = cqe.qpn;
  entry.wqe_counter = cqe.wqe_counter;
  entry.send_opcode = static_cast<abi::SendOpcode>(cqe.send_opcode);
  entry.syndrome = static_cast<abi::CqeSyndrome>(cqe.syndrome);
  if (!brought.empty()) {
    entry.flags |= abi::Cqe::kInlineData;
    std::memcpy(entry.inline_data, brought.data(), brought.size());
  }
  if (cqe.grh) entry.flags |= abi::Cqe::kGrh | (cqe.ipv4 ? abi::Cqe::kIpv4 : 0);
  if (cqe.xrc) entry.flags |= abi::Cqe::kXrc;
  if (cqe.grh || cqe.xrc) {
    for (int i = 0; i < 3; ++i) entry.source_qpn[i] = static_cast<std::uint8_t>(cqe.source_qpn >> (8 * (2 - i)));
  }
  if (cqe.checksums_right) entry.flags |= abi::Cqe::kChecksumsRight;
  if (cqe.vlan) {
    entry.flags |= abi::Cqe::kVlan;
    entry.vlan = *cqe.vlan;
  }
  if (cqe.tagged) entry.flags |= abi::Cqe::kFlowTag;
  if (cqe.rss_hash != 0)
    make<abi::RawFacts>(std::as_writable_bytes(std::span(entry.inline_data))).rss_hash = cqe.rss_hash;
  const auto owner = place.position >> place.log_entries & 1;
  entry.opcode_owner = static_cast<std::uint8_t>(static_cast<unsigned>(cqe.opcode) << 4 | owner);
}

void RnicPersonality::encode(EventType type, std::uint32_t number, bool owner, std::span<std::byte> bytes) const {
  auto& entry = make<abi::Eqe>(bytes);
  entry.type = static_cast<abi::EventType>(type);
  entry.number = number;
  entry.owner = owner ? 1 : 0;
}

}  // namespace rnicsim::nic
