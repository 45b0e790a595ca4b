// SPDX-License-Identifier: Apache-2.0
// A frame sent to another process of the simulation: a packet goes as its decoded form, any other frame as its bytes.
// So the other process finds the same as this one.
#pragma once

#include "model/base/byte_stream.h"
#include "model/base/frame.h"

namespace rnicsim::nic {

void put_frame(ByteWriter& out, const Frame& frame);
// Throws std::runtime_error: the bytes are not a frame.
Frame take_frame(ByteReader& in);

}  // namespace rnicsim::nic
