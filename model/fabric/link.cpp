#include "model/fabric/link.h"

namespace rnicsim::fabric {

Link::Link(sc_core::sc_module_name name, const LinkParams& params) : sc_module(name), params_(params) {
  SC_HAS_PROCESS(Link);
  SC_METHOD(deliver_due);
  sensitive << queue_.event();
  dont_initialize();
}

void Link::send(std::size_t end, Frame frame) {
  const auto other = kEnds - 1 - end;
  travelling_[other].push_back(std::move(frame));
  queue_.push(now() + params_.latency, other);
}

void Link::deliver_due() {
  std::size_t end;
  while (queue_.pop_due(end)) {
    auto frame = std::move(travelling_[end].front());
    travelling_[end].pop_front();
    out_[end](std::move(frame));
  }
}

}  // namespace rnicsim::fabric
