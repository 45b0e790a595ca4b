// SPDX-License-Identifier: Apache-2.0
// A shared receive queue of a scripted node. Entry i is linked to entry i + 1.
#pragma once

#include "tests/unit/nic/scripted_node.h"

namespace rnicsim::nic::test {

class SharedRing {
 public:
  static constexpr std::uint8_t kLogEntries = 4;
  static constexpr std::uint8_t kLogStride = 6;
  static constexpr std::uint32_t kEntries = 1u << kLogEntries;

  // Maps memory for the contexts of all SRQs; call once per node.
  static void map_contexts(Node& node) {
    abi::MapIcm map;
    map.header.opcode = std::uint16_t(abi::CommandOpcode::map_icm);
    map.table = static_cast<std::uint32_t>(abi::IcmTable::srqc);
    map.count = 64;
    map.memory = node.host.allocate(64 * sizeof(abi::Srqc));
    ASSERT_EQ(node.command(map), abi::CommandStatus::ok);
  }

  SharedRing(Node& node, std::uint32_t srqn)
      : node_(node), srqn_(srqn), ring(node.host.allocate(kEntries << kLogStride)), record(node.host.allocate(64)) {
    for (std::uint32_t i = 0; i < kEntries; ++i) link(i, static_cast<std::uint16_t>((i + 1) % kEntries));
  }
  abi::CreateSrq mailbox() const {
    abi::CreateSrq create;
    create.header.opcode = std::uint16_t(abi::CommandOpcode::create_srq);
    create.header.object = srqn_;
    create.context.log_entries = kLogEntries;
    create.context.log_stride = kLogStride;
    create.context.pasid = kPasid;
    create.context.pd = kPd;
    create.context.ring = ring;
    create.context.doorbell_record = record;
    return create;
  }
  abi::CommandStatus create() { return node_.command(mailbox()); }
  abi::CommandStatus command(abi::CommandOpcode opcode) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = srqn_;
    return node_.command(header);
  }
  abi::Srqc query() {
    EXPECT_EQ(command(abi::CommandOpcode::query_srq), abi::CommandStatus::ok);
    return node_.output<abi::QuerySrq>().context;
  }
  abi::CommandStatus modify(std::uint32_t attributes, std::uint32_t limit, std::uint64_t new_ring = 0,
                            std::uint8_t log_entries = 0) {
    abi::ModifySrq modify;
    modify.header.opcode = std::uint16_t(abi::CommandOpcode::modify_srq);
    modify.header.object = srqn_;
    modify.attributes = attributes;
    modify.limit = limit;
    modify.ring = new_ring;
    modify.log_entries = log_entries;
    return node_.command(modify);
  }
  void link(std::uint32_t index, std::uint16_t next) {
    abi::SrqNextSegment segment;
    segment.next = next;
    node_.host.put(ring + (std::uint64_t{index} << kLogStride), segment);
  }
  void write(std::uint32_t index, std::uint64_t address, std::uint32_t bytes) {
    abi::DataSegment data[2];
    data[0].byte_count = bytes;
    data[0].lkey = kKey;
    data[0].address = address;
    data[1].lkey = abi::kInvalidLkey;
    node_.host.put(ring + (std::uint64_t{index} << kLogStride) + sizeof(abi::SrqNextSegment), data);
  }
  void announce(std::uint16_t producer) {
    abi::QpDoorbellRecord written;
    written.receive_producer = producer;
    node_.host.put(record, written);
  }
  void post(std::uint64_t address, std::uint32_t bytes) {
    write(posted_ % kEntries, address, bytes);
    announce(++posted_);
  }

 private:
  Node& node_;
  const std::uint32_t srqn_;
  std::uint16_t posted_ = 0;

 public:
  const std::uint64_t ring, record;
};

}  // namespace rnicsim::nic::test
