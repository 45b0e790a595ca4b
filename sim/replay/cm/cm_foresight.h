// SPDX-License-Identifier: Apache-2.0
// Knowledge from later parts of a capture about the host above a port's communication manager: which services were
// listened to, and which timeouts were used. The replay needs it when a message arrives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/cm/connection_manager.h"
#include "sim/replay/cm/cm_traffic.h"

namespace rnicsim::sim::replay {

// Converts a time of the capture to the manager's, which runs 5 % faster. Reasons: Linux uses 2^(n-8) ms for 4.096 us x
// 2^n, which is 4.6 % less, and a capture's clock jitters.
Duration manager_time(Duration captured);

class CmForesight {
 public:
  // Keeps pointers into `traffic`, which must outlive this object.
  explicit CmForesight(const CmTraffic& traffic);

  cm::ConnectionManager::Params params() const { return params_; }
  // True: no listener for the service that the request names.
  bool refuses(const CmMessage& request) const;
  // Service timeout of the MRA that the port sent for this message; nullopt: it sent none.
  std::optional<cm::TimeCode> promises(const CmMessage& received) const;

  struct Patience {
    cm::TimeCode response_timeout;
    std::uint8_t retries;
  };
  // Timeout and retries for a SIDR_REQ of the port's: the message itself does not contain them.
  Patience patience(const CmMessage& request) const;

 private:
  using Messages = std::vector<const CmMessage*>;
  template <class Key>
  using Index = std::map<std::pair<roce::Gid, Key>, Messages>;

  template <class Suits>
  const CmMessage* first_answer(const CmMessage& received, Suits&& suits) const;

  cm::ConnectionManager::Params params_;
  Index<std::uint32_t> by_other_id_;  // messages that the port sent
  Index<std::uint64_t> by_transaction_;
};

}  // namespace rnicsim::sim::replay
