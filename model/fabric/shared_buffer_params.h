// SPDX-License-Identifier: Apache-2.0
// Parameters of a switch's shared packet memory, named as in SONiC: a buffer pool, a profile for lossless priorities
// and a profile for lossy ones.
#pragma once

#include <string>

#include "model/base/params.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

// Profile of lossless input buffers (port, priority).
struct LosslessProfile {
  ByteCount size = 0_B;
  double dynamic_th = 0;
  ByteCount static_th = 64_KiB;
  ByteCount xon = 18_KiB;
  ByteCount xon_offset = 2'496_B;
  ByteCount xoff = 64_KiB;

  void describe(ParamVisitor& visit) {
    visit.param("size", size, "bytes reserved for each port and priority; not part of the shared bytes", {0, 1e12});
    visit.param(
        "dynamic_th", dynamic_th,
        "log2 of alpha: a port's priority may hold alpha times the free shared bytes; with more bytes the switch "
        "pauses the sender; with mode dynamic",
        {-8, 8});
    visit.param("static_th", static_th, "shared bytes that a port's priority may hold; with mode static", {0, 1e12});
    visit.param("xon", xon, "bytes held at which the sender may send again", {0, 1e12});
    visit.param("xon_offset", xon_offset, "or the threshold minus these bytes, if this is more than xon; 0: only xon",
                {0, 1e12});
    visit.param("xoff", xoff,
                "headroom: bytes beyond the threshold for frames that arrive until the pause takes effect; further "
                "frames are lost",
                {0, 1e12});
  }
};

// Profile of lossy output queues (port, priority).
struct LossyProfile {
  ByteCount size = 0_B;
  double dynamic_th = 0;
  ByteCount static_th{64_MiB};

  void describe(ParamVisitor& visit) {
    visit.param("size", size, "bytes reserved for each port and priority; not part of the shared bytes", {0, 1e12});
    visit.param("dynamic_th", dynamic_th,
                "log2 of alpha: a queue may hold alpha times the free shared bytes, then frames are lost; with "
                "mode dynamic",
                {-8, 8});
    visit.param("static_th", static_th, "shared bytes that a queue may hold; with mode static", {0, 1e12});
  }
};

struct SharedBufferParams {
  static constexpr const char* kModeWords[] = {"dynamic", "static"};

  ByteCount size = 0_B;
  std::string mode{kModeWords[0]};
  ByteCount headroom_pool = 0_B;
  LosslessProfile lossless;
  LossyProfile lossy;

  bool is_dynamic() const { return mode == kModeWords[0]; }

  void describe(ParamVisitor& visit) {
    visit.param("size", size,
                "packet memory of all ports together, reserved bytes included and headroom not; 0: nothing is shared, "
                "and pfc.xoff, pfc.xon and pfc.headroom hold. port_buffer holds in both cases",
                {0, 1e12});
    visit.param("mode", mode,
                "limit of a queue: a share of the free bytes (dynamic_th), or a number of bytes (static_th)",
                kModeWords);
    visit.param("headroom_pool", headroom_pool,
                "headroom of all ports together (SONiC: a pool's xoff); 0: each port and priority has lossless.xoff "
                "for itself",
                {0, 1e12});
    visit.group("lossless", lossless);
    visit.group("lossy", lossy);
    visit.refuse(headroom_pool.bytes != 0 && lossless.xoff > headroom_pool, "lossless.xoff", "is more than",
                 "headroom_pool");
    visit.refuse(headroom_pool > size, "headroom_pool", "is more than", "size");
    visit.refuse(size.bytes != 0 && lossless.size > size, "lossless.size", "is more than", "size");
    visit.refuse(size.bytes != 0 && lossy.size > size, "lossy.size", "is more than", "size");
    visit.refuse(size.bytes != 0 && !is_dynamic() && lossy.static_th.bytes == 0 && lossy.size.bytes == 0,
                 "lossy.static_th", "is 0: no frame would fit");
    visit.idle(size.bytes == 0, {"mode", "headroom_pool", "lossless", "lossy"}, "size");
    visit.idle(is_dynamic(), {"lossless.static_th", "lossy.static_th"}, "mode");
    visit.idle(!is_dynamic(), {"lossless.dynamic_th", "lossy.dynamic_th"}, "mode");
  }
};

}  // namespace rnicsim::fabric
