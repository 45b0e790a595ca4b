// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/fst_writer.h"

#include <fmt/format.h>
#include <gtkwave/fstapi.h>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr int kPicoseconds = -12;

}  // namespace

FstWriter::FstWriter(const std::string& path) : path_(path), context_(fstWriterCreate(path.c_str(), 1)) {
  if (context_ == nullptr) throw ConfigError(fmt::format("{}: cannot be written", shown(path)));
  fstWriterSetTimescale(context_, kPicoseconds);
  // The writer's default is the time of day, which would make files of equal traces differ.
  fstWriterSetDate(context_, "");
  fstWriterSetVersion(context_, "rnicsim");
}

FstWriter::~FstWriter() {
  if (context_ != nullptr) fstWriterClose(context_);
}

void FstWriter::open_scope(const std::string& name) {
  fstWriterSetScope(context_, FST_ST_VCD_MODULE, name.c_str(), nullptr);
}

void FstWriter::close_scope() { fstWriterSetUpscope(context_); }

FstWriter::Signal FstWriter::add_number(const std::string& name, std::uint32_t bits) {
  return fstWriterCreateVar(context_, FST_VT_VCD_WIRE, FST_VD_IMPLICIT, bits, name.c_str(), 0);
}

FstWriter::Signal FstWriter::add_text(const std::string& name) {
  return fstWriterCreateVar(context_, FST_VT_GEN_STRING, FST_VD_IMPLICIT, 0, name.c_str(), 0);
}

void FstWriter::set_time(Duration at) { fstWriterEmitTimeChange(context_, std::uint64_t(at.ps)); }

void FstWriter::set(Signal signal, std::uint32_t bits, std::uint64_t value) {
  fstWriterEmitValueChange64(context_, signal, bits, value);
}

void FstWriter::set(Signal signal, const std::string& text) {
  fstWriterEmitVariableLengthValueChange(context_, signal, text.data(), std::uint32_t(text.size()));
}

// The writer reports no errors, so the file is opened again to check it.
void FstWriter::finish(Duration end) {
  set_time(end);
  fstWriterClose(context_);
  context_ = nullptr;
  void* const written = fstReaderOpen(path_.c_str());
  const bool is_whole = written != nullptr && fstReaderGetEndTime(written) == std::uint64_t(end.ps);
  if (written != nullptr) fstReaderClose(written);
  if (!is_whole) throw ConfigError(fmt::format("{}: some data was not written", shown(path_)));
}

}  // namespace rnicsim::sim
