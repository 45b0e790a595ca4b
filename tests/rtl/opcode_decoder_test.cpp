// SPDX-License-Identifier: Apache-2.0
// Opcodes and their meaning are the same in rtl/ and model/.
#include <Vopcode_decoder.h>
#include <gtest/gtest.h>

#include "model/roce/opcode.h"
#include "rtl/cosim/coverage.h"

namespace rnicsim::rtl::test {
namespace {

// The engine does not support sends with invalidate and atomic writes.
bool is_of_engine(const roce::OpcodeInfo* row) {
  return row != nullptr && row->transport == roce::Transport::rc && row->operation != roce::Operation::atomic_write &&
         !row->has(roce::header::kInvalidate);
}

TEST(OpcodeDecoder, SaysWhatTheTableSays) {
  Vopcode_decoder decoder;
  int known = 0;
  for (int code = 0; code < 256; ++code) {
    SCOPED_TRACE(code);
    decoder.opcode_i = static_cast<std::uint8_t>(code);
    decoder.eval();
    const auto* row = roce::find_opcode(static_cast<std::uint8_t>(code));
    ASSERT_EQ(bool(decoder.known_o), is_of_engine(row));
    if (!decoder.known_o) continue;
    ++known;
    EXPECT_EQ(decoder.operation_o, static_cast<int>(row->operation));
    EXPECT_EQ(decoder.position_o, static_cast<int>(row->position));
    EXPECT_EQ(decoder.payload_o, static_cast<int>(row->payload));
    EXPECT_EQ(decoder.headers_o, row->headers);
  }
  EXPECT_EQ(known, 21);
  write_coverage(*decoder.contextp());
}

}  // namespace
}  // namespace rnicsim::rtl::test
