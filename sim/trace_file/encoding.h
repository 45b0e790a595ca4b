// SPDX-License-Identifier: Apache-2.0
// Encoding of a trace's header and events. Decoding checks every value, and throws TraceError. Manual:
// traces/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/trace_file/format.h"
#include "sim/trace_file/leb128.h"
#include "sim/trace_file/schema.h"

namespace rnicsim::sim {

// Largest header in bytes. The header of a system with ten thousand hosts has 2 MiB.
inline constexpr std::size_t kMostHeader = 16 << 20;

void encode_header(const TraceHeader& header, std::vector<std::byte>& out);

struct FileHeader {
  std::uint32_t version;
  TraceHeader header;
  TraceSchema schema;
};
// Checks the first bytes of a header, before the whole header is read: a trace of a version that this program reads.
void check_header_start(std::span<const std::byte> bytes);
FileHeader decode_header(std::span<const std::byte> bytes);

// An event whose fields are encoded.
struct EncodedEvent {
  static constexpr std::size_t kMostFieldBytes = kMostNumberBytes * TraceEvent::kMostFields;

  Duration at;
  std::uint32_t host;
  EventKind kind;
  std::optional<std::uint32_t> qp;  // qp_of() the event
  std::span<const std::byte> fields;
};
// Encodes the fields of an event, without zeros at their end. Returns the end; `out` has room for kMostFieldBytes.
std::byte* encode_fields(const TraceEvent& event, std::byte* out);

// Encodes events, which must come in the order of time.
class EventEncoder {
 public:
  // Most bytes of an encoded event: length, kind, host, time and fields.
  static constexpr std::size_t kMostBytes = kMostNumberBytes * (TraceEvent::kMostFields + 4);

  // The next event begins a block: its time is the time since 0.
  void begin_block() { last_ = {}; }
  // Returns the end of the event. `out` has room for kMostBytes.
  std::byte* encode(const EncodedEvent& event, std::byte* out);
  void encode(const TraceEvent& event, std::vector<std::byte>& out);

 private:
  Duration last_;
};

class EventDecoder {
 public:
  // `schema` must outlive the decoder.
  EventDecoder(const TraceSchema& schema, std::size_t hosts) : kinds_(schema.kinds()), hosts_(hosts) {}

  void begin_block() { last_ = {}; }
  // Time from which the next event's time counts.
  Duration last() const { return last_; }
  // Removes one event from the front of `bytes`, which must not be empty. Returns its kind in the file; if this program
  // does not know that kind, only time and host of `event` are set. After a TraceError the contents of `event` are
  // undefined.
  const FileKind& decode(std::span<const std::byte>& bytes, TraceEvent& event);
  // The next event is equal to the last event of `other`, in its bytes and in its time.
  void skip_as(const EventDecoder& other) { last_ = other.last_; }

 private:
  void decode_fields(const FileKind& kind, std::span<const std::byte> body, TraceEvent& event) const;

  std::span<const FileKind> kinds_;
  std::size_t hosts_;
  Duration last_;
};

}  // namespace rnicsim::sim
