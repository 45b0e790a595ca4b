// Follows the answers that a requester got, as far as to know what they answer for (IBTA vol 1, 9.7.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/replay/posted.h"

namespace rnicsim::sim::replay {

class Progress {
 public:
  // Writes outcomes, and what answers brought, into `requests`, whose order is that of their PSNs.
  Progress(std::vector<Posted>& requests, roce::Psn first) : requests_(requests), sent_(first), end_(first) {}

  void sent(roce::Psn end);
  enum class Answer : std::uint8_t {
    taken,      // as it comes, or a ghost of what was answered before
    not_ready,  // an RNR NAK for the oldest request
    missing,    // what is before it was not answered, or was not received
    fatal,      // a NAK that ends the connection
  };
  Answer take(const WirePacket& answer);
  // Of the first PSN that is not answered.
  roce::Psn oldest() const;
  bool all_answered() const { return oldest() == sent_; }
  // The requester gives up: the oldest request ends so, and the rest is flushed.
  void give_up(roce::Status status);

 private:
  bool answer_before(roce::Psn upto);
  Answer acknowledge(const WirePacket& answer);
  Answer take_data(const WirePacket& answer);
  void advance(std::uint32_t packets);

  std::vector<Posted>& requests_;
  roce::Psn sent_;              // one past the last PSN sent
  roce::Psn end_;               // one past the last PSN answered, when all are
  std::size_t at_ = 0;          // the oldest request that is not answered
  std::uint32_t answered_ = 0;  // PSNs of it
  bool ended_ = false;
};

}  // namespace rnicsim::sim::replay
