// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/receive_ring.h"

#include <algorithm>

namespace rnicsim::nic {

std::optional<RingRead> ReceiveRing::begin_read(const QpContext& context) {
  if (reading()) return std::nullopt;
  if (all_read()) return read_record(context);
  const auto ring = 1u << context.log_receive_wqes;
  const auto at = fetched_ & (ring - 1);
  const std::uint32_t left = static_cast<std::uint16_t>(producer_ - fetched_);
  const auto count = std::min({left, ahead_, ring - at});
  const auto stride = 1u << context.log_receive_stride;
  reading_ = Reading::receives;
  return RingRead{context.receive_ring + std::uint64_t{at} * stride, count * stride};
}

RingRead ReceiveRing::read_record(const QpContext& context) {
  reading_ = Reading::record;
  return {context.doorbell_record, personality_->layout.qp_record};
}

ReceiveRing::Found ReceiveRing::end_read(const WqeBytes& read, const QpContext& context) {
  const bool record = std::exchange(reading_, Reading::nothing) == Reading::record;
  const auto bytes = read.bytes.bytes();
  if (record) {
    if (!read.ok) return Found::nothing;
    const auto producer = personality_->receives_posted(bytes);
    const auto added = static_cast<std::uint16_t>(producer - fetched_);
    if (added <= 1u << context.log_receive_wqes) producer_ = producer;
    return producer_ != fetched_ ? Found::posted : Found::nothing;
  }
  if (flush_looks_) return Found::nothing;  // the flush takes them from the ring
  if (!read.ok) return Found::no_ring;
  const std::size_t stride = std::size_t{1} << context.log_receive_stride;
  for (std::size_t at = 0; at < bytes.size(); at += stride)
    held_.push_back(personality_->decode_receive(bytes.subspan(at, stride), fetched_++));
  return Found::receives;
}

bool ReceiveRing::low(const QpContext& context) const {
  const auto at_a_time = std::min(ahead_, 1u << context.log_receive_wqes);
  return held() < (at_a_time + 1) / 2;
}

std::optional<std::uint16_t> ReceiveRing::release() {
  if (held_.empty()) return std::nullopt;
  const auto index = held_.front().index;
  held_.pop_front();
  return index;
}

void ReceiveRing::put_back() {
  if (reading()) return;
  fetched_ = consumer();
  held_.clear();
}

void ReceiveRing::fill_next() {
  filling_ = std::move(held_.front());
  held_.pop_front();
}

std::optional<RingRead> ReceiveRing::flush_read(const QpContext& context) {
  if (reading() || !std::exchange(flush_looks_, false)) return std::nullopt;
  return read_record(context);
}

std::optional<std::uint16_t> ReceiveRing::flush_next() {
  if (reading()) return std::nullopt;
  if (filling_) return std::exchange(filling_, std::nullopt)->index;
  if (held_.empty()) return fetched_ != producer_ ? std::optional(fetched_++) : std::nullopt;
  const auto index = held_.front().index;
  held_.pop_front();
  return index;
}

}  // namespace rnicsim::nic
