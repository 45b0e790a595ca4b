// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/raw_rx.h"

#include <algorithm>
#include <utility>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/frame_headers.h"

namespace rnicsim::nic {
namespace {

Payload bytes_of(const Frame& frame) {
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  return Payload::copy_of(bytes);
}

}  // namespace

void RawRx::look_up_due() {
  Waiting next;
  while (looked_up_.pop_due(next)) {
    if (!flows_.takes_nothing() && give(next.came, next.sniffed)) continue;
    if (next.sniffed) continue;
    ++counters_.no_flow;
    dropped({DropCause::not_roce});
  }
}

// True if a rule matches; the rule may drop the frame.
bool RawRx::give(FrameIn& came, bool to_sniffers) {
  const auto bytes = bytes_of(came.frame);
  const FrameHeaders headers(bytes.bytes());
  hits_.clear();
  given_.clear();
  const bool taken = flows_.look_up(headers, bytes.size(), to_sniffers, hits_);
  if (taken) ++counters_.frames;
  for (const auto& hit : hits_) give_to(hit, headers, bytes, came);
  return taken;
}

// The first destination gets the buffer hold.
void RawRx::give_to(const FlowHit& hit, const FrameHeaders& headers, const Payload& bytes, FrameIn& came) {
  auto destination = hit.destination;
  RawFacts facts{.checksums_right = checksums_right(bytes.bytes()), .flow_tag = hit.tag};
  if (const auto* scaling = scaling_.find(destination)) {
    facts.rss_hash = rss_hash(*scaling, headers);
    destination = scaling->queues[facts.rss_hash & (scaling->queues.size() - 1)];
  }
  // Several destinations may lead to the same queue.
  if (std::ranges::find(given_, destination) != given_.end()) return;
  given_.push_back(destination);
  ++counters_.copies;
  packet({.packet = Packet::received(bytes, facts, came.frame.id()),
          .destination = destination,
          .hold = std::move(came.hold)});
}

}  // namespace rnicsim::nic
