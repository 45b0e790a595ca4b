// SPDX-License-Identifier: Apache-2.0
// All engines must retire the same. Compared are WQEs, states, completions, events and sent requests (each once) of
// each QP. Times and the combination of acknowledgements are ignored.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "model/abi/command.h"
#include "model/roce/opcode.h"
#include "model/roce/types.h"
#include "sim/trace_file/trace_reader.h"
#include "tests/golden/behaviours.h"

namespace rnicsim::testing {
namespace {

using sim::EventKind;

// Key of a stream: host, kind, and QP number (or the number of another object of the event).
struct Stream {
  std::uint32_t host;
  EventKind kind;
  std::uint64_t number;
  auto operator<=>(const Stream&) const = default;
};
using Retired = std::map<Stream, std::vector<std::vector<std::uint64_t>>>;

// Events of the kernel before programs start: QP1, where the device supports datagrams, and the memory for it.
bool is_before_programs(EventKind kind, const std::vector<std::uint64_t>& fields) {
  constexpr std::uint64_t kManagementQpn = 1, kFirstOfPrograms = 2;
  if (kind == EventKind::qp_state) return fields[0] == kManagementQpn;
  if (kind != EventKind::device_command) return false;
  switch (abi::CommandOpcode(fields[0])) {
    case abi::CommandOpcode::map_icm: return true;
    case abi::CommandOpcode::create_cq: return fields[1] == 0;
    case abi::CommandOpcode::create_mpt:
    case abi::CommandOpcode::create_qp:
    case abi::CommandOpcode::modify_qp: return fields[1] < kFirstOfPrograms;
    default: return false;
  }
}

Retired retired_in(std::istream& file) {
  sim::TraceReader reader(file, "trace");
  Retired retired;
  std::set<std::pair<Stream, std::uint64_t>> sent;
  while (const auto event = reader.next()) {
    std::vector<std::uint64_t> fields(event->fields.begin(),
                                      event->fields.begin() + sim::info(event->kind).fields.size());
    if (is_before_programs(event->kind, fields)) continue;
    Stream stream{event->host, event->kind, fields.empty() ? 0 : fields[0]};
    switch (event->kind) {
      case EventKind::wqe:
      case EventKind::qp_state:
      case EventKind::device_command: break;
      case EventKind::cqe:
        fields[2] = 0;  // position in a CQ that several QPs may share
        break;
      case EventKind::eqe: stream.number = fields[2]; break;
      case EventKind::packet_sent: {
        const auto& row = roce::info(static_cast<roce::Opcode>(fields[1]));
        if (row.response() || !sent.emplace(stream, fields[2]).second) continue;
        break;
      }
      default: continue;
    }
    retired[stream].push_back(std::move(fields));
  }
  return retired;
}

// The number of requests that follow a refused request depends on the time until the NAK arrives.
bool fails(const Retired& retired, const Stream& stream) {
  const auto states = retired.find({stream.host, EventKind::qp_state, stream.number});
  return states != retired.end() && std::ranges::any_of(states->second, [](const auto& fields) {
           return fields[2] == std::uint64_t(roce::QpState::error);
         });
}

class Retires : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Retires, WhatTheGoldenTraceDoes) {
  const auto& behaviour = behaviours()[GetParam()];
  std::ifstream golden(golden_trace(behaviour), std::ios::binary);
  ASSERT_TRUE(golden) << behaviour.name;
  const auto recorded = BehaviourRun::record_apart(behaviour);
  if (!recorded) GTEST_SKIP() << behaviour.needs.parameter;
  std::istringstream fresh(*recorded);
  const auto wanted = retired_in(golden), got = retired_in(fresh);
  EXPECT_GT(wanted.size(), 10u);
  for (const auto& [stream, events] : wanted) {
    const auto found = got.find(stream);
    ASSERT_NE(found, got.end()) << sim::info(stream.kind).name << " of " << std::hex << stream.number;
    auto got_here = found->second, wanted_here = events;
    if (stream.kind == EventKind::packet_sent && fails(wanted, stream)) {
      const std::size_t both = std::min(got_here.size(), wanted_here.size());
      got_here.resize(both);
      wanted_here.resize(both);
    }
    EXPECT_EQ(got_here, wanted_here) << sim::info(stream.kind).name << " of " << std::hex << stream.number << " on h"
                                     << stream.host;
  }
  EXPECT_EQ(got.size(), wanted.size());
}

INSTANTIATE_TEST_SUITE_P(All, Retires, ::testing::Range(std::size_t{0}, behaviours().size()),
                         [](const auto& index) { return behaviours()[index.param].name; });

}  // namespace
}  // namespace rnicsim::testing
