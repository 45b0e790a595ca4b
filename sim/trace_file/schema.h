// SPDX-License-Identifier: Apache-2.0
// Schema of a trace: the kinds of its events, with the names and types of their fields. Each trace has its schema in
// its header, so a reader finds the fields that it knows, and can name and skip all others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace_file/format.h"

namespace rnicsim::sim {

// Type of a field, with the unit: "hex", "number B", "duration ps".
std::string_view type_text(FieldStyle style);
// The kinds that this program writes, a line for each, in the order of their numbers: "eqe: eq number, number hex".
std::vector<std::string> own_schema();

// A kind of a file, with the places of its fields in a TraceEvent.
struct FileKind {
  static constexpr std::uint8_t kUnknown = 0xff;

  std::string name;
  const KindInfo* known = nullptr;      // nullptr: this program does not know the kind
  std::vector<std::string> fields;      // names
  std::vector<std::uint8_t> positions;  // by field; kUnknown: this program does not know the field
  bool is_own = false;                  // fields are the first of the known kind, in the same order
  bool is_whole = false;                // this program knows the kind and all of its fields

  bool operator==(const FileKind&) const = default;
};

class TraceSchema {
 public:
  // Schema of version 1, which has none in its header.
  static TraceSchema of_version_1();
  // TraceError: a line that is none, a name twice, too many kinds or fields, a known field with another type.
  explicit TraceSchema(std::span<const std::string> lines);

  std::span<const FileKind> kinds() const { return kinds_; }
  bool operator==(const TraceSchema&) const = default;

 private:
  TraceSchema() = default;

  std::vector<FileKind> kinds_;
};

}  // namespace rnicsim::sim
