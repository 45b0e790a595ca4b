// SPDX-License-Identifier: Apache-2.0
// Tracks which requests the captured answers complete (IBTA vol 1, 9.7.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/replay/posted.h"

namespace rnicsim::sim::replay {

class Progress {
 public:
  // Writes outcomes and returned data into `requests`, which must be in the order of their PSNs.
  Progress(std::vector<Posted>& requests, roce::Psn first) : requests_(requests), sent_(first), end_(first) {}

  void sent(roce::Psn end);
  enum class Answer : std::uint8_t {
    taken,      // expected, or a duplicate of an earlier answer
    not_ready,  // an RNR NAK for the oldest request
    missing,    // an answer or a request before it is missing
    fatal,      // a NAK that ends the connection
  };
  Answer take(const WirePacket& answer);
  // First PSN without an answer.
  roce::Psn oldest() const;
  bool all_answered() const { return oldest() == sent_; }
  // The requester gives up: the oldest request gets `status`, later ones are flushed.
  void give_up(roce::Status status);

 private:
  bool answer_before(roce::Psn upto);
  Answer acknowledge(const WirePacket& answer);
  Answer take_data(const WirePacket& answer);
  void advance(std::uint32_t packets);

  std::vector<Posted>& requests_;
  roce::Psn sent_;              // one past the last PSN sent
  roce::Psn end_;               // one past the last PSN answered, once all are answered
  std::size_t at_ = 0;          // index of the oldest request without a full answer
  std::uint32_t answered_ = 0;  // number of its PSNs that are answered
  bool ended_ = false;
};

}  // namespace rnicsim::sim::replay
