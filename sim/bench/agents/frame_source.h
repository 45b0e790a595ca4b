// SPDX-License-Identifier: Apache-2.0
// Frames that a sender of raw packets makes for one receiver: UDP datagrams of several flows in turn.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sim/bench/agents/station.h"

namespace rnicsim::sim::bench {

class FrameSource {
 public:
  FrameSource(const Station& from, const Station& to, std::uint64_t seed);

  // Fills a work request for the next frame, of `bytes` bytes. The frame must stay at `at` in `memory` until it is
  // sent.
  void fill(ibv_send_wr& wr, ibv_sge& sge, const Region& memory, std::uint64_t at, std::uint32_t bytes);

 private:
  using Headers = std::array<std::uint8_t, RawOptions::kHeaderBytes>;

  const RawOptions& options_;
  std::vector<Headers> headers_;  // by flow
  std::size_t next_ = 0;
};

}  // namespace rnicsim::sim::bench
