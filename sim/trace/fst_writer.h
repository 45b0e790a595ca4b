// SPDX-License-Identifier: Apache-2.0
// Writes a file of waves in the format FST, by GTKWave's writer, which Verilator includes.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/units.h"

namespace rnicsim::sim {

class FstWriter {
 public:
  // Times are picoseconds. ConfigError: the file cannot be created.
  explicit FstWriter(const std::string& path);
  ~FstWriter();
  FstWriter(const FstWriter&) = delete;
  FstWriter& operator=(const FstWriter&) = delete;

  void open_scope(const std::string& name);
  void close_scope();
  using Signal = std::uint32_t;
  // A number of `bits` bits (at most 64), or a text. Add all signals before the first set_time().
  Signal add_number(const std::string& name, std::uint32_t bits);
  Signal add_text(const std::string& name);

  // Times must not decrease.
  void set_time(Duration at);
  void set(Signal signal, std::uint32_t bits, std::uint64_t value);
  void set(Signal signal, const std::string& text);
  // ConfigError: the file is incomplete.
  void finish(Duration end);

 private:
  const std::string path_;
  void* context_;
};

}  // namespace rnicsim::sim
