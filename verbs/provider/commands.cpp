// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/commands.h"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace rnicsim::provider {

int to_errno(abi::CommandStatus status) {
  using enum abi::CommandStatus;
  switch (status) {
    case ok: return 0;
    case bad_parameter:
    case bad_state: return EINVAL;
    case bad_resource: return ENOENT;
    case resource_busy: return EBUSY;
    case exceeds_limit: return ENOMEM;
    case not_supported: return EOPNOTSUPP;
    case internal_error:
    case bad_opcode:
    case bad_input_length:
    case bad_output_length:
    case bad_mailbox: break;
  }
  return EIO;  // an error of the driver or the device, not of the caller
}

abi::CommandHeader header(abi::CommandOpcode opcode, std::uint32_t object) {
  return {.opcode = std::uint16_t(opcode), .object = object};
}

abi::MapIcm map_icm(abi::IcmTable table, std::uint32_t first_index, std::uint32_t count, std::uint64_t memory) {
  return {.header = header(abi::CommandOpcode::map_icm),
          .table = std::uint32_t(table),
          .first_index = first_index,
          .count = count,
          .memory = memory};
}

abi::MapIcm unmap_icm(abi::IcmTable table, std::uint32_t first_index, std::uint32_t count) {
  abi::MapIcm mailbox = map_icm(table, first_index, count, 0);
  mailbox.header = header(abi::CommandOpcode::unmap_icm);
  return mailbox;
}

abi::SetGid set_gid(std::uint32_t port, std::uint16_t index, std::span<const std::uint8_t, 16> gid,
                    std::span<const std::uint8_t, 6> mac, std::uint16_t vlan) {
  abi::SetGid mailbox{.header = header(abi::CommandOpcode::set_gid, port), .index = index, .valid = 1};
  mailbox.vlan = vlan;
  std::ranges::copy(gid, mailbox.gid);
  std::ranges::copy(mac, mailbox.mac);
  return mailbox;
}

abi::SetGid clear_gid(std::uint32_t port, std::uint16_t index) {
  return {.header = header(abi::CommandOpcode::set_gid, port), .index = index, .valid = 0};
}

abi::CreateEq create_eq(std::uint32_t eqn, const abi::Eqc& context) {
  return {header(abi::CommandOpcode::create_eq, eqn), context};
}

abi::CreateCq create_cq(std::uint32_t cqn, const abi::Cqc& context) {
  return {header(abi::CommandOpcode::create_cq, cqn), context};
}

abi::ModifyCq modify_cq(std::uint32_t cqn, std::uint16_t moderation_count, std::uint16_t moderation_period) {
  return {.header = header(abi::CommandOpcode::modify_cq, cqn),
          .moderation_count = moderation_count,
          .moderation_period = moderation_period};
}

abi::ResizeCq resize_cq(std::uint32_t cqn, std::uint64_t ring, std::uint8_t log_entries) {
  return {.header = header(abi::CommandOpcode::resize_cq, cqn), .ring = ring, .log_entries = log_entries};
}

abi::CreateMpt create_mpt(std::uint32_t index, const abi::Mpt& context) {
  return {header(abi::CommandOpcode::create_mpt, index), context};
}

abi::CreateMpt modify_mpt(std::uint32_t index, const abi::Mpt& context) {
  return {header(abi::CommandOpcode::modify_mpt, index), context};
}

abi::CreateSrq create_srq(std::uint32_t srqn, const abi::Srqc& context) {
  return {header(abi::CommandOpcode::create_srq, srqn), context};
}

abi::CreateQp create_qp(std::uint32_t qpn, const abi::Qpc& context) {
  return {header(abi::CommandOpcode::create_qp, qpn), context};
}

abi::ModifyQp modify_qp(std::uint32_t qpn, std::uint32_t attributes, const abi::Qpc& context) {
  return {.header = header(abi::CommandOpcode::modify_qp, qpn), .attributes = attributes, .context = context};
}

abi::CreateRss create_rss(std::uint32_t fields, std::span<const std::uint8_t, 40> key,
                          std::span<const std::uint32_t> qpns) {
  abi::CreateRss mailbox{.header = header(abi::CommandOpcode::create_rss), .fields = fields};
  mailbox.log_queues = std::uint8_t(std::bit_width(qpns.size()) - 1);
  std::ranges::copy(key, mailbox.key);
  std::ranges::copy(qpns, mailbox.queues);
  return mailbox;
}

abi::MulticastGroup attach_multicast(std::uint32_t qpn, std::span<const std::uint8_t, 16> group) {
  abi::MulticastGroup mailbox{.header = header(abi::CommandOpcode::attach_multicast, qpn)};
  std::ranges::copy(group, mailbox.gid);
  return mailbox;
}

abi::MulticastGroup detach_multicast(std::uint32_t qpn, std::span<const std::uint8_t, 16> group) {
  abi::MulticastGroup mailbox = attach_multicast(qpn, group);
  mailbox.header = header(abi::CommandOpcode::detach_multicast, qpn);
  return mailbox;
}

}  // namespace rnicsim::provider
