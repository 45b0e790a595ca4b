// SPDX-License-Identifier: Apache-2.0
// Records the TLPs between devices and hosts (--record-tlps). The DMA unit computes the TLPs of a burst in closed form;
// the recorder divides each burst in the same way. All TLPs of a burst have the time at which the burst is issued, and
// completions the time at which the last one arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/recording/recorded_parts.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {

class Boundary;
class System;

class TlpRecorder {
 public:
  // Subscribes to every device. Make the object before the simulation starts; `sink` must live as long as the system.
  TlpRecorder(System& system, EventSink& sink, Addresses addresses);
  ~TlpRecorder();

 private:
  class Device;
  friend class Device;

  Duration time() const;

  EventSink& sink_;
  const Addresses addresses_;
  const Boundary* const boundary_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace rnicsim::sim
