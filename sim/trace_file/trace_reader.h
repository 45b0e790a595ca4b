// SPDX-License-Identifier: Apache-2.0
// Reads the file of a trace of unknown origin: checks everything.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace_file/encoding.h"
#include "sim/trace_file/trace_index.h"

namespace rnicsim::sim {

// Every TraceError begins with the name.
class TraceReader {
 public:
  // Upper limit of the bytes that the reader holds, for any file: a frame, its compression window and the file's
  // buffer. Header and index come in addition: a frame each, with at most kMostHeader and kMostIndex bytes.
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

  // --- Index. Call before the first event.
  // Returns the index at the end of the file. nullptr: there is none, because the trace is of version 1, is not
  // complete or too large, or is no file in which one can seek; next() then reads everything.
  const TraceIndex* read_index();
  // After read_index(): next() reads only blocks for which `wanted` is true. It is asked for each block in its turn.
  // Without this call, a reader of the whole trace compares the index with all blocks and their queue pairs. With it,
  // only the blocks that are read are compared: for all others the index is trusted.
  void read_only(std::function<bool(std::size_t block)> wanted);

  // A line for each kind that this program does not know, and for each kind with such fields, among the events so far.
  std::vector<std::string> unknown() const;

 private:
  struct Decompressor;

  bool read_event(TraceEvent& event);
  void read_header();
  bool next_frame();
  bool next_block();
  bool next_wanted_block();
  void move_to(std::uint64_t offset);
  bool is_encoded_as(const TraceReader& other);
  void end_block();
  void check_place(Duration at);
  void check_queue_pair(const TraceEvent& event);
  void finish(const TraceEvent& end);
  void expect_index();
  std::optional<TraceIndex> load_index();

  std::istream& in_;
  std::string name_;
  std::unique_ptr<Decompressor> decompressor_;
  std::unique_ptr<std::byte[]> buffer_;  // as large as the largest frame
  std::span<const std::byte> frame_;     // decompressed, in buffer_
  std::span<const std::byte> rest_;      // part of frame_ not yet decoded
  std::span<const std::byte> last_;      // bytes of the last event, in frame_
  Duration last_at_, before_;            // time of the last event, and the time from which its own counts
  std::size_t last_kind_ = 0;            // of the last event, in the schema
  std::uint32_t last_host_ = 0;
  std::optional<std::uint32_t> last_qp_;  // queue pair of the last event
  FileHeader file_;
  TraceHeader& header_ = file_.header;
  EventDecoder decoder_;
  std::bitset<std::size_t(EventKind::count)> left_out_;
  std::uint64_t begin_ = 0;  // place of the first block in the file
  std::uint64_t events_ = 0;
  Duration end_;
  bool ended_ = false;
  std::vector<std::uint64_t> unknown_;  // number of such events, by kind of the file

  TraceBlock block_;  // the present block, as far as it is read
  bool is_in_block_ = false;
  std::uint64_t blocks_ = 0;                  // number of blocks that were read
  std::uint64_t blocks_hash_ = 0;             // of their places, numbers and times
  std::optional<TraceIndexBuilder> checked_;  // of the whole trace; nullopt: no index to compare with
  std::optional<TraceIndex> index_;
  std::function<bool(std::size_t)> wanted_;  // empty: all blocks, without the index
  std::size_t next_block_ = 0;
  // Queue pairs that were found in the index, and the number behind the block: saves most look-ups.
  struct Found {
    std::uint32_t host = 0, qp = 0;
    std::size_t next_block = 0;
    bool operator==(const Found&) const = default;
  };
  std::array<Found, 64> found_{};
  const TraceReader* compared_with_ = nullptr;  // the reader of which is_encoded_alike_ says
  bool is_encoded_alike_ = false;
};

}  // namespace rnicsim::sim
