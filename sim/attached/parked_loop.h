// A thread that waits in a loop of looks (empty polls, yields), which was proved to come round to the same state: while
// nothing changes that the loop can see, the times of its looks are known, and nobody has to make them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/units.h"

namespace rnicsim::sim {

class ParkedLoop {
 public:
  // As the thread describes it in its slot (Call::spin); nothing: it makes no sense.
  static std::optional<ParkedLoop> from(const abi::ThreadSlot& slot);

  // Whether the loop can see what the device wrote there.
  bool sees(std::uint64_t address, std::uint64_t bytes) const;

  struct Look {
    std::uint32_t index;      // in its round
    Duration begins, ends;
  };
  // The first look that ends at `visible` or later.
  Look first_look(Duration visible) const;

  bool only_stores = true;    // what ended the wait, so far: another thread may have stored something

 private:
  Duration begins_;           // of the first look of the first round
  Duration period_;
  std::vector<abi::LoopLook> looks_;
  std::vector<std::uint64_t> pages_;  // sorted
  bool reads_any_page_ = false;       // too many to name
};

}  // namespace rnicsim::sim
