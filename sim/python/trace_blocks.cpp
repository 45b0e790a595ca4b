// SPDX-License-Identifier: Apache-2.0
#include "sim/python/trace_blocks.h"

#include <utility>

namespace rnicsim::sim::python {
namespace {

void add(std::vector<std::uint64_t>& words, const TraceEvent& event) {
  words.push_back(std::uint64_t(event.at.ps));
  words.push_back(event.host);
  const auto fields = event.fields.begin();
  words.insert(words.end(), fields, fields + std::ptrdiff_t(info(event.kind).fields.size()));
}

}  // namespace

TraceBlocks::Block TraceBlocks::next(std::size_t most) {
  if (damage_) throw TraceError(*std::exchange(damage_, std::nullopt));
  Block block;
  TraceEvent event;
  std::size_t count = 0;
  try {
    for (; count < most && !ended_; ++count) {
      ended_ = !source_.next(event);
      if (ended_) break;
      auto& rows = block[std::size_t(event.kind)];
      if (!rows) rows = std::make_shared<EventRows>();
      add(rows->words, event);
    }
  } catch (const TraceError& error) {
    ended_ = true;
    if (count == 0) throw;
    damage_ = error.what();
  }
  return block;
}

}  // namespace rnicsim::sim::python
