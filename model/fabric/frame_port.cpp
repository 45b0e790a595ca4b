// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/frame_port.h"

#include <utility>

#include "model/base/kernel.h"

namespace rnicsim::fabric {

void FramePort::send(Frame&& frame) {
  const auto took = timing_.time_for(frame);
  leaving_.send(std::move(frame), now(), took, 0);
}

void FramePort::receive(Frame&& frame, Duration delay) {
  if (link_up_) coming_.push(now() + delay, std::move(frame));
}

void FramePort::leave_due() {
  TransmitPort::Departure leaving;
  while (leaving_.pop_due(leaving))
    if (link_up_) out(std::move(leaving.frame));
}

void FramePort::arrive_due() {
  Frame frame;
  while (coming_.pop_due(frame))
    if (arrived) arrived(frame);
}

}  // namespace rnicsim::fabric
