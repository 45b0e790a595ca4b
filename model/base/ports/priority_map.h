// SPDX-License-Identifier: Apache-2.0
// Maps a frame to one of the port's priorities by the DSCP of its IP header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/frame.h"
#include "model/base/params.h"

namespace rnicsim {

inline constexpr std::size_t kPriorities = 8;  // IEEE 802.1p

class PriorityMap {
 public:
  // Each DSCP has the priority of its class selector, DSCP / 8. A frame that is not IP has the priority of DSCP 0.
  PriorityMap() {
    for (std::size_t dscp = 0; dscp < kDscps; ++dscp) priorities_[dscp] = static_cast<std::uint8_t>(dscp / kPriorities);
  }
  // The default map with the changes in `text`, as "26:3 40-47:5". nullopt: the text is not such a list.
  static std::optional<PriorityMap> parse(std::string_view text);

  std::uint8_t of(const Frame& frame) const { return priorities_[frame.traffic_class() / kEcnCodes]; }
  std::uint8_t of_dscp(std::size_t dscp) const { return priorities_[dscp]; }
  // The priorities that some DSCP maps to, a bit each.
  std::uint32_t used() const {
    std::uint32_t bits = 0;
    for (const auto priority : priorities_) bits |= 1u << priority;
    return bits;
  }

 private:
  static constexpr std::size_t kDscps = 64;
  static constexpr std::size_t kEcnCodes = 4;  // a traffic class is DSCP (6 bits) and ECN (2 bits)
  std::array<std::uint8_t, kDscps> priorities_;
};

inline void describe_priorities(ParamVisitor& visit, std::string& dscp_priority) {
  visit.param("dscp_priority", dscp_priority,
              "which DSCP has which priority, such as \"26:3 40-47:5\"; the others have DSCP / 8");
  visit.refuse(!PriorityMap::parse(dscp_priority), "dscp_priority",
               "is no list of DSCPs and priorities such as \"26:3 40-47:5\"");
}

}  // namespace rnicsim
