// SPDX-License-Identifier: Apache-2.0
// Writes the file of a trace: zstd frames of the header, the blocks of events and the index, then the trailer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

#include "sim/trace_file/encoding.h"
#include "sim/trace_file/trace_index.h"

namespace rnicsim::sim {

class TraceWriter final : public EventSink {
 public:
  // `out` must outlive the writer; its state shows whether all writes succeeded. ConfigError: the header is too large.
  TraceWriter(std::ostream& out, const TraceHeader& header);
  ~TraceWriter() override;  // without finish() the file lacks the end mark, and readers report it as incomplete
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void write(const TraceEvent& event) override;
  void write(const EncodedEvent& event) {
    begin_event(event.at);
    if (event.qp) index_.add(event.host, *event.qp);
    end_ = encoder_.encode(event, end_);
    ++events_;
  }
  // Writes the end mark and the index; no event may follow.
  void finish(Duration end);
  std::uint64_t events() const { return events_; }

 private:
  static constexpr std::size_t kBlockBytes = 32 << 10;
  static constexpr Duration kBlockTime{100'000'000'000};

  // Blocks end by size or simulated time, not wall time: a run that dies leaves a reproducible file that is nearly
  // complete.
  void begin_event(Duration at) {
    if (end_ == block_.get()) {
      first_ = at;
    } else if (end_ >= block_.get() + kBlockBytes || at - first_ >= kBlockTime) {
      flush_block();
      first_ = at;
    }
    last_ = at;
  }
  void flush_block();
  void write_index();
  // Returns the number of bytes in the file.
  std::uint64_t put_frame(std::span<const std::byte> content);

  struct Compressor;
  std::ostream& out_;
  std::unique_ptr<Compressor> compressor_;
  EventEncoder encoder_;
  std::unique_ptr<std::byte[]> block_;
  std::byte* end_;  // of the present block's events, in block_
  Duration first_, last_;
  std::uint64_t events_ = 0, events_before_ = 0;  // before the present block
  std::uint64_t offset_ = 0;
  TraceIndexBuilder index_;
  bool finished_ = false;
};

}  // namespace rnicsim::sim
