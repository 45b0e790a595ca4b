// SPDX-License-Identifier: Apache-2.0
// Contents of command mailboxes, and the errno for a command status.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "model/abi/command.h"
#include "verbs/provider/dma.h"

namespace rnicsim::provider {

// 0 or a positive errno
int to_errno(abi::CommandStatus status);

// --- Inputs.
abi::CommandHeader header(abi::CommandOpcode opcode, std::uint32_t object = 0);
abi::MapIcm map_icm(abi::IcmTable table, std::uint32_t first_index, std::uint32_t count, std::uint64_t memory);
abi::MapIcm unmap_icm(abi::IcmTable table, std::uint32_t first_index, std::uint32_t count);
abi::SetGid set_gid(std::uint32_t port, std::uint16_t index, std::span<const std::uint8_t, 16> gid,
                    std::span<const std::uint8_t, 6> mac, std::uint16_t vlan = 0);  // 0: no VLAN
abi::SetGid clear_gid(std::uint32_t port, std::uint16_t index);
abi::CreateEq create_eq(std::uint32_t eqn, const abi::Eqc& context);
abi::CreateCq create_cq(std::uint32_t cqn, const abi::Cqc& context);
abi::ModifyCq modify_cq(std::uint32_t cqn, std::uint16_t moderation_count, std::uint16_t moderation_period);
abi::ResizeCq resize_cq(std::uint32_t cqn, std::uint64_t ring, std::uint8_t log_entries);
abi::CreateMpt create_mpt(std::uint32_t index, const abi::Mpt& context);
abi::CreateMpt modify_mpt(std::uint32_t index, const abi::Mpt& context);
abi::CreateSrq create_srq(std::uint32_t srqn, const abi::Srqc& context);
abi::CreateQp create_qp(std::uint32_t qpn, const abi::Qpc& context);
abi::ModifyQp modify_qp(std::uint32_t qpn, std::uint32_t attributes, const abi::Qpc& context);
// `qpns` has 2^n queues.
abi::CreateRss create_rss(std::uint32_t fields, std::span<const std::uint8_t, 40> key,
                          std::span<const std::uint32_t> qpns);
abi::MulticastGroup attach_multicast(std::uint32_t qpn, std::span<const std::uint8_t, 16> group);
abi::MulticastGroup detach_multicast(std::uint32_t qpn, std::span<const std::uint8_t, 16> group);

// --- Mailboxes as bytes. decode() sets fields beyond the end of `bytes` to zero.
template <class Mailbox>
std::span<const std::byte> encode(const Mailbox& mailbox) {
  return bytes_of(mailbox);
}

template <class Mailbox>
Mailbox decode(std::span<const std::byte> bytes) {
  Mailbox mailbox{};
  if (!bytes.empty()) std::memcpy(static_cast<void*>(&mailbox), bytes.data(), std::min(bytes.size(), sizeof mailbox));
  return mailbox;
}

}  // namespace rnicsim::provider
