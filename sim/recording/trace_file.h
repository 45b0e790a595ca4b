// Recorded traces as files: a zstd frame with the header, then frames of events.
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

// Bytes of a header: a system of ten thousand hosts has 2 MiB.
inline constexpr std::size_t kMostHeader = 16 << 20;

class TraceWriter final : public EventSink {
 public:
  // `out` stays; its state tells whether all could be written. ConfigError: the header is too large.
  TraceWriter(std::ostream& out, const TraceHeader& header);
  ~TraceWriter() override;  // unless finished, the file says by its missing end that it is not whole
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void write(const TraceEvent& event) override {
    // What a run that dies leaves must not depend on the wall clock, nor be long ago.
    if (block_.size() >= kBlockBytes || event.at - block_start_ >= kBlockTime) flush_block(event.at);
    encoder_.encode(event, block_);
    ++events_;
  }
  // The end mark. Nothing is written behind it.
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

// Trusts nothing in the file. Every TraceError begins with `name`.
class TraceReader {
 public:
  // Bytes that the reader may hold, whatever the file says: a frame, its compression window and the file's buffer. The
  // header comes on top: one frame of JSON of kMostHeader bytes at most.
  static constexpr std::size_t kMostHeld = 4 << 20;

  // Reads the header. `in` stays.
  TraceReader(std::istream& in, std::string name);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  const std::string& name() const { return name_; }
  // From now on next() gives none of this kind.
  void leave_out(EventKind kind) { left_out_.set(std::size_t(kind)); }
  const TraceHeader& header() const { return header_; }
  // nullopt, false: after the last event of a whole trace. A loop over many events gives its own TraceEvent again and
  // again.
  std::optional<TraceEvent> next();
  bool next(TraceEvent& event);
  // True: the next event is the one that `other` gave last, at the same time and byte for byte. It is taken without
  // being decoded again. False: next() tells.
  bool skip_same(const TraceReader& other);
  Duration end() const { return end_; }  // once next() gave nullopt
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
  std::span<const std::byte> rest_;      // of frame_
  std::span<const std::byte> last_;      // the last event, in frame_
  Duration last_at_, before_;            // times of the last event, and of the one before
  TraceHeader header_;
  EventDecoder decoder_{0};
  std::bitset<std::size_t(EventKind::count)> left_out_;
  std::uint64_t events_ = 0;
  Duration end_;
  bool ended_ = false;
};

}  // namespace rnicsim::sim
