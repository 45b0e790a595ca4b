// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/trace_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <utility>

namespace rnicsim::sim {
namespace {

constexpr int kLevel = 3;
// Largest frame, as a power of two: limits the memory for a damaged file.
constexpr int kMostFrameLog = 20;
constexpr std::size_t kMostFrame = std::size_t{1} << kMostFrameLog;
constexpr std::size_t kChunk = 64 << 10;
constexpr std::array kZstdMagic{'\x28', '\xb5', '\x2f', '\xfd'};

}  // namespace

struct TraceWriter::Compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<char> out;
  Compressor() {
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  }
  ~Compressor() { ZSTD_freeCCtx(context); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
};

TraceWriter::TraceWriter(std::ostream& out, const TraceHeader& header)
    : out_(out), compressor_(std::make_unique<Compressor>()) {
  encode_header(header, block_);
  put_frame(block_);
  block_.clear();
}

TraceWriter::~TraceWriter() {
  if (!finished_) flush_block({});
}

void TraceWriter::finish(Duration end) {
  auto mark = make_event(end, 0, EventKind::end, {events_});
  encoder_.encode(mark, block_);
  flush_block(end);
  finished_ = true;
}

void TraceWriter::flush_block(Duration next) {
  if (!block_.empty()) put_frame(block_);
  block_.clear();
  block_start_ = next;
}

void TraceWriter::put_frame(std::span<const std::byte> content) {
  auto& out = compressor_->out;
  out.resize(ZSTD_compressBound(content.size()));
  const auto size = ZSTD_compress2(compressor_->context, out.data(), out.size(), content.data(), content.size());
  if (ZSTD_isError(size)) {
    out_.setstate(std::ios::failbit);
    return;
  }
  out_.write(out.data(), std::streamsize(size));
  out_.flush();
}

struct TraceReader::Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<char> chunk = std::vector<char>(kChunk);
  ZSTD_inBuffer input{nullptr, 0, 0};
  Decompressor() { ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMostFrameLog); }
  ~Decompressor() { ZSTD_freeDCtx(context); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // False: end of the file.
  bool refill(std::istream& in) {
    if (input.pos < input.size) return true;
    in.read(chunk.data(), std::streamsize(chunk.size()));
    input = {chunk.data(), std::size_t(in.gcount()), 0};
    return input.size != 0;
  }
};

TraceReader::TraceReader(std::istream& in, std::string name)
    : in_(in),
      name_(std::move(name)),
      decompressor_(std::make_unique<Decompressor>()),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kMostFrame)) {
  auto& input = decompressor_->input;
  if (!decompressor_->refill(in_)) throw TraceError(fmt::format("{}: an empty file", name_));
  const std::string_view start(static_cast<const char*>(input.src), input.size);
  if (!start.starts_with(std::string_view(kZstdMagic.data(), kZstdMagic.size())))
    throw TraceError(fmt::format("{}: not a trace: it is not compressed with zstd", name_));
  try {
    next_frame();
    header_ = decode_header(frame_);
  } catch (const TraceError& error) {
    throw TraceError(fmt::format("{}: {}", name_, error.what()));
  }
  decoder_ = EventDecoder(header_.hosts.size());
}

TraceReader::~TraceReader() = default;

std::optional<TraceEvent> TraceReader::next() {
  std::optional<TraceEvent> event(std::in_place);
  if (!next(*event)) event.reset();
  return event;
}

bool TraceReader::next(TraceEvent& event) {
  if (ended_) return false;
  try {
    do
      if (!read_event(event)) return false;
    while (left_out_[std::size_t(event.kind)]);
    return true;
  } catch (const TraceError& error) {
    throw TraceError(fmt::format("{}: after {} events: {}", name_, events_, error.what()));
  }
}

bool TraceReader::read_event(TraceEvent& event) {
  while (rest_.empty()) {
    if (!next_frame()) throw TraceError("the file ends without its end mark: the run died, or the file was cut");
    rest_ = frame_;
  }
  const auto* const start = rest_.data();
  decoder_.decode(rest_, event);
  last_ = {start, rest_.data()};
  before_ = std::exchange(last_at_, event.at);
  if (event.kind != EventKind::end) {
    ++events_;
    return true;
  }
  if (event.fields[0] != events_) throw TraceError(fmt::format("its end mark counts {} events", event.fields[0]));
  expect_nothing_more();
  end_ = event.at;
  ended_ = true;
  return false;
}

bool TraceReader::skip_same(const TraceReader& other) {
  const auto size = other.last_.size();
  if (rest_.size() < size || std::memcmp(rest_.data(), other.last_.data(), size) != 0) return false;
  // An encoded event holds the time since the event before it, so the bytes alone do not prove equal times.
  if (last_at_ != other.before_ || left_out_ != other.left_out_ || header_.hosts.size() != other.header_.hosts.size())
    return false;
  last_ = rest_.first(size);
  rest_ = rest_.subspan(size);
  decoder_ = other.decoder_;
  before_ = std::exchange(last_at_, other.last_at_);
  ++events_;
  return true;
}

std::size_t TraceReader::held_bytes() const {
  return kMostFrame + decompressor_->chunk.capacity() + ZSTD_sizeof_DCtx(decompressor_->context);
}

void TraceReader::expect_nothing_more() {
  if (!rest_.empty() || decompressor_->refill(in_)) throw TraceError("something follows its end mark");
}

// Decompresses a complete frame into frame_ and checks its checksum. False: end of the file.
bool TraceReader::next_frame() {
  auto& input = decompressor_->input;
  ZSTD_outBuffer output{buffer_.get(), kMostFrame, 0};
  ZSTD_DCtx_reset(decompressor_->context, ZSTD_reset_session_only);
  for (bool begun = false;; begun = true) {
    if (!decompressor_->refill(in_)) {
      if (begun) throw TraceError("the file ends in the middle of a frame: the run died, or the file was cut");
      return false;
    }
    const auto left = ZSTD_decompressStream(decompressor_->context, &output, &input);
    if (ZSTD_isError(left)) throw TraceError(fmt::format("damaged: {}", ZSTD_getErrorName(left)));
    if (left == 0) break;
    if (output.pos == output.size) throw TraceError("damaged: a frame is too large");
  }
  frame_ = std::span(buffer_.get(), output.pos);
  return true;
}

}  // namespace rnicsim::sim
