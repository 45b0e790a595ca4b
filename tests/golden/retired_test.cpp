// Does every engine retire the same? Per QP: WQEs, states, completions, events, and the requests that went out, each
// once; whatever their times, and however acknowledgements were put together.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "model/roce/opcode.h"
#include "sim/recording/trace_file.h"
#include "tests/golden/behaviours.h"

namespace rnicsim::testing {
namespace {

using sim::EventKind;

// Of one host, of one kind, of one QP (or what else the event is about).
struct Stream {
  std::uint32_t host;
  EventKind kind;
  std::uint64_t number;
  auto operator<=>(const Stream&) const = default;
};
using Retired = std::map<Stream, std::vector<std::vector<std::uint64_t>>>;

Retired retired_in(std::istream& file) {
  sim::TraceReader reader(file, "trace");
  Retired retired;
  std::set<std::pair<Stream, std::uint64_t>> sent;
  while (const auto event = reader.next()) {
    std::vector<std::uint64_t> fields(event->fields.begin(),
                                      event->fields.begin() + sim::info(event->kind).fields.size());
    Stream stream{event->host, event->kind, fields.empty() ? 0 : fields[0]};
    switch (event->kind) {
      case EventKind::wqe:
      case EventKind::qp_state:
      case EventKind::device_command:
        break;
      case EventKind::cqe:
        fields[2] = 0;  // its place in a CQ that several QPs may share
        break;
      case EventKind::eqe:
        stream.number = fields[2];
        break;
      case EventKind::packet_sent: {
        const auto& row = roce::info(static_cast<roce::Opcode>(fields[1]));
        if (row.response() || !sent.emplace(stream, fields[2]).second) continue;
        break;
      }
      default:
        continue;
    }
    retired[stream].push_back(std::move(fields));
  }
  return retired;
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
    EXPECT_EQ(found->second, events) << sim::info(stream.kind).name << " of " << std::hex << stream.number << " on h"
                                     << stream.host;
  }
  EXPECT_EQ(got.size(), wanted.size());
}

INSTANTIATE_TEST_SUITE_P(All, Retires, ::testing::Range(std::size_t{0}, behaviours().size()),
                         [](const auto& index) { return behaviours()[index.param].name; });

}  // namespace
}  // namespace rnicsim::testing
