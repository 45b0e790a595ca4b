// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/capture/pairing.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "sim/replay/posted.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::uint8_t kLargestMtu = 5;

struct Candidate {
  std::size_t explained = 0;
  std::size_t requests = 0;
  std::size_t answers = 0;
};

// Number of answers whose PSN belongs to an earlier request.
std::size_t explained(const RequestStream& requests, const AnswerStream& answers) {
  const auto mtu =
      roce::mtu_bytes(mtu_for(std::max(largest_payload(requests.packets), largest_payload(answers.packets))));
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> asked;  // first PSN -> PSNs, frame
  for (const auto* request : requests.packets)
    asked.try_emplace(request->psn().value(), psns_of(*request, mtu), request->frame);
  std::size_t count = 0;
  for (const auto* answer : answers.packets) {
    auto request = asked.upper_bound(answer->psn().value());
    if (request == asked.begin()) request = asked.end();  // try the largest PSN, which may precede a wrap
    const auto& [first, span] = *std::prev(request);
    const auto ahead = distance(roce::Psn(first), answer->psn());
    if (ahead >= 0 && ahead < static_cast<std::int32_t>(span.first) && span.second < answer->frame) ++count;
  }
  return count;
}

}  // namespace

std::uint8_t mtu_for(std::uint32_t payload) {
  std::uint8_t code = 1;
  while (code < kLargestMtu && roce::mtu_bytes(code) < payload) ++code;
  return code;
}

std::uint32_t largest_payload(std::span<const WirePacket* const> packets) {
  std::uint32_t bytes = 0;
  for (const auto* packet : packets) bytes = std::max(bytes, packet->payload.size());
  return bytes;
}

std::vector<AnswerStream> answer_streams(std::span<const WirePacket* const> answers, bool own) {
  std::vector<AnswerStream> streams;
  for (const auto* answer : answers) {
    const auto& peer = own ? answer->addresses.destination : answer->addresses.source;
    const auto to = answer->headers.bth.destination;
    const auto same = [&](const AnswerStream& stream) { return stream.peer == peer && stream.to == to; };
    auto stream = std::ranges::find_if(streams, same);
    if (stream == streams.end()) stream = streams.insert(streams.end(), {.peer = peer, .to = to, .packets = {}});
    stream->packets.push_back(answer);
  }
  return streams;
}

std::vector<std::optional<std::size_t>> pair_answers(std::span<const RequestStream> requests,
                                                     std::span<const AnswerStream> answers) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < requests.size(); ++i)
    for (std::size_t j = 0; j < answers.size(); ++j) {
      if (requests[i].packets.empty() || requests[i].peer != answers[j].peer) continue;
      const auto count = explained(requests[i], answers[j]);
      if (count != 0) candidates.push_back({count, i, j});
    }
  std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::explained);
  std::vector<std::optional<std::size_t>> paired(requests.size());
  std::vector<bool> taken(answers.size());
  for (const auto& candidate : candidates) {
    if (paired[candidate.requests] || taken[candidate.answers]) continue;
    paired[candidate.requests] = candidate.answers;
    taken[candidate.answers] = true;
  }
  return paired;
}

}  // namespace rnicsim::sim::replay
