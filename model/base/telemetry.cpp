// SPDX-License-Identifier: Apache-2.0
#include "model/base/telemetry.h"

#include <algorithm>
#include <iterator>

namespace rnicsim {
namespace {

using namespace rnicsim::literals;

// By rate code. Code 0: slower than all.
constexpr BitRate kRates[] = {{0},      1_Gbps,   {2'500'000'000}, 5_Gbps,   10_Gbps,   25_Gbps,   40_Gbps,  50_Gbps,
                              100_Gbps, 200_Gbps, 400_Gbps,        800_Gbps, 1600_Gbps, 3200_Gbps, 6400_Gbps};
constexpr unsigned kPathBits = 12, kCountBits = 3;
constexpr std::uint32_t kPathMask = (1u << kPathBits) - 1;

constexpr std::uint32_t mask(unsigned bits) { return (1u << bits) - 1; }

std::uint64_t code_of(BitRate rate) {
  const auto above = std::upper_bound(std::begin(kRates) + 1, std::end(kRates), rate);
  return static_cast<std::uint64_t>(above - std::begin(kRates) - 1);
}

// Spreads a port's number over the bits of a path.
std::uint32_t spread(std::uint32_t id) { return (id + 1) * 0x9e3779b1u >> (32 - kPathBits); }

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t length) {
  std::uint64_t number = 0;
  for (const auto byte : bytes.subspan(at, length)) number = number << 8 | std::to_integer<std::uint64_t>(byte);
  return number;
}
void put_number(std::span<std::byte> out, std::uint64_t number) {
  for (auto i = out.size(); i-- != 0; number >>= 8) out[i] = static_cast<std::byte>(number & 0xff);
}

constexpr std::size_t kWord = 2, kRecord = 8;
constexpr std::uint64_t kDelayMark = 0xd31a;
constexpr unsigned kBackShift = 15;

// Offset of the end of a packet to RoCE's port; 0: the frame is not such a packet.
std::size_t end_of_packet(std::span<const std::byte> frame) {
  constexpr std::size_t kType = 12, kIpv4 = 20, kIpv6 = 40, kUdp = 8, kProtocolUdp = 17, kPort = 4791, kTag = 4;
  std::size_t ip = 14;
  const auto is_long_enough = [&] { return frame.size() >= ip + kIpv6 + kUdp; };
  if (!is_long_enough()) return 0;
  if (number_at(frame, kType, 2) == 0x8100) ip += kTag;
  if (!is_long_enough()) return 0;
  const auto type = number_at(frame, ip - 2, 2);
  const bool ipv4 = type == 0x0800 && number_at(frame, ip, 1) == 0x45;
  if (!ipv4 && type != 0x86dd) return 0;
  const auto protocol = number_at(frame, ip + (ipv4 ? 9 : 6), 1);
  const auto transport = ip + (ipv4 ? kIpv4 : kIpv6);
  if (protocol != kProtocolUdp || number_at(frame, transport + 2, 2) != kPort) return 0;
  return ipv4 ? ip + number_at(frame, ip + 2, 2) : transport + number_at(frame, ip + 4, 2);
}

}  // namespace

HopRecord::HopRecord(const PortState& port) {
  const auto time = static_cast<std::uint64_t>(port.at.ps / kTimeUnit.ps) & mask(kTimeBits);
  const auto sent = port.sent / kSentUnit & mask(kSentBits);
  const auto queue = std::min<std::uint64_t>(port.queue / kQueueUnit, mask(kQueueBits));
  bits_ = ((code_of(port.rate) << kTimeBits | time) << kSentBits | sent) << kQueueBits | queue;
}

BitRate HopRecord::rate() const {
  const auto code = bits_ >> (kTimeBits + kSentBits + kQueueBits);
  return code < std::size(kRates) ? kRates[code] : BitRate{};
}

Telemetry Telemetry::delay_request() {
  Telemetry block;
  block.is_of_ports_ = false;
  return block;
}

std::optional<Telemetry> Telemetry::of(std::span<const std::byte> bytes) {
  if (bytes.size() == kDelayBytes) return delay_block(bytes);
  if (bytes.size() != kBytes) return std::nullopt;
  Telemetry block;
  const auto word = number_at(bytes, 0, kWord);
  block.path_ = word & kPathMask;
  block.count_ = word >> kPathBits & mask(kCountBits);
  block.goes_back_ = word >> (kPathBits + kCountBits) != 0;
  if (block.count_ > kHops) return std::nullopt;
  for (std::size_t i = 0; i < kHops; ++i) {
    block.hops_[i] = HopRecord(number_at(bytes, kWord + i * kRecord, kRecord));
    if (i >= block.count_ && block.hops_[i].bits() != 0) return std::nullopt;
  }
  return block;
}

std::optional<Telemetry> Telemetry::delay_block(std::span<const std::byte> bytes) {
  const auto flags = number_at(bytes, kWord, kWord);
  if (number_at(bytes, 0, kWord) != kDelayMark || (flags & mask(kBackShift)) != 0) return std::nullopt;
  auto block = delay_request();
  block.goes_back_ = flags != 0;
  block.delay_ns_ = static_cast<std::uint32_t>(number_at(bytes, 2 * kWord, sizeof block.delay_ns_));
  if (!block.goes_back_ && block.delay_ns_ != 0) return std::nullopt;
  return block;
}

void Telemetry::put(std::span<std::byte> out) const {
  if (!is_of_ports_) {
    put_number(out.first(kWord), kDelayMark);
    put_number(out.subspan(kWord, kWord), std::uint64_t{goes_back_} << kBackShift);
    return put_number(out.subspan(2 * kWord, sizeof delay_ns_), delay_ns_);
  }
  put_number(out.first(kWord), (std::uint64_t{goes_back_} << kCountBits | count_) << kPathBits | path_);
  for (std::size_t i = 0; i < kHops; ++i) put_number(out.subspan(kWord + i * kRecord, kRecord), hops_[i].bits());
}

void Telemetry::add(const PortState& port) {
  if (!takes_hops()) return;
  hops_[count_++] = HopRecord(port);
  path_ = static_cast<std::uint16_t>(path_ ^ spread(port.id));
}

void Telemetry::give_back(Duration delay) {
  constexpr std::int64_t kMost = 0xffffffff;
  goes_back_ = true;
  delay_ns_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(delay.ps / HopRecord::kTimeUnit.ps, 0, kMost));
}

std::optional<Duration> Telemetry::delay() const {
  if (is_of_ports_ || !goes_back_) return std::nullopt;
  return HopRecord::kTimeUnit * std::int64_t{delay_ns_};
}

std::optional<Telemetry> telemetry_behind(std::span<const std::byte> frame) {
  const auto end = end_of_packet(frame);
  if (end == 0 || end >= frame.size()) return std::nullopt;
  return Telemetry::of(frame.subspan(end));
}

std::span<const HopChange> TelemetryReader::read(const Telemetry& block, Duration now) {
  // A time difference above half of the range means that the block is older.
  constexpr std::uint32_t kHalf = 1u << (HopRecord::kTimeBits - 1);
  constexpr Duration kLongest = kHalf * HopRecord::kTimeUnit;
  constexpr std::uint64_t kMostSent = HopRecord::kSentUnit << HopRecord::kSentBits;
  const auto before = last_;
  const auto hops = block.hops();
  const bool alike =
      before && now - came_ < kLongest && before->path() == block.path() && before->hops().size() == hops.size();
  for (std::size_t i = 0; alike && i < hops.size(); ++i) {
    const auto &from = before->hops()[i], &to = hops[i];
    const auto ticks = (to.time() - from.time()) & mask(HopRecord::kTimeBits);
    if (ticks >= kHalf) return {};
    auto& change = changes_[i] = {.rate = to.rate(), .over = ticks * HopRecord::kTimeUnit};
    change.sent = ((to.sent() - from.sent()) & mask(HopRecord::kSentBits)) * HopRecord::kSentUnit;
    change.queue = to.queue() * HopRecord::kQueueUnit;
    change.queue_before = from.queue() * HopRecord::kQueueUnit;
    // The count of sent bytes may have wrapped around in this time.
    if (change.rate.bits_per_second != 0 && change.over >= change.rate.time_for({kMostSent})) change.rate = {};
  }
  last_ = block;
  came_ = now;
  return std::span(changes_).first(alike ? hops.size() : 0);
}

}  // namespace rnicsim
