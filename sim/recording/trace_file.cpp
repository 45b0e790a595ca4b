// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/trace_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/recording/header_start.h"

namespace rnicsim::sim {
namespace {

constexpr int kLevel = 3;
// Largest frame, as a power of two: limits the memory for a damaged file.
constexpr int kMostFrameLog = 20;
constexpr std::size_t kMostFrame = std::size_t{1} << kMostFrameLog;
constexpr int kMostHeaderLog = 24;
static_assert(kMostHeader == std::size_t{1} << kMostHeaderLog);
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
  if (block_.size() > kMostHeader)
    throw ConfigError(fmt::format("the header of the trace has {} bytes; {} is the most", block_.size(), kMostHeader));
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
  ZSTD_DCtx* context = nullptr;
  std::vector<char> chunk = std::vector<char>(kChunk);
  ZSTD_inBuffer input{nullptr, 0, 0};
  Decompressor() { limit_window(kMostHeaderLog); }
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

  // Makes a new context, because an old context keeps the memory of its largest window.
  void limit_window(int log) {
    ZSTD_freeDCtx(context);
    context = ZSTD_createDCtx();
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, log);
  }

  // Decompresses a complete frame and checks its checksum. `grow` enlarges a full `output`, or throws. False: end
  // of the file.
  template <class Grow>
  bool next_frame(std::istream& in, ZSTD_outBuffer& output, Grow&& grow) {
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    for (bool begun = false;; begun = true) {
      if (!refill(in)) {
        if (begun) throw TraceError("the file ends in the middle of a frame: the run died, or the file was cut");
        return false;
      }
      const auto left = ZSTD_decompressStream(context, &output, &input);
      if (ZSTD_isError(left)) throw TraceError(fmt::format("damaged: {}", ZSTD_getErrorName(left)));
      if (left == 0) return true;
      if (output.pos == output.size) grow();
    }
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
    read_header();
  } catch (const TraceError& error) {
    throw TraceError(fmt::format("{}: {}", name_, error.what()));
  }
  decoder_ = EventDecoder(header_.hosts.size());
}

TraceReader::~TraceReader() = default;

// The header may be larger than any other frame. Its memory is released after decoding.
void TraceReader::read_header() {
  std::vector<std::byte> content(kChunk);
  ZSTD_outBuffer output{content.data(), content.size(), 0};
  decompressor_->next_frame(in_, output, [&] {
    check_header_start(content);
    if (content.size() == kMostHeader) throw TraceError(fmt::format("its header has more than {} bytes", kMostHeader));
    content.resize(std::min(2 * content.size(), kMostHeader));
    output.dst = content.data();
    output.size = content.size();
  });
  header_ = decode_header(std::span(content).first(output.pos));
  decompressor_->limit_window(kMostFrameLog);
}

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
  if (event.fields[0] != events_) throw TraceError(fmt::format("the end mark counts {} events", event.fields[0]));
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
  if (!rest_.empty() || decompressor_->refill(in_)) throw TraceError("there are bytes after the end mark");
}

// Decompresses a frame into frame_. False: end of the file.
bool TraceReader::next_frame() {
  ZSTD_outBuffer output{buffer_.get(), kMostFrame, 0};
  if (!decompressor_->next_frame(in_, output, [] { throw TraceError("damaged: a frame is too large"); })) return false;
  frame_ = std::span(buffer_.get(), output.pos);
  return true;
}

}  // namespace rnicsim::sim
