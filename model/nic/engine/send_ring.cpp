// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/send_ring.h"

#include <algorithm>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::size_t kFetchBlocks = 16;
constexpr std::size_t kLeastFetched = 4;  // fewer are read only if no more are posted

}  // namespace

SendRing::Announced SendRing::announce(const SendDoorbell& doorbell, const QpContext& context, bool takes) {
  const auto added = static_cast<std::uint16_t>(doorbell.producer - fetched_);
  if (added > 1u << context.log_send_blocks) return Announced::invalid;
  producer_ = doorbell.producer;
  const auto carried = (doorbell.wqe.size() + (1u << log_block()) - 1) >> log_block();
  // The WQE in the doorbell is the next one only if no block before it is still to be fetched.
  if (!takes || carried == 0 || carried != added || fetched_ != parsed_) return Announced::producer;
  fetched_ = producer_;
  const auto wqe = doorbell.wqe.bytes();
  bytes_.assign(wqe.begin(), wqe.end());
  return Announced::next_wqe;
}

std::optional<RingRead> SendRing::begin_read(const QpContext& context, std::size_t room) {
  const std::size_t left = static_cast<std::uint16_t>(producer_ - fetched_);
  if (room < std::min(left, kLeastFetched)) return std::nullopt;
  const auto ring = std::size_t{1} << context.log_send_blocks;
  const auto blocks = static_cast<std::uint32_t>(std::min({left, room, kFetchBlocks, ring - (fetched_ & (ring - 1))}));
  const RingRead read{address(context, fetched_), blocks << log_block()};
  reading_ = true;
  fetched_ = static_cast<std::uint16_t>(fetched_ + blocks);
  return read;
}

bool SendRing::end_read(const WqeBytes& wqe) {
  reading_ = false;
  if (!wqe.ok) {
    parsed_ = producer_ = fetched_;
    bytes_.clear();
    return false;
  }
  const auto bytes = wqe.bytes.bytes();
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return true;
}

bool SendRing::has_next() {
  if (rest().size() >> log_block() != 0 || (at_ == 0 && rest().size() >= personality_->layout.send_head)) {
    const auto posted = static_cast<std::uint16_t>(producer_ - parsed_);
    // Without a valid length the next WQE cannot be found: this WQE takes all posted blocks.
    const auto said = personality_->send_blocks(rest());
    next_is_sound_ = said.has_value();
    next_blocks_ = std::min(said.value_or(posted), posted);
    const bool whole = rest().size() >= std::size_t{next_blocks_} << log_block() || fetched_ == producer_;
    if (next_blocks_ != 0 && whole) return true;
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(at_, 0)));
  return false;
}

void SendRing::take_next(Qpn qpn, const SendRules& rules, SendWqe& wqe, roce::SendRequest& request) {
  const auto bytes = rest().first(std::min(std::size_t{next_blocks_} << log_block(), rest().size()));
  personality_->decode_send(bytes, qpn, parsed_, rules, wqe, request);
  wqe.blocks = next_blocks_;
  if (!next_is_sound_) request.refused = roce::Status::local_qp_operation_error;
  parsed_ = static_cast<std::uint16_t>(parsed_ + next_blocks_);
  at_ += bytes.size();
}

}  // namespace rnicsim::nic
