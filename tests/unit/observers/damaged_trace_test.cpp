// SPDX-License-Identifier: Apache-2.0
// A golden trace that is truncated or damaged: one clear error or the events before the damage, with bounded memory.
#include <gmock/gmock.h>
#include <zstd.h>

#include <fstream>
#include <sstream>

#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim::damaged_trace_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::string golden_trace() {
  std::ifstream file(RNICSIM_SOURCE_DIR "/traces/golden/rc_send.trace", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Reading {
  std::vector<TraceEvent> events;
  std::string error;  // empty: no error
};

Reading read(const std::string& file) {
  Reading reading;
  std::istringstream in(file);
  try {
    TraceReader reader(in, "file");
    EXPECT_LE(reader.held_bytes(), TraceReader::kMostHeld);
    for (TraceEvent event; reader.next(event);) {
      reading.events.push_back(event);
      EXPECT_LE(reader.held_bytes(), TraceReader::kMostHeld);
    }
  } catch (const TraceError& error) {
    reading.error = error.what();
    EXPECT_THAT(reading.error, StartsWith("file: "));
    EXPECT_THAT(reading.error, Not(HasSubstr("\n")));
  }
  return reading;
}

// The events are the first events of the whole trace.
void expect_start(const Reading& reading, const Reading& whole, const std::string& where) {
  ASSERT_LE(reading.events.size(), whole.events.size()) << where;
  EXPECT_TRUE(std::equal(reading.events.begin(), reading.events.end(), whole.events.begin())) << where;
}

TEST(DamagedTrace, CutAtEachByte) {
  const auto file = golden_trace();
  const auto whole = read(file);
  ASSERT_EQ(whole.error, "");
  ASSERT_GT(whole.events.size(), 20u);
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto part = read(file.substr(0, length));
    EXPECT_NE(part.error, "") << length << " bytes";
    expect_start(part, whole, std::to_string(length) + " bytes");
  }
}

// The checksum of a frame finds damage of its content. A bit that zstd does not use changes nothing.
TEST(DamagedTrace, EachBitFlipped) {
  const auto file = golden_trace();
  const auto whole = read(file);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    auto damaged = file;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << bit % 8));
    const auto reading = read(damaged);
    if (reading.error.empty()) {
      EXPECT_EQ(reading.events.size(), whole.events.size()) << "bit " << bit;
    }
    expect_start(reading, whole, "bit " + std::to_string(bit));
  }
}

// A frame may require a window of gigabytes: the reader refuses it without an allocation.
TEST(DamagedTrace, AFrameThatAsksForMuchMemory) {
  constexpr int kWindowLog = 27;
  const std::string content(1000, 'x');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kWindowLog);
  std::string file(ZSTD_compressBound(content.size()), '\0');
  // The size is not known when the frame begins, so the frame states the whole window.
  ZSTD_inBuffer input{content.data(), content.size(), 0};
  ZSTD_outBuffer output{file.data(), file.size(), 0};
  ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush);
  ASSERT_EQ(ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  file.resize(output.pos);
  EXPECT_EQ(read(file).error, "file: damaged: Frame requires too much memory for decoding");
}

}  // namespace
}  // namespace rnicsim::sim::damaged_trace_test
