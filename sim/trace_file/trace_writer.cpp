// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/trace_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <utility>

#include "sim/config/config_error.h"
#include "sim/trace_file/trace_trailer.h"

namespace rnicsim::sim {
namespace {

constexpr int kLevel = 3;

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
    : out_(out),
      compressor_(std::make_unique<Compressor>()),
      block_(std::make_unique_for_overwrite<std::byte[]>(kBlockBytes + EventEncoder::kMostBytes)),
      end_(block_.get()) {
  std::vector<std::byte> content;
  encode_header(header, content);
  if (content.size() > kMostHeader)
    throw ConfigError(fmt::format("the header of the trace has {} bytes; {} is the most", content.size(), kMostHeader));
  put_frame(content);
}

TraceWriter::~TraceWriter() {
  if (!finished_) flush_block();
}

void TraceWriter::write(const TraceEvent& event) {
  std::byte fields[EncodedEvent::kMostFieldBytes];
  const auto* const end = encode_fields(event, fields);
  write(EncodedEvent{event.at, event.host, event.kind, qp_of(event), {fields, end}});
}

void TraceWriter::finish(Duration end) {
  begin_event(end);
  std::byte fields[EncodedEvent::kMostFieldBytes];
  const auto* const fields_end = encode_fields(make_event(end, 0, EventKind::end, {events_}), fields);
  end_ = encoder_.encode({end, 0, EventKind::end, {}, {fields, fields_end}}, end_);
  flush_block();
  write_index();
  finished_ = true;
}

void TraceWriter::flush_block() {
  if (end_ == block_.get()) return;
  TraceBlock block{.offset = offset_, .events = events_ - events_before_, .first = first_, .last = last_};
  block.bytes = put_frame({block_.get(), end_});
  index_.end_block(block);
  end_ = block_.get();
  events_before_ = events_;
  encoder_.begin_block();
}

void TraceWriter::write_index() {
  std::vector<std::byte> content;
  const auto index = std::move(index_).finish();
  if (index) index->encode(content);
  if (!index || content.size() > kMostIndex) {
    content.clear();
    TraceIndex::encode_absent(content);
  }
  TraceTrailer trailer{offset_, 0};
  trailer.bytes = put_frame(content);
  const auto bytes = trailer.encoded();
  out_.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  out_.flush();
}

std::uint64_t TraceWriter::put_frame(std::span<const std::byte> content) {
  auto& out = compressor_->out;
  out.resize(ZSTD_compressBound(content.size()));
  const auto size = ZSTD_compress2(compressor_->context, out.data(), out.size(), content.data(), content.size());
  if (ZSTD_isError(size)) {
    out_.setstate(std::ios::failbit);
    return 0;
  }
  out_.write(out.data(), std::streamsize(size));
  out_.flush();
  offset_ += size;
  return size;
}

}  // namespace rnicsim::sim
