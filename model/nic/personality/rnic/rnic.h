// SPDX-License-Identifier: Apache-2.0
// Layouts of the device in docs/device.md.
#pragma once

#include "model/abi/big_endian.h"
#include "model/abi/context.h"
#include "model/abi/queue.h"
#include "model/nic/personality/personality.h"

namespace rnicsim::nic {

inline constexpr std::uint64_t kFirmware = 1ull << 32;  // major << 32 | minor << 16 | patch

class RnicPersonality final : public Personality {
 public:
  RnicPersonality();

  // --- registers.cpp
  bool read_registers(const DeviceRegisters& registers, std::uint32_t offset, std::span<std::byte> out) const override;
  std::optional<RegisterWrite> write_registers(const DeviceRegisters& registers, std::uint32_t offset,
                                               std::span<const std::byte> data) const override;

  // --- queues.cpp
  DoorbellWrite decode_doorbell(std::uint32_t offset, std::span<const std::byte> data) const override;
  std::uint16_t receives_posted(std::span<const std::byte> record) const override;
  std::uint32_t cqes_consumed(std::span<const std::byte> record) const override;
  std::optional<std::uint16_t> send_blocks(std::span<const std::byte> wqe) const override;
  void decode_send(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index, const SendRules& rules, SendWqe& wqe,
                   roce::SendRequest& request) const override;
  ReceiveWqe decode_receive(std::span<const std::byte> bytes, std::uint16_t index) const override;
  SharedReceive decode_shared_receive(std::span<const std::byte> entry, std::uint16_t index) const override;
  void encode(const Cqe& cqe, const CqePlace& place, std::span<const std::byte> brought,
              std::span<std::byte> bytes) const override;
  void encode(EventType type, std::uint32_t number, bool owner, std::span<std::byte> bytes) const override;

  // --- contexts.cpp
  void decode(std::span<const std::byte> bytes, QpContext& context) const override;
  void decode(std::span<const std::byte> bytes, CompletionQueue& queue) const override;
  void decode(std::span<const std::byte> bytes, EventQueueContext& queue) const override;
  void decode(std::span<const std::byte> bytes, SharedReceiveQueue& queue) const override;
  void decode(std::span<const std::byte> bytes, MemoryRegion& region) const override;
  void decode(std::span<const std::byte> bytes, PageEntry& page) const override;
  void encode(const QpContext& context, std::span<std::byte> bytes) const override;
  void encode(const CompletionQueue& queue, std::span<std::byte> bytes) const override;
  void encode(const EventQueueContext& queue, std::span<std::byte> bytes) const override;
  void encode(const SharedReceiveQueue& queue, std::span<std::byte> bytes) const override;
  void encode(const MemoryRegion& region, std::span<std::byte> bytes) const override;

  // --- commands.cpp
  CommandEntry decode_command_entry(std::span<const std::byte> entry) const override;
  Command decode_command(std::span<const std::byte> mailbox, std::uint32_t output_bytes) const override;
  std::vector<std::byte> encode(const CommandResult& result, const CommandOutput& output) const override;
  std::vector<std::byte> command_done(CommandStatus status) const override;

 private:
  static DoorbellWrite decode_blueflame(std::span<const std::byte> data);
};

// Conversion of contexts, which are also parts of mailboxes.
QpContext context_of(const abi::Qpc& layout);
CompletionQueue context_of(const abi::Cqc& layout);
EventQueueContext context_of(const abi::Eqc& layout);
SharedReceiveQueue context_of(const abi::Srqc& layout);
MemoryRegion context_of(const abi::Mpt& layout);
abi::Qpc layout_of(const QpContext& context);
abi::Cqc layout_of(const CompletionQueue& context);
abi::Eqc layout_of(const EventQueueContext& context);
abi::Srqc layout_of(const SharedReceiveQueue& context);
abi::Mpt layout_of(const MemoryRegion& context);
Path path_of(const abi::AddressVector& vector);
std::uint64_t feature_bits(const DeviceFeatures& features);

}  // namespace rnicsim::nic
