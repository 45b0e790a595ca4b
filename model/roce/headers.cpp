// SPDX-License-Identifier: Apache-2.0
#include "model/roce/headers.h"

#include <array>

#include "model/roce/wire.h"

namespace rnicsim::roce {
namespace {

struct HeaderSize {
  std::uint8_t bit;
  std::uint8_t bytes;
};
constexpr HeaderSize kSizes[] = {{header::kDeth, 8},      {header::kXrceth, 4},    {header::kReth, 16},
                                 {header::kAtomic, 28},   {header::kAeth, 4},      {header::kAtomicAck, 8},
                                 {header::kImmediate, 4}, {header::kInvalidate, 4}};

// Bytes of BTH and headers, by the header:: bits of an opcode.
constexpr auto kEncodedSize = [] {
  std::array<std::uint8_t, 256> sizes{};
  for (std::size_t bits = 0; bits < sizes.size(); ++bits) {
    sizes[bits] = Bth::kBytes;
    for (const auto& size : kSizes)
      if ((bits & size.bit) != 0) sizes[bits] += size.bytes;
  }
  return sizes;
}();

void encode_bth(const Bth& bth, WireWriter& out) {
  out.put(static_cast<std::uint8_t>(bth.opcode));
  out.put(static_cast<std::uint8_t>(bth.solicited << 7 | bth.migrated << 6 | (bth.pad & 3) << 4 | (bth.version & 15)));
  out.put(bth.pkey);
  out.put(static_cast<std::uint8_t>(bth.fecn << 7 | bth.becn << 6));
  out.put24(bth.destination.value);
  out.put(static_cast<std::uint8_t>(bth.ack_request << 7));
  out.put24(bth.psn.value());
}

Bth decode_bth(WireReader& in) {
  Bth bth;
  bth.opcode = static_cast<Opcode>(in.get<std::uint8_t>());
  const auto flags = in.get<std::uint8_t>();
  bth.solicited = flags >> 7 & 1;
  bth.migrated = flags >> 6 & 1;
  bth.pad = flags >> 4 & 3;
  bth.version = flags & 15;
  bth.pkey = in.get<std::uint16_t>();
  const auto congestion = in.get<std::uint8_t>();
  bth.fecn = congestion >> 7 & 1;
  bth.becn = congestion >> 6 & 1;
  bth.destination = {in.get24()};
  bth.ack_request = in.get<std::uint8_t>() >> 7 & 1;
  bth.psn = Psn(in.get24());
  return bth;
}

void encode_reth(const Reth& reth, WireWriter& out) {
  out.put(reth.address);
  out.put(reth.rkey.value);
  out.put(reth.length);
}

void encode_atomic(const AtomicEth& atomic, WireWriter& out) {
  out.put(atomic.address);
  out.put(atomic.rkey.value);
  out.put(atomic.swap_add);
  out.put(atomic.compare);
}

void encode_aeth(const Aeth& aeth, WireWriter& out) {
  out.put(aeth.syndrome);
  out.put24(aeth.msn);
}

void encode_deth(const Deth& deth, WireWriter& out) {
  out.put(deth.qkey);
  out.put(std::uint8_t{0});
  out.put24(deth.source.value);
}

// Reads the low 24 bits of a word whose first byte is reserved.
std::uint32_t skip_to_24(WireReader& in) {
  in.skip(1);
  return in.get24();
}

Deth decode_deth(WireReader& in) {
  Deth deth;
  deth.qkey = in.get<std::uint32_t>();
  deth.source = {skip_to_24(in)};
  return deth;
}

}  // namespace

std::size_t encoded_size(const OpcodeInfo& info) { return kEncodedSize[info.headers]; }

std::size_t encode(const Headers& headers, std::span<std::byte> out) {
  const auto& row = info(headers.bth.opcode);
  WireWriter writer(out);
  encode_bth(headers.bth, writer);
  if (row.has(header::kDeth)) encode_deth(headers.deth.value_or(Deth{}), writer);
  if (row.has(header::kXrceth)) writer.put(headers.xrc_srqn.value_or(0) & 0xffffff);
  if (row.has(header::kReth)) encode_reth(headers.reth.value_or(Reth{}), writer);
  if (row.has(header::kAtomic)) encode_atomic(headers.atomic.value_or(AtomicEth{}), writer);
  if (row.has(header::kAeth)) encode_aeth(headers.aeth.value_or(Aeth{}), writer);
  if (row.has(header::kAtomicAck)) writer.put(headers.atomic_ack.value_or(0));
  if (row.has(header::kImmediate)) writer.put(headers.immediate.value_or(0));
  if (row.has(header::kInvalidate)) writer.put(headers.invalidate.value_or(Rkey{}).value);
  return writer.written();
}

// Braced initialisers evaluate from left to right: members stand in the order of the wire.
std::optional<Headers> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < Bth::kBytes) return std::nullopt;
  const auto* row = find_opcode(std::to_integer<std::uint8_t>(bytes[0]));
  if (row == nullptr || bytes.size() < encoded_size(*row)) return std::nullopt;
  WireReader in(bytes);
  Headers headers;
  headers.bth = decode_bth(in);
  if (row->has(header::kDeth)) headers.deth = decode_deth(in);
  if (row->has(header::kXrceth)) headers.xrc_srqn = skip_to_24(in);
  if (row->has(header::kReth))
    headers.reth = Reth{in.get<std::uint64_t>(), {in.get<std::uint32_t>()}, in.get<std::uint32_t>()};
  if (row->has(header::kAtomic))
    headers.atomic =
        AtomicEth{in.get<std::uint64_t>(), {in.get<std::uint32_t>()}, in.get<std::uint64_t>(), in.get<std::uint64_t>()};
  if (row->has(header::kAeth)) headers.aeth = Aeth{in.get<std::uint8_t>(), in.get24()};
  if (row->has(header::kAtomicAck)) headers.atomic_ack = in.get<std::uint64_t>();
  if (row->has(header::kImmediate)) headers.immediate = in.get<std::uint32_t>();
  if (row->has(header::kInvalidate)) headers.invalidate = Rkey{in.get<std::uint32_t>()};
  return headers;
}

}  // namespace rnicsim::roce
