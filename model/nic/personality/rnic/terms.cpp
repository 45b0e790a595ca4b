// SPDX-License-Identifier: Apache-2.0
// Names from docs/device.md, and decoding of driver data in its layouts.
#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <cstring>
#include <string_view>
#include <vector>

#include "model/abi/command.h"
#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "model/nic/personality/driver_terms.h"

namespace rnicsim::nic {
namespace {

struct NamedNumber {
  std::uint32_t number;
  const char* name;
};
struct ReservedField {
  std::string_view layout;
  std::size_t offset;
  std::size_t bytes;
};

#include "model/nic/personality/rnic/names.inc"

constexpr std::size_t kSegment = 16;

const char* find(std::span<const NamedNumber> names, std::uint64_t number) {
  const auto found = std::ranges::find(names, number, &NamedNumber::number);
  return found != names.end() ? found->name : nullptr;
}

template <class Layout>
Layout load(std::span<const std::byte> bytes) {
  Layout layout;
  std::memcpy(static_cast<void*>(&layout), bytes.data(), std::min(sizeof(layout), bytes.size()));
  return layout;
}

template <class Number>
Number in_order(abi::BigEndian<Number> field, bool little) {
  const Number number = field;
  return little ? boost::endian::endian_reverse(number) : number;
}

std::optional<ReservedBytes> reserved_in(const char* layout, std::span<const std::byte> bytes) {
  for (const auto& field : kReservedFields) {
    if (field.layout != layout) continue;
    for (auto at = field.offset; at < std::min(field.offset + field.bytes, bytes.size()); ++at)
      if (bytes[at] != std::byte{}) return ReservedBytes{layout, at, std::to_integer<std::uint8_t>(bytes[at])};
  }
  return std::nullopt;
}

// The swapped value of a counter with `bits` bits in a 32-bit field; nullopt: the field is in range, or swapping does
// not help.
std::optional<std::uint32_t> swapped_counter(abi::Be32 field, unsigned bits) {
  const auto swapped = in_order(field, true);
  return field >> bits != 0 && swapped >> bits == 0 ? std::optional(swapped) : std::nullopt;
}

constexpr unsigned kBlockBits = 16, kReceiveBits = 16, kConsumerBits = 24;

const char* mailbox_of(abi::CommandOpcode opcode) {
  using enum abi::CommandOpcode;
  switch (opcode) {
    case map_icm:
    case unmap_icm: return "MapIcm";
    case set_gid: return "SetGid";
    case create_eq: return "CreateEq";
    case create_cq: return "CreateCq";
    case modify_cq: return "ModifyCq";
    case resize_cq: return "ResizeCq";
    case create_mpt:
    case modify_mpt: return "CreateMpt";
    case create_qp: return "CreateQp";
    case modify_qp: return "ModifyQp";
    case create_srq: return "CreateSrq";
    case modify_srq: return "ModifySrq";
    case attach_multicast:
    case detach_multicast: return "MulticastGroup";
    case create_rss: return "CreateRss";
    case create_flow: return "CreateFlow";
    default: return "CommandHeader";
  }
}

bool takes_remote_address(abi::SendOpcode opcode) {
  using enum abi::SendOpcode;
  return opcode == write || opcode == write_with_imm || opcode == read || opcode == compare_swap ||
         opcode == fetch_add || opcode == atomic_write;
}

class RnicTerms final : public DriverTerms {
 public:
  std::span<const RegisterTerm> registers() const override { return kRegisters; }
  std::span<const DoorbellTerm> doorbells() const override { return doorbells_; }
  std::span<const CommandTerm> commands() const override { return commands_; }
  const char* config_name(std::uint64_t offset) const override { return find(kConfigNames, offset); }
  const char* table_name(IcmTable table) const override { return known(kIcmTableNames, table); }
  const char* status_name(CommandStatus status) const override { return known(kCommandStatusNames, status); }

  CommandEntry entry_of(std::span<const std::byte> bytes, bool little) const override {
    const auto entry = load<abi::CommandEntry>(bytes);
    return {.device_owns = entry.owner == 1,
            .input_bytes = in_order(entry.input_bytes, little),
            .output_bytes = in_order(entry.output_bytes, little),
            .input = in_order(entry.input, little),
            .output = in_order(entry.output, little)};
  }
  Header header_of(std::span<const std::byte> mailbox, bool little) const override {
    const auto header = load<abi::CommandHeader>(mailbox);
    return {in_order(header.opcode, little), in_order(header.object, little)};
  }
  std::optional<ReservedBytes> reserved_in_entry(std::span<const std::byte> bytes) const override {
    return reserved_in("CommandEntry", bytes);
  }
  std::optional<ReservedBytes> reserved_in_mailbox(std::span<const std::byte> mailbox) const override {
    return reserved_in(mailbox_of(static_cast<abi::CommandOpcode>(header_of(mailbox, false).opcode)), mailbox);
  }

  std::optional<std::uint32_t> swapped_position(std::uint32_t offset,
                                                std::span<const std::byte> doorbell) const override {
    if (doorbell.size() != sizeof(abi::SendDoorbell)) return std::nullopt;
    if (offset == abi::uar::kSendDoorbell)
      return swapped_counter(load<abi::SendDoorbell>(doorbell).producer, kBlockBits);
    if (offset == abi::uar::kCqArm) return swapped_counter(load<abi::CqArm>(doorbell).consumer, kConsumerBits);
    if (offset == abi::uar::kEqDoorbell)
      return swapped_counter(load<abi::EqDoorbell>(doorbell).consumer, kConsumerBits);
    return std::nullopt;
  }
  std::optional<std::uint32_t> swapped_consumer(std::span<const std::byte> cq_record) const override {
    return swapped_counter(load<abi::CqDoorbellRecord>(cq_record).consumer, kConsumerBits);
  }
  std::optional<std::uint32_t> swapped_receives(std::span<const std::byte> qp_record) const override {
    return swapped_counter(load<abi::QpDoorbellRecord>(qp_record).receive_producer, kReceiveBits);
  }

  WqeClaims claims_of(std::span<const std::byte> head, bool little) const override {
    const auto control = load<abi::ControlSegment>(head);
    const auto qpn_flags = in_order(control.qpn_flags, little);
    return {.blank = std::ranges::all_of(head.first(kSegment), [](std::byte byte) { return byte == std::byte{}; }),
            .index = in_order(control.wqe_index, little),
            .qpn = qpn_flags >> 8,
            .bytes = control.segments * std::uint32_t{kSegment},
            .opcode = find(kSendOpcodeNames, static_cast<std::uint8_t>(control.opcode))};
  }

  std::optional<ReservedBytes> reserved_in_wqe(std::span<const std::byte> wqe,
                                               roce::Transport transport) const override {
    const auto opcode = load<abi::ControlSegment>(wqe).opcode;
    auto rest = wqe;
    const auto next = [&rest](const char* layout, std::size_t bytes) {
      const auto segment = rest.first(std::min(bytes, rest.size()));
      rest = rest.subspan(segment.size());
      return reserved_in(layout, segment);
    };
    auto found = next("ControlSegment", sizeof(abi::ControlSegment));
    using enum abi::SendOpcode;
    const bool has_data = opcode != nop && opcode != local_inv && opcode != bind_window && opcode != fast_register;
    if (!found && has_data && transport == roce::Transport::ud)
      found = next("DatagramSegment", sizeof(abi::DatagramSegment));
    if (!found && has_data && transport == roce::Transport::xrc_send)
      found = next("XrcSegment", sizeof(abi::XrcSegment));
    if (!found && opcode == tso) found = next("TsoSegment", sizeof(abi::TsoSegment));
    if (!found && opcode == fast_register) found = next("RegisterSegment", sizeof(abi::RegisterSegment));
    if (!found && takes_remote_address(opcode)) found = next("RemoteAddressSegment", sizeof(abi::RemoteAddressSegment));
    return found;
  }
  std::optional<ReservedBytes> reserved_in_shared_receive(std::span<const std::byte> entry) const override {
    return reserved_in("SrqNextSegment", entry);
  }

  bool cqe_is_drivers(std::span<const std::byte> entry, std::uint32_t position, std::uint8_t log) const override {
    const auto opcode_owner = std::to_integer<unsigned>(entry[sizeof(abi::Cqe) - 1]);
    return opcode_owner >> 4 != static_cast<unsigned>(abi::CqeOpcode::invalid) &&
           (opcode_owner & 1) == (position >> log & 1);
  }
  bool eqe_is_drivers(std::span<const std::byte> entry, std::uint32_t position, std::uint8_t log) const override {
    return (std::to_integer<unsigned>(entry[sizeof(abi::Eqe) - 1]) & 1) == (position >> log & 1);
  }
  std::size_t owner_bytes() const override { return sizeof(abi::Cqe::opcode_owner); }

 private:
  static_assert(offsetof(abi::Cqe, opcode_owner) == sizeof(abi::Cqe) - 1 &&
                offsetof(abi::Eqe, owner) == sizeof(abi::Eqe) - 1);

  template <class Enum>
  static const char* known(std::span<const NamedNumber> names, Enum value) {
    const auto* name = find(names, static_cast<std::uint64_t>(value));
    return name != nullptr ? name : "unknown";
  }

  static std::uint32_t doorbell_bytes(std::uint32_t offset) {
    return offset == abi::uar::kBlueFlame0 || offset == abi::uar::kBlueFlame1 ? 0 : sizeof(abi::SendDoorbell);
  }
  static_assert(sizeof(abi::SendDoorbell) == sizeof(abi::CqArm) && sizeof(abi::CqArm) == sizeof(abi::EqDoorbell));

  static std::vector<DoorbellTerm> make_doorbells() {
    std::vector<DoorbellTerm> terms;
    for (const auto& named : kDoorbellNames) terms.push_back({named.number, doorbell_bytes(named.number), named.name});
    return terms;
  }
  static std::vector<CommandTerm> make_commands() {
    std::vector<CommandTerm> terms;
    for (const auto& named : kCommandOpcodeNames)
      terms.push_back({static_cast<CommandOpcode>(named.number), named.name});
    return terms;
  }
  const std::vector<DoorbellTerm> doorbells_ = make_doorbells();
  const std::vector<CommandTerm> commands_ = make_commands();
};

}  // namespace

const DriverTerms& rnic_driver_terms() {
  static const RnicTerms terms;
  return terms;
}

}  // namespace rnicsim::nic
