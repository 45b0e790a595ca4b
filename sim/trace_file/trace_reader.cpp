// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/trace_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "sim/trace_file/trace_trailer.h"

namespace rnicsim::sim {
namespace {

// Largest frame, as a power of two: limits the memory for a damaged file.
constexpr int kMostFrameLog = 20;
constexpr std::size_t kMostFrame = std::size_t{1} << kMostFrameLog;
constexpr int kMostHeaderLog = 24, kMostIndexLog = 25;
static_assert(kMostHeader == std::size_t{1} << kMostHeaderLog && kMostIndex == std::size_t{1} << kMostIndexLog);
constexpr std::size_t kChunk = 64 << 10;
constexpr std::array kZstdMagic{'\x28', '\xb5', '\x2f', '\xfd'};
constexpr const char* kCutShort = "the file ends without an end mark: the run was killed, or the file is truncated";

// Hash of the blocks so far (FNV-1a over words): a reader compares a whole index without keeping the blocks.
std::uint64_t hash_with(std::uint64_t hash, const TraceBlock& block) {
  for (const auto word :
       {block.offset, block.bytes, block.events, std::uint64_t(block.first.ps), std::uint64_t(block.last.ps)})
    hash = (hash ^ word) * 0x100000001b3;
  return hash;
}

FileHeader no_header() { return {kTraceVersion, {}, TraceSchema::of_version_1()}; }

}  // namespace

struct TraceReader::Decompressor {
  ZSTD_DCtx* context = nullptr;
  std::vector<char> chunk = std::vector<char>(kChunk);
  ZSTD_inBuffer input{nullptr, 0, 0};
  std::uint64_t chunk_offset = 0;  // place of the chunk in the file
  Decompressor() { limit_window(kMostHeaderLog); }
  ~Decompressor() { ZSTD_freeDCtx(context); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // False: end of the file.
  bool refill(std::istream& in) {
    if (input.pos < input.size) return true;
    chunk_offset += input.size;
    in.read(chunk.data(), std::streamsize(chunk.size()));
    input = {chunk.data(), std::size_t(in.gcount()), 0};
    return input.size != 0;
  }
  // Place in the file of the next byte.
  std::uint64_t offset() const { return chunk_offset + input.pos; }
  // The next bytes come from another place of the file.
  void move_to(std::uint64_t offset) {
    input = {nullptr, 0, 0};
    chunk_offset = offset;
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

  // Reads exactly `bytes` bytes, when nothing is left of the bytes before. False: the file ends before.
  bool fetch(std::istream& in, std::size_t bytes) {
    chunk_offset = offset();
    if (chunk.size() < bytes) chunk.resize(bytes);
    in.read(chunk.data(), std::streamsize(bytes));
    input = {chunk.data(), bytes, 0};
    return std::size_t(in.gcount()) == bytes;
  }

  // Takes bytes that are no frame. False: the file ends before.
  bool take(std::istream& in, std::span<std::byte> out) {
    while (!out.empty()) {
      if (!refill(in)) return false;
      const auto part = std::min(out.size(), input.size - input.pos);
      std::memcpy(out.data(), static_cast<const char*>(input.src) + input.pos, part);
      input.pos += part;
      out = out.subspan(part);
    }
    return true;
  }

  // A frame of up to `most` bytes. `check` sees its first bytes before more memory is taken.
  template <class Check>
  std::vector<std::byte> next_large_frame(std::istream& in, std::size_t most, const char* what, Check&& check) {
    std::vector<std::byte> content(kChunk);
    ZSTD_outBuffer output{content.data(), content.size(), 0};
    const bool is_there = next_frame(in, output, [&] {
      check(std::span<const std::byte>(content));
      if (content.size() == most) throw TraceError(fmt::format("the {} has more than {} bytes", what, most));
      content.resize(std::min(2 * content.size(), most));
      output.dst = content.data();
      output.size = content.size();
    });
    if (!is_there) throw TraceError(kCutShort);
    content.resize(output.pos);
    return content;
  }
};

TraceReader::TraceReader(std::istream& in, std::string name)
    : in_(in),
      name_(std::move(name)),
      decompressor_(std::make_unique<Decompressor>()),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kMostFrame)),
      file_(no_header()),
      decoder_(file_.schema, 0) {
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
  decoder_ = EventDecoder(file_.schema, header_.hosts.size());
  if (file_.version != 1) checked_.emplace();
  unknown_.resize(file_.schema.kinds().size());
}

TraceReader::~TraceReader() = default;

// Header and index may be larger than any other frame. Their memory is released after decoding.
void TraceReader::read_header() {
  const auto content = decompressor_->next_large_frame(in_, kMostHeader, "header", check_header_start);
  file_ = decode_header(content);
  begin_ = decompressor_->offset();
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

// Skips events of kinds that this program does not know.
bool TraceReader::read_event(TraceEvent& event) {
  for (;;) {
    while (rest_.empty())
      if (!next_block()) return false;
    const auto* const start = rest_.data();
    before_ = decoder_.last();
    const auto& kind = decoder_.decode(rest_, event);
    last_ = {start, rest_.data()};
    check_place(event.at);
    last_kind_ = std::size_t(&kind - file_.schema.kinds().data());
    if (!kind.is_whole) ++unknown_[last_kind_];
    if (kind.known != nullptr && event.kind == EventKind::end) {
      finish(event);
      return false;
    }
    ++events_;
    ++block_.events;
    if (kind.known == nullptr) continue;
    check_queue_pair(event);
    return true;
  }
}

// A reader of the whole trace compares at the end. Otherwise the index must name the queue pairs of each block read.
void TraceReader::check_queue_pair(const TraceEvent& event) {
  last_host_ = event.host;
  last_qp_ = qp_of(event);
  if (!last_qp_) return;
  if (checked_) checked_->add(event.host, *last_qp_);
  if (!wanted_) return;
  const Found found{event.host, *last_qp_, next_block_};
  auto& slot = found_[(*last_qp_ ^ event.host << 3) % found_.size()];
  if (slot == found) return;
  if (!index_->has(next_block_ - 1, event.host, *last_qp_))
    throw TraceError(fmt::format("the index does not describe the queue pairs of block {}", next_block_ - 1));
  slot = found;
}

void TraceReader::check_place(Duration at) {
  if (!is_in_block_) {
    if (at < last_at_) throw TraceError("time runs backward");
    block_.first = at;
    is_in_block_ = true;
  }
  block_.last = last_at_ = at;
}

// The end mark: only the index and the trailer follow.
void TraceReader::finish(const TraceEvent& end) {
  if (end.fields[0] != events_) throw TraceError(fmt::format("the end mark counts {} events", end.fields[0]));
  if (!rest_.empty()) throw TraceError("there are bytes after the end mark");
  end_block();
  if (!wanted_) expect_index();
  end_ = end.at;
  ended_ = true;
}

bool TraceReader::skip_same(const TraceReader& other) {
  const auto size = other.last_.size();
  if (rest_.size() < size || std::memcmp(rest_.data(), other.last_.data(), size) != 0) return false;
  // An encoded event holds the time since the event before it, so the bytes alone do not prove equal times.
  if (decoder_.last() != other.before_ || left_out_ != other.left_out_ || !is_encoded_as(other)) return false;
  last_ = rest_.first(size);
  rest_ = rest_.subspan(size);
  before_ = decoder_.last();
  decoder_.skip_as(other.decoder_);
  check_place(other.last_at_);
  last_kind_ = other.last_kind_;
  if (!file_.schema.kinds()[last_kind_].is_whole) ++unknown_[last_kind_];
  last_host_ = other.last_host_;
  last_qp_ = other.last_qp_;
  if (checked_ && last_qp_) checked_->add(last_host_, *last_qp_);
  ++events_;
  ++block_.events;
  return true;
}

// The same bytes mean the same event only with the same hosts and the same schema.
bool TraceReader::is_encoded_as(const TraceReader& other) {
  if (&other == compared_with_) return is_encoded_alike_;
  compared_with_ = &other;
  is_encoded_alike_ =
      header_.hosts.size() == other.header_.hosts.size() && file_.schema == other.file_.schema && !wanted_;
  return is_encoded_alike_;
}

std::size_t TraceReader::held_bytes() const {
  return kMostFrame + decompressor_->chunk.capacity() + ZSTD_sizeof_DCtx(decompressor_->context);
}

std::vector<std::string> TraceReader::unknown() const {
  std::vector<std::string> lines;
  for (std::size_t number = 0; number < unknown_.size(); ++number) {
    if (unknown_[number] == 0) continue;
    const auto& kind = file_.schema.kinds()[number];
    std::vector<std::string> fields;
    for (std::size_t i = 0; i < kind.fields.size(); ++i)
      if (kind.positions[i] == FileKind::kUnknown) fields.push_back(kind.fields[i]);
    lines.push_back(
        kind.known == nullptr
            ? fmt::format("{}: {} events of the kind '{}' ({}) are left out: this program does not know the kind",
                          name_, unknown_[number], kind.name, fmt::join(fields, ", "))
            : fmt::format("{}: {} events '{}' are read without the fields {}: this program does not know these", name_,
                          unknown_[number], kind.name, fmt::join(fields, ", ")));
  }
  return lines;
}

// --- Blocks.

// Begins the next block with events. False: the last one that is wanted was read.
bool TraceReader::next_block() {
  if (is_in_block_) end_block();
  if (wanted_) {
    if (next_wanted_block()) return true;
    end_ = index_->blocks().empty() ? Duration{} : index_->blocks().back().last;
    ended_ = true;
    return false;
  }
  const auto offset = decompressor_->offset();
  if (!next_frame()) throw TraceError(kCutShort);
  block_ = {.offset = offset, .bytes = decompressor_->offset() - offset};
  return true;
}

// A block's times begin anew, so that a reader can begin there.
void TraceReader::end_block() {
  is_in_block_ = false;
  if (wanted_ && block_ != index_->blocks()[next_block_ - 1])
    throw TraceError(fmt::format("the index does not describe block {}", next_block_ - 1));
  if (file_.version == 1) return;
  decoder_.begin_block();
  blocks_hash_ = hash_with(blocks_hash_, block_);
  ++blocks_;
  if (checked_) checked_->end_block(block_);
}

bool TraceReader::next_wanted_block() {
  const auto& blocks = index_->blocks();
  while (next_block_ < blocks.size() && !wanted_(next_block_)) events_ += blocks[next_block_++].events;
  if (next_block_ == blocks.size()) return false;
  const auto& block = blocks[next_block_++];
  if (block.bytes > ZSTD_compressBound(kMostFrame)) throw TraceError("damaged: a frame is too large");
  if (decompressor_->offset() != block.offset) move_to(block.offset);
  if (!decompressor_->fetch(in_, block.bytes)) throw TraceError(kCutShort);
  if (!next_frame() || rest_.empty() || decompressor_->input.pos != decompressor_->input.size)
    throw TraceError(fmt::format("the index does not describe block {}", next_block_ - 1));
  block_ = {.offset = block.offset, .bytes = block.bytes};
  return true;
}

// Decompresses a frame into frame_ and rest_. False: end of the file.
bool TraceReader::next_frame() {
  ZSTD_outBuffer output{buffer_.get(), kMostFrame, 0};
  if (!decompressor_->next_frame(in_, output, [] { throw TraceError("damaged: a frame is too large"); })) return false;
  rest_ = frame_ = std::span(buffer_.get(), output.pos);
  return true;
}

// --- Index.

// Reads index and trailer behind the end mark, and compares them with the blocks.
void TraceReader::expect_index() {
  if (file_.version == 1) {
    if (decompressor_->refill(in_)) throw TraceError("there are bytes after the end mark");
    return;
  }
  const auto begin = decompressor_->offset();
  decompressor_->limit_window(kMostIndexLog);
  const auto content = decompressor_->next_large_frame(in_, kMostIndex, "index", [](auto) {});
  decompressor_->limit_window(kMostFrameLog);
  const TraceTrailer expected{begin, decompressor_->offset() - begin};
  std::array<std::byte, TraceTrailer::kBytes> trailer;
  if (!decompressor_->take(in_, trailer)) throw TraceError(kCutShort);
  if (TraceTrailer::of(trailer) != expected) throw TraceError("the last bytes do not give the position of the index");
  if (decompressor_->refill(in_)) throw TraceError("unexpected bytes follow the index");
  const auto index = TraceIndex::decode(content, begin_, begin, header_.hosts.size());
  if (!index) return;
  std::uint64_t hash = 0;
  for (const auto& block : index->blocks()) hash = hash_with(hash, block);
  if (index->blocks().size() != blocks_ || hash != blocks_hash_)
    throw TraceError("the index does not describe the blocks of the file");
  const auto own = std::move(*checked_).finish();
  if (!own || !index->covers(*own)) throw TraceError("the index does not describe the queue pairs of the blocks");
}

const TraceIndex* TraceReader::read_index() {
  try {
    index_ = load_index();
  } catch (const TraceError& error) {
    throw TraceError(fmt::format("{}: {}", name_, error.what()));
  }
  return index_ ? &*index_ : nullptr;
}

std::optional<TraceIndex> TraceReader::load_index() {
  if (file_.version == 1) return {};
  const auto begun = decompressor_->chunk_offset + decompressor_->input.size;  // where `in_` is
  const auto restore = [&] {
    in_.clear();
    in_.seekg(std::streamoff(begun));
    return std::nullopt;
  };
  in_.clear();
  in_.seekg(0, std::ios::end);
  const auto size = std::int64_t(in_.tellg());
  if (!in_ || size < std::int64_t(begin_ + TraceTrailer::kBytes)) return in_ ? restore() : (in_.clear(), std::nullopt);
  const auto end = std::uint64_t(size) - TraceTrailer::kBytes;
  std::array<std::byte, TraceTrailer::kBytes> last;
  in_.seekg(std::streamoff(end));
  in_.read(reinterpret_cast<char*>(last.data()), std::streamsize(last.size()));
  const auto trailer = TraceTrailer::of(last);
  if (!in_ || !trailer) return restore();
  if (trailer->offset < begin_ || trailer->offset > end || trailer->bytes != end - trailer->offset)
    throw TraceError("the last bytes do not give the position of the index");
  Decompressor index;
  index.limit_window(kMostIndexLog);
  in_.seekg(std::streamoff(trailer->offset));
  const auto content = index.next_large_frame(in_, kMostIndex, "index", [](auto) {});
  if (index.offset() != trailer->bytes) throw TraceError("the last bytes do not give the position of the index");
  auto read = TraceIndex::decode(content, begin_, trailer->offset, header_.hosts.size());
  restore();
  return read;
}

void TraceReader::read_only(std::function<bool(std::size_t block)> wanted) {
  wanted_ = std::move(wanted);
  checked_.reset();
  move_to(decompressor_->offset());
}

void TraceReader::move_to(std::uint64_t offset) {
  in_.clear();
  in_.seekg(std::streamoff(offset));
  decompressor_->move_to(offset);
}

}  // namespace rnicsim::sim
