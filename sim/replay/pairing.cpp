#include "sim/replay/pairing.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rnicsim::sim::replay {
namespace {

constexpr std::uint8_t kLargestMtu = 5;

// Answers to one QP of one peer.
struct Stream {
  roce::Gid peer{};
  roce::Qpn peer_qpn;
  std::vector<const WirePacket*> answers;
  bool taken = false;
};

struct Candidate {
  std::size_t explained = 0;
  std::size_t qp = 0;
  std::size_t stream = 0;
};

std::vector<Stream> streams_of(std::span<const WirePacket* const> answers) {
  std::vector<Stream> streams;
  for (const auto* answer : answers) {
    const auto& peer = answer->addresses.destination;
    const auto qpn = answer->headers.bth.destination;
    const auto same = [&](const Stream& stream) { return stream.peer == peer && stream.peer_qpn == qpn; };
    auto stream = std::ranges::find_if(streams, same);
    if (stream == streams.end()) stream = streams.insert(streams.end(), {.peer = peer, .peer_qpn = qpn, .answers = {}});
    stream->answers.push_back(answer);
  }
  return streams;
}

std::uint8_t mtu_for(std::uint32_t payload) {
  std::uint8_t code = 1;
  while (code < kLargestMtu && roce::mtu_bytes(code) < payload) ++code;
  return code;
}

std::uint32_t largest(std::span<const WirePacket* const> packets) {
  std::uint32_t bytes = 0;
  for (const auto* packet : packets) bytes = std::max(bytes, packet->payload.size());
  return bytes;
}

std::uint32_t largest_request(const QpEnvironment& qp) {
  std::uint32_t bytes = 0;
  for (const auto& request : qp.requests) bytes = std::max(bytes, request.packet->payload.size());
  return bytes;
}

std::uint32_t psns_of(const WirePacket& request, std::uint32_t mtu) {
  return request.row().operation == roce::Operation::read ? roce::packets_for(request.headers.reth->length, mtu) : 1;
}

// How many answers have the PSN of a request that came before them.
std::size_t explained(const QpEnvironment& qp, const Stream& stream) {
  const auto mtu = roce::mtu_bytes(mtu_for(std::max(largest_request(qp), largest(stream.answers))));
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> asked;  // first PSN -> PSNs, frame
  for (const auto& request : qp.requests)
    asked.try_emplace(request.first_psn().value(), psns_of(*request.packet, mtu), request.packet->frame);
  std::size_t count = 0;
  for (const auto* answer : stream.answers) {
    auto request = asked.upper_bound(answer->psn().value());
    if (request == asked.begin()) request = asked.end();  // one of the largest PSNs may have gone round
    const auto& [first, span] = *std::prev(request);
    const auto ahead = distance(roce::Psn(first), answer->psn());
    if (ahead >= 0 && ahead < static_cast<std::int32_t>(span.first) && span.second < answer->frame) ++count;
  }
  return count;
}

}  // namespace

void pair_answers(Environment& environment, std::span<const WirePacket* const> answers,
                  std::span<const WirePacket* const> own_requests) {
  auto streams = streams_of(answers);
  std::vector<Candidate> candidates;
  for (std::size_t qp = 0; qp < environment.qps.size(); ++qp)
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      if (streams[stream].peer != environment.qps[qp].peer) continue;
      const auto count = explained(environment.qps[qp], streams[stream]);
      if (count != 0) candidates.push_back({count, qp, stream});
    }
  std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::explained);
  std::vector<bool> paired(environment.qps.size());
  for (const auto& candidate : candidates) {
    auto& stream = streams[candidate.stream];
    if (paired[candidate.qp] || stream.taken) continue;
    paired[candidate.qp] = stream.taken = true;
    auto& qp = environment.qps[candidate.qp];
    qp.peer_qpn = stream.peer_qpn;
    qp.answers = std::move(stream.answers);
  }
  for (const auto& stream : streams)
    if (!stream.taken)
      environment.strays.insert(environment.strays.end(), stream.answers.begin(), stream.answers.end());
  std::ranges::sort(environment.strays, {}, &WirePacket::frame);

  for (auto& qp : environment.qps) {
    auto bytes = std::max(largest_request(qp), largest(qp.answers));
    // A path has one MTU for both directions.
    for (const auto* packet : own_requests)
      if (packet->addresses.destination == qp.peer && packet->headers.bth.destination == qp.peer_qpn)
        bytes = std::max(bytes, packet->payload.size());
    qp.path_mtu = mtu_for(bytes);
    for (auto& request : qp.requests) request.packets = psns_of(*request.packet, roce::mtu_bytes(qp.path_mtu));
  }
}

}  // namespace rnicsim::sim::replay
