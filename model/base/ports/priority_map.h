// SPDX-License-Identifier: Apache-2.0
// Maps a frame to one of the port's priorities, by the DSCP of its IP header or by the PCP of its VLAN tag.
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
  enum class Trust : std::uint8_t { dscp, pcp };

  // Trusts DSCPs. Each DSCP has the priority of its class selector, DSCP / 8. A frame that is not IP has the priority
  // of DSCP 0. Each PCP is its own priority.
  PriorityMap() {
    for (std::size_t dscp = 0; dscp < kDscps; ++dscp) dscp_[dscp] = static_cast<std::uint8_t>(dscp / kPriorities);
    for (std::size_t pcp = 0; pcp < kPriorities; ++pcp) pcp_[pcp] = static_cast<std::uint8_t>(pcp);
  }
  // The default map with the changes in the texts: DSCPs as "26:3 40-47:5", PCPs as "3:4 6-7:6". nullopt: a text is not
  // such a list.
  static std::optional<PriorityMap> parse(std::string_view dscps, std::string_view pcps = {},
                                          Trust trust = Trust::dscp);

  std::uint8_t of(const Frame& frame) const { return of(frame.traffic_class(), frame.tag()); }
  // With Trust::pcp a frame without a tag has the priority of PCP 0.
  std::uint8_t of(std::uint8_t traffic_class, VlanTag tag) const {
    return trust_ == Trust::dscp ? dscp_[traffic_class / kEcnCodes] : pcp_[tag.pcp()];
  }
  // The priorities that some DSCP (or PCP) maps to, a bit each.
  std::uint32_t used() const {
    std::uint32_t bits = 0;
    if (trust_ == Trust::dscp)
      for (const auto priority : dscp_) bits |= 1u << priority;
    else
      for (const auto priority : pcp_) bits |= 1u << priority;
    return bits;
  }
  Trust trust() const { return trust_; }

 private:
  static constexpr std::size_t kDscps = 64;
  static constexpr std::size_t kEcnCodes = 4;  // a traffic class is DSCP (6 bits) and ECN (2 bits)

  Trust trust_ = Trust::dscp;
  std::array<std::uint8_t, kDscps> dscp_;
  std::array<std::uint8_t, kPriorities> pcp_;
};

// Parameters of a port, or of all ports of a switch. SONiC calls the maps DSCP_TO_TC_MAP and DOT1P_TO_TC_MAP.
struct PriorityParams {
  static constexpr const char* kTrustWords[] = {"dscp", "pcp"};

  std::string trust{kTrustWords[0]};
  std::string dscp_priority;
  std::string pcp_priority;

  PriorityMap::Trust trusted() const {
    return trust == kTrustWords[0] ? PriorityMap::Trust::dscp : PriorityMap::Trust::pcp;
  }
  PriorityMap map() const { return PriorityMap::parse(dscp_priority, pcp_priority, trusted()).value_or(PriorityMap()); }
  // Describes the parameters in the caller's group: they have no group of their own.
  void describe(ParamVisitor& visit) {
    visit.param("trust", trust,
                "source of a frame's priority: the DSCP of its IP header, or the PCP of its VLAN tag (IEEE 802.1Q); "
                "with pcp a frame without a tag has the priority of PCP 0",
                kTrustWords);
    visit.param("dscp_priority", dscp_priority,
                "which DSCP has which priority, such as \"26:3 40-47:5\"; other DSCPs have the priority DSCP / 8");
    visit.param("pcp_priority", pcp_priority,
                "which PCP has which priority, such as \"3:4 6-7:6\"; any other PCP is its own priority");
    visit.refuse(!PriorityMap::parse(dscp_priority), "dscp_priority",
                 "is not a list of DSCPs and priorities such as \"26:3 40-47:5\"");
    visit.refuse(!PriorityMap::parse({}, pcp_priority), "pcp_priority",
                 "is not a list of PCPs and priorities such as \"3:4 6-7:6\"");
    visit.idle(trusted() == PriorityMap::Trust::pcp, {"dscp_priority"}, "trust");
    visit.idle(trusted() == PriorityMap::Trust::dscp, {"pcp_priority"}, "trust");
  }
};

}  // namespace rnicsim
