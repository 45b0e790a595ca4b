// A frame on its way to another process: a packet goes as what its sender meant, anything else as its bytes. So the
// other side finds what it would have found here.
#pragma once

#include "model/base/byte_stream.h"
#include "model/base/frame.h"

namespace rnicsim::nic {

void put_frame(ByteWriter& out, const Frame& frame);
// std::runtime_error: it is none.
Frame take_frame(ByteReader& in);

}  // namespace rnicsim::nic
