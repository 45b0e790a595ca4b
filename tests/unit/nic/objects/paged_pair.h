// SPDX-License-Identifier: Apache-2.0
// Two NICs with paged regions. Each driver maps memory for the MTT and writes the entries itself.
#pragma once

#include <map>

#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {

using abi::CommandStatus;

constexpr std::uint32_t kPagedKey = 9 << 8 | 0x21;
constexpr std::uint32_t kPage = 4096, kPages = 8, kFirst = 5;
constexpr std::uint64_t kIova = 0x123456789;  // not page-aligned: pages of the region count from this address

inline NicParams with_caches(std::uint32_t l0, std::uint32_t l1) {
  NicParams params;
  for (auto* cache : {&params.contexts.mpt, &params.contexts.mtt}) {
    cache->l0_entries = l0;
    cache->l1_entries = l1;
  }
  return params;
}

class Pages : public Pair {
 protected:
  void lend(Node& node) {
    abi::MapIcm map;
    map.header.opcode = std::uint16_t(abi::CommandOpcode::map_icm);
    map.table = std::uint32_t(abi::IcmTable::mtt);
    map.count = 64;
    map.memory = tables_[&node] = node.host.allocate(64 * sizeof(abi::Mtt));
    EXPECT_EQ(node.command(map), CommandStatus::ok);
  }
  // Page i of the region lies at memory + place(i) * kPage.
  template <class Place>
  void write_entries(Node& node, std::uint64_t memory, Place&& place) {
    for (std::uint32_t i = 0; i < kPages; ++i)
      node.host.put(tables_[&node] + (kFirst + i) * sizeof(abi::Mtt), abi::Mtt{memory + place(i) * kPage});
  }
  CommandStatus make(Node& node, std::uint32_t key, std::uint64_t bytes = kPages * kPage, std::uint8_t log_page = 12,
                     std::uint32_t first_page = kFirst) {
    auto mpt = node.region(key, 0xbad, bytes, 0xf);
    mpt.context.start = kIova;
    mpt.context.bus_address = 0;
    mpt.context.log_page = log_page;
    mpt.context.first_page = first_page;
    return node.command(mpt);
  }
  CommandStatus destroy(Node& node, std::uint32_t key) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(abi::CommandOpcode::destroy_mpt);
    header.object = key >> 8;
    return node.command(header);
  }

  std::map<Node*, std::uint64_t> tables_;
};

inline std::uint32_t backwards(std::uint32_t page) { return kPages - 1 - page; }
inline std::uint32_t forwards(std::uint32_t page) { return page; }

}  // namespace rnicsim::nic::test
