// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/initial_memory.h"

#include <algorithm>
#include <tuple>

#include "sim/replay/request_answers.h"

namespace rnicsim::sim::wire_workload {
namespace {

constexpr std::uint64_t kRegionPage = 4096;
// Parts at most this far apart become one region: a program registers a whole buffer, and the device's keys are few.
constexpr std::uint64_t kMostApart = 1 << 20;

// Learns the bytes in the answers to a READ or an atomic.
void learn_from_answers(const replay::QpEnvironment& qp, const replay::Request& request, InitialMemory& memory) {
  const auto& headers = request.packet->headers;
  const auto mtu = roce::mtu_bytes(qp.path_mtu);
  replay::each_answer(qp, request, [&](const replay::WirePacket& answer, std::uint32_t index) {
    if (headers.atomic && answer.headers.atomic_ack)
      memory.learn(headers.atomic->rkey.value, headers.atomic->address,
                   std::as_bytes(std::span(&*answer.headers.atomic_ack, 1)));
    if (headers.reth)
      memory.learn(headers.reth->rkey.value, headers.reth->address + std::uint64_t{index} * mtu,
                   answer.payload.bytes());
  });
}

// Follows the target addresses of a WRITE's packets: only the first packet contains the address.
class WriteTargets {
 public:
  void take(const replay::QpEnvironment& qp, const replay::WirePacket& packet, InitialMemory& memory) {
    if (packet.headers.reth) targets_[&qp] = *packet.headers.reth;
    const auto target = targets_.find(&qp);
    if (target == targets_.end()) return;  // the WRITE began before the capture
    const auto bytes = packet.payload.size();
    memory.write(target->second.rkey.value, target->second.address, bytes);
    target->second.address += bytes;
  }

 private:
  std::map<const replay::QpEnvironment*, roce::Reth> targets_;  // only looked up: the order of addresses has no effect
};

}  // namespace

template <class Take>
void InitialMemory::each_page(std::uint32_t rkey, std::uint64_t address, std::uint64_t length, Take&& take) {
  for (std::uint64_t done = 0; done < length;) {
    const auto at = address + done;
    const auto count = std::min(length - done, kPage - at % kPage);
    take(pages_[{rkey, at / kPage}], at % kPage, done, count);
    done += count;
  }
}

void InitialMemory::learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes) {
  each_page(rkey, address, bytes.size(), [&](Page& page, std::uint64_t to, std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (page.settled[to + i]) continue;
      page.bytes[to + i] = bytes[from + i];
      page.settled[to + i] = page.is_known = true;
    }
  });
}

void InitialMemory::write(std::uint32_t rkey, std::uint64_t address, std::uint64_t length) {
  each_page(rkey, address, length, [](Page& page, std::uint64_t to, std::uint64_t, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) page.settled[to + i] = true;
  });
}

std::vector<KnownBytes> InitialMemory::contents() const {
  std::vector<KnownBytes> contents;
  for (const auto& [place, page] : pages_)
    if (page.is_known) contents.push_back({place.first, place.second * kPage, {page.bytes.begin(), page.bytes.end()}});
  return contents;
}

std::vector<KnownBytes> contents_of(const replay::Environment& environment) {
  std::vector<std::pair<const replay::QpEnvironment*, const replay::Request*>> order;
  for (const auto& qp : environment.qps)
    for (const auto& request : qp.requests)
      if (request.executed || qp.transport == roce::Transport::uc) order.emplace_back(&qp, &request);
  std::ranges::stable_sort(order, {}, [](const auto& step) { return step.second->packet->frame; });
  InitialMemory memory;
  WriteTargets targets;
  for (const auto& [qp, request] : order) {
    const auto& packet = *request->packet;
    switch (packet.row().operation) {
      case roce::Operation::read: learn_from_answers(*qp, *request, memory); break;
      case roce::Operation::atomic:
        learn_from_answers(*qp, *request, memory);
        memory.write(packet.headers.atomic->rkey.value, packet.headers.atomic->address, roce::kAtomicBytes);
        break;
      case roce::Operation::write:
      case roce::Operation::atomic_write: targets.take(*qp, packet, memory); break;
      default: break;
    }
  }
  return memory.contents();
}

std::vector<Region> joined_regions(std::vector<Region> named) {
  const auto order = [](const Region& region) { return std::tuple(region.rkey, region.address); };
  std::erase_if(named, [](const Region& region) {
    return region.length == 0 || region.address + region.length < region.address ||
           region.address + region.length > ~std::uint64_t{0} - kRegionPage;
  });
  std::ranges::sort(named, {}, order);
  std::vector<Region> joined;
  for (const auto& region : named) {
    const auto begin = region.address / kRegionPage * kRegionPage;
    const auto end = (region.address + region.length + kRegionPage - 1) / kRegionPage * kRegionPage;
    if (!joined.empty() && joined.back().rkey == region.rkey) {
      auto& last = joined.back();
      if (begin <= last.address + last.length + kMostApart) {
        last.length = std::max(last.address + last.length, end) - last.address;
        continue;
      }
    }
    joined.push_back({region.rkey, begin, end - begin});
  }
  return joined;
}

}  // namespace rnicsim::sim::wire_workload
