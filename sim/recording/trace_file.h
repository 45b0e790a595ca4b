// SPDX-License-Identifier: Apache-2.0
// Files of recorded traces: one zstd frame with the header, then zstd frames with events.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/recording/format.h"

namespace rnicsim::sim {

// Largest header in bytes. The header of a system with ten thousand hosts has 2 MiB.
inline constexpr std::size_t kMostHeader = 16 << 20;

class TraceWriter final : public EventSink {
 public:
  // `out` must outlive the writer; its state shows whether all writes succeeded. ConfigError: the header is too large.
  TraceWriter(std::ostream& out, const TraceHeader& header);
  ~TraceWriter() override;  // without finish() the file lacks the end mark, and readers report it as incomplete
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void write(const TraceEvent& event) override {
    // Blocks end by size or simulated time, not wall time: a run that dies leaves a reproducible file that is nearly
    // complete.
    if (block_.size() >= kBlockBytes || event.at - block_start_ >= kBlockTime) flush_block(event.at);
    encoder_.encode(event, block_);
    ++events_;
  }
  // Writes the end mark; no event may follow.
  void finish(Duration end);
  std::uint64_t events() const { return events_; }

 private:
  static constexpr std::size_t kBlockBytes = 32 << 10;
  static constexpr Duration kBlockTime{100'000'000'000};

  void flush_block(Duration next);
  void put_frame(std::span<const std::byte> content);

  struct Compressor;
  std::ostream& out_;
  std::unique_ptr<Compressor> compressor_;
  EventEncoder encoder_;
  std::vector<std::byte> block_;
  Duration block_start_;
  std::uint64_t events_ = 0;
  bool finished_ = false;
};

// Reads a file of unknown origin: checks everything. Every TraceError begins with `name`.
class TraceReader {
 public:
  // Upper limit of the bytes that the reader holds, for any file: a frame, its compression window and the file's
  // buffer. The header comes in addition: one frame of JSON with at most kMostHeader bytes.
  static constexpr std::size_t kMostHeld = 4 << 20;

  // Reads the header. `in` must outlive the reader.
  TraceReader(std::istream& in, std::string name);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  const std::string& name() const { return name_; }
  // next() skips events of this kind from now on.
  void leave_out(EventKind kind) { left_out_.set(std::size_t(kind)); }
  const TraceHeader& header() const { return header_; }
  // nullopt or false: after the last event of a complete trace. For many events, pass the same TraceEvent again and
  // again.
  std::optional<TraceEvent> next();
  bool next(TraceEvent& event);
  // True: the next event equals the last event of `other`, in time and byte for byte; it is consumed without being
  // decoded. False: use next().
  bool skip_same(const TraceReader& other);
  Duration end() const { return end_; }  // valid after next() has returned nullopt or false
  std::size_t held_bytes() const;

 private:
  bool read_event(TraceEvent& event);
  void read_header();
  bool next_frame();
  void expect_nothing_more();

  struct Decompressor;
  std::istream& in_;
  std::string name_;
  std::unique_ptr<Decompressor> decompressor_;
  std::unique_ptr<std::byte[]> buffer_;  // as large as the largest frame
  std::span<const std::byte> frame_;     // decompressed, in buffer_
  std::span<const std::byte> rest_;      // part of frame_ not yet decoded
  std::span<const std::byte> last_;      // bytes of the last event, in frame_
  Duration last_at_, before_;            // times of the last event and of the event before it
  TraceHeader header_;
  EventDecoder decoder_{0};
  std::bitset<std::size_t(EventKind::count)> left_out_;
  std::uint64_t events_ = 0;
  Duration end_;
  bool ended_ = false;
};

}  // namespace rnicsim::sim
