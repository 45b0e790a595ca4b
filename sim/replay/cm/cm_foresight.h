// What a capture shows, later on, of the host above a port's communication manager: who listened, and how patient it
// was. A replay needs it when a message comes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/cm/connection_manager.h"
#include "sim/replay/cm/cm_traffic.h"

namespace rnicsim::sim::replay {

// The capture's time as the manager's: a little faster. Linux takes 2^(n-8) ms for 4.096 us x 2^n, 4.6 % less, and a
// capture's clock jitters.
Duration manager_time(Duration captured);

class CmForesight {
 public:
  // Keeps pointers into `traffic`.
  explicit CmForesight(const CmTraffic& traffic);

  cm::ConnectionManager::Params params() const { return params_; }
  // Nobody listens for what that request names.
  bool refuses(const CmMessage& request) const;
  // The service timeout of the MRA that the port gave for it.
  std::optional<cm::TimeCode> promises(const CmMessage& received) const;

  struct Patience {
    cm::TimeCode response_timeout;
    std::uint8_t retries;
  };
  // Of a SIDR_REQ of the port's, which doesn't tell.
  Patience patience(const CmMessage& request) const;

 private:
  using Messages = std::vector<const CmMessage*>;
  template <class Key>
  using Index = std::map<std::pair<roce::Gid, Key>, Messages>;

  template <class Suits>
  const CmMessage* first_answer(const CmMessage& received, Suits&& suits) const;

  cm::ConnectionManager::Params params_;
  Index<std::uint32_t> by_other_id_;  // what the port sent
  Index<std::uint64_t> by_transaction_;
};

}  // namespace rnicsim::sim::replay
