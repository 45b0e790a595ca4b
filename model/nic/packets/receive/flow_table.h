// SPDX-License-Identifier: Apache-2.0
// Flow rules: assign frames to queues, by priority; the first matching rule takes the frame (ibv_create_flow,
// IBV_FLOW_ATTR_*). Rules of equal priority and equal conditions share the frame; among others of equal priority the
// older is first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/nic/packets/frame_headers.h"
#include "model/nic/personality/flows.h"

namespace rnicsim::nic {

struct FlowHit {
  Qpn destination;
  std::optional<std::uint32_t> tag;

  bool operator==(const FlowHit&) const = default;
};

struct FlowCount {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

struct FlowLimits {
  std::uint32_t rules = 0;
  std::uint32_t counters = 0;
};

class FlowTable {
 public:
  static constexpr std::size_t kMostConditions = 16;

  explicit FlowTable(const FlowLimits& limits) : limits_(limits) {}

  enum class Result : std::uint8_t { done, exists, no_such, no_room, in_use };
  Result add(std::uint32_t number, const FlowRule& rule);  // no_such: the rule's counter
  Result remove(std::uint32_t number);
  bool leads_to(Qpn qpn) const;  // a rule has this destination

  Result add_counter(std::uint32_t number);
  Result remove_counter(std::uint32_t number);  // in_use: a rule uses it
  const FlowCount* counter(std::uint32_t number) const;

  // No rule can match: frames need not be parsed.
  bool takes_nothing() const { return rules_.empty(); }
  bool sniffs() const { return sniffers_ != 0; }
  // Appends the destinations of a frame, and counts it. `for_sniffers`: sniffer rules only, as for a frame that another
  // part of the device takes. False: no rule matches.
  bool look_up(const FrameHeaders& headers, std::uint32_t bytes, bool for_sniffers, std::vector<FlowHit>& hits);
  void clear();

 private:
  struct Entry {
    std::uint32_t number;
    FlowRule rule;
  };

  enum class Outcome : std::uint8_t { none, passed_on, taken };
  Outcome look_up_normal(const FrameHeaders& headers, std::uint32_t bytes, std::vector<FlowHit>& hits);
  void hit(const FlowRule& rule, std::uint32_t bytes, std::vector<FlowHit>& hits);

  const FlowLimits limits_;
  std::vector<Entry> rules_;  // in the order in which they are tried
  std::uint32_t sniffers_ = 0;
  std::map<std::uint32_t, FlowCount> counters_;
};

}  // namespace rnicsim::nic
