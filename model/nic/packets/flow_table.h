// Which frames go to which queues: rules by priority, of which the first that matches takes the frame (ibv_create_flow,
// IBV_FLOW_ATTR_*). Rules of one priority that ask for the same share it; of others the older is first.
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
  Result add(std::uint32_t number, const FlowRule& rule);  // no_such: its counter
  Result remove(std::uint32_t number);
  bool leads_to(Qpn qpn) const;            // a rule does

  Result add_counter(std::uint32_t number);
  Result remove_counter(std::uint32_t number);  // in_use: by a rule
  const FlowCount* counter(std::uint32_t number) const;

  // No rule would take anything: a frame need not be looked at.
  bool takes_nothing() const { return rules_.empty(); }
  bool sniffs() const { return sniffers_ != 0; }
  // Who gets a frame of so many bytes; counts. `for_sniffers`: of sniffers alone, as a frame that another part of the
  // device takes. False: no rule does anything with it.
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
  std::vector<Entry> rules_;               // in the order in which they are tried
  std::uint32_t sniffers_ = 0;
  std::map<std::uint32_t, FlowCount> counters_;
};

}  // namespace rnicsim::nic
