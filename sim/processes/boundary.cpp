// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/boundary.h"

#include <algorithm>

#include "model/nic/packets/frame_transfer.h"
#include "sim/processes/partition.h"

namespace rnicsim::sim {

Boundary::Boundary(Peers& peers, const Config& config)
    : peers_(peers),
      topology_(config.topology),
      owners_(partition(config.topology, peers.count())),
      window_(INT64_MAX),
      frames_(peers.count()) {
  for (std::uint32_t cable = 0; cable < topology_.cables.size(); ++cable)
    if (cuts(cable)) window_ = std::min(window_, config.link_of(cable).latency);
}

bool Boundary::cuts(std::uint32_t cable) const {
  const auto [from, to] = topology_.cables[cable];
  return owners_[from] != owners_[to];
}

void Boundary::connect(std::uint32_t cable, std::uint32_t end, Receive receive) {
  receivers_[{cable, end}] = std::move(receive);
}

void Boundary::send(std::uint32_t cable, std::uint32_t end, const Frame& frame, Duration delay) {
  const auto [first, second] = topology_.cables[cable];
  ByteWriter out(frames_[owners_[end == 0 ? first : second]]);
  out.put(cable);
  out.put(end);
  out.put(now());
  out.put(delay);
  nic::put_frame(out, frame);
}

std::vector<Message> Boundary::swap(const std::string& failure, bool vote) {
  std::vector<Message> out(frames_.size());
  for (std::size_t peer = 0; peer < out.size(); ++peer) {
    ByteWriter writer(out[peer]);
    writer.put(vote);
    writer.put_bytes(std::as_bytes(std::span(failure)));
    if (peer == 0 && rank() != 0)
      for (auto* reporter : reporters_) writer.put_bytes(reporter->report());
    out[peer].insert(out[peer].end(), frames_[peer].begin(), frames_[peer].end());
    frames_[peer].clear();
  }
  return peers_.exchange(out);
}

bool Boundary::any(bool own, std::string& failure) {
  bool is_so = own;
  const auto in = swap(failure, own);
  for (std::size_t peer = 0; peer < in.size(); ++peer) {
    if (peer == rank()) continue;
    ByteReader reader(in[peer]);
    is_so |= reader.take<bool>();
    const auto text = reader.take_bytes();
    if (!text.empty() && (failure.empty() || peer < rank()))
      failure.assign(reinterpret_cast<const char*>(text.data()), text.size());
    if (rank() == 0)
      for (auto* reporter : reporters_) reporter->take(reader.take_bytes());
    while (!reader.at_end()) {
      const auto cable = reader.take<std::uint32_t>();
      const auto end = reader.take<std::uint32_t>();
      handing_ = reader.take<Duration>();
      const auto delay = reader.take<Duration>();
      receivers_.at({cable, end})(nic::take_frame(reader), *handing_ + delay - now());
      handing_.reset();
    }
  }
  if (rank() == 0)
    for (auto* reporter : reporters_) reporter->all_told();
  return is_so;
}

void Boundary::meet() {
  std::string none;
  any(false, none);
}

std::string Boundary::first_failure(const std::string& own) {
  const auto text = std::as_bytes(std::span(own));
  auto failures = peers_.exchange(std::vector(frames_.size(), Message(text.begin(), text.end())));
  failures[rank()].assign(text.begin(), text.end());
  for (const auto& failure : failures)
    if (!failure.empty()) return {reinterpret_cast<const char*>(failure.data()), failure.size()};
  return {};
}

std::vector<Message> Boundary::gather(Message own) {
  std::vector<Message> out(peers_.count());
  if (rank() != 0) out.front() = std::move(own);
  return peers_.exchange(out);
}

}  // namespace rnicsim::sim
