// A file of waves in the format FST, by GTKWave's own writer, which comes with Verilator.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/units.h"

namespace rnicsim::sim {

class FstWriter {
 public:
  // ConfigError: the file cannot be made. Times are picoseconds.
  explicit FstWriter(const std::string& path);
  ~FstWriter();
  FstWriter(const FstWriter&) = delete;
  FstWriter& operator=(const FstWriter&) = delete;

  void open_scope(const std::string& name);
  void close_scope();
  using Signal = std::uint32_t;
  // A number of so many bits, 64 at most; a text. To be made before the first set().
  Signal add_number(const std::string& name, std::uint32_t bits);
  Signal add_text(const std::string& name);

  // In the order of time.
  void set_time(Duration at);
  void set(Signal signal, std::uint32_t bits, std::uint64_t value);
  void set(Signal signal, const std::string& text);
  // ConfigError: the file is not whole.
  void finish(Duration end);

 private:
  const std::string path_;
  void* context_;
};

}  // namespace rnicsim::sim
