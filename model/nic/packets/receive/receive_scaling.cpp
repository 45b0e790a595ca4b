// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/receive_scaling.h"

#include <algorithm>

namespace rnicsim::nic {
namespace {

// The input of a hash, composed of fields.
class Input {
 public:
  void add(const FlowFields& fields, std::size_t offset, std::size_t bytes) {
    std::copy_n(fields.begin() + static_cast<std::ptrdiff_t>(offset), bytes, bytes_.begin() + end_);
    end_ += static_cast<std::ptrdiff_t>(bytes);
  }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(static_cast<std::size_t>(end_)); }

 private:
  std::array<std::byte, 2 * 16 + 2 * 2> bytes_{};  // two IPv6 addresses, two ports
  std::ptrdiff_t end_ = 0;
};

struct Field {
  std::uint32_t bit;
  FlowHeader header;
  std::size_t offset;
  std::size_t bytes;
};
// In the order of the hash's input.
constexpr Field kFields[] = {
    {rss_field::kSourceIpv4, FlowHeader::ipv4, 0, 4},
    {rss_field::kSourceIpv6, FlowHeader::ipv6, 0, 16},
    {rss_field::kDestinationIpv4, FlowHeader::ipv4, 4, 4},
    {rss_field::kDestinationIpv6, FlowHeader::ipv6, 16, 16},
    {rss_field::kSourceTcp, FlowHeader::tcp, 2, 2},
    {rss_field::kSourceUdp, FlowHeader::udp, 2, 2},
    {rss_field::kDestinationTcp, FlowHeader::tcp, 0, 2},
    {rss_field::kDestinationUdp, FlowHeader::udp, 0, 2},
    {rss_field::kSpi, FlowHeader::esp, 0, 4},
};

}  // namespace

// For each set bit i of the input: XOR of the 32 key bits from bit i on.
std::uint32_t toeplitz(const RssKey& key, std::span<const std::byte> input) {
  constexpr std::size_t kWindow = 8;
  std::uint64_t window = 0;
  for (std::size_t i = 0; i < kWindow; ++i) window = window << 8 | std::to_integer<std::uint64_t>(key[i]);
  std::uint32_t hash = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit)
      if ((std::to_integer<unsigned>(input[i]) << bit & 0x80) != 0)
        hash ^= static_cast<std::uint32_t>(window >> (32 - bit));
    const auto next = (i + kWindow) % key.size();
    window = window << 8 | std::to_integer<std::uint64_t>(key[next]);
  }
  return hash;
}

std::uint32_t rss_hash(const RssContext& context, const FrameHeaders& headers) {
  const bool inner = (context.fields & rss_field::kInner) != 0;
  Input input;
  for (const auto& field : kFields) {
    if ((context.fields & field.bit) == 0) continue;
    if (const auto* fields = headers.find(field.header, inner)) input.add(*fields, field.offset, field.bytes);
  }
  return toeplitz(context.key, input.bytes());
}

bool RssTable::add(Qpn number, RssContext context) {
  if (contexts_.size() == most_) return false;
  return contexts_.emplace(number.value, std::move(context)).second;
}

bool RssTable::remove(Qpn number) { return contexts_.erase(number.value) != 0; }

const RssContext* RssTable::find(Qpn number) const {
  const auto found = contexts_.find(number.value);
  return found != contexts_.end() ? &found->second : nullptr;
}

bool RssTable::uses(Qpn queue) const {
  return std::ranges::any_of(contexts_, [queue](const auto& entry) {
    const auto& queues = entry.second.queues;
    return std::ranges::find(queues, queue) != queues.end();
  });
}

}  // namespace rnicsim::nic
