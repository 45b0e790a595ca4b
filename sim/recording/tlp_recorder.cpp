// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/tlp_recorder.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/blocks.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/processes/boundary.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint64_t kLine = 64;  // the CPU sends stores line by line

// Calls `piece(begin, bytes)` for each part of [offset, offset + bytes) that ends at a multiple of `size`; once for no
// bytes.
template <class Piece>
void for_each_piece(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size, Piece piece) {
  std::uint64_t done = 0;
  do {
    const auto part = std::min(bytes - done, size - (offset + done) % size);
    piece(done, part);
    done += part;
  } while (done < bytes);
}

}  // namespace

class TlpRecorder::Device {
 public:
  Device(TlpRecorder& recorder, std::uint32_t index, const nic::PcieLinkParams& link, const nic::NicBlocks& nic)
      : recorder_(recorder), index_(index), link_(link) {
    nic.dma_unit.issued.subscribe(
        [this](const nic::DmaIssued& issued) { issued.write ? write(issued) : read(issued); });
    nic.dma_unit.completed.subscribe([this](const nic::DmaCompleted& done) { complete(done); });
    nic.pcie.accessed.subscribe([this](const nic::HostAccess& access) { request(access); });
    nic.pcie.read_answered.subscribe([this](const nic::HostAnswer& answer) {
      put(TlpDirection::to_host, TlpType::completion, answer.accepted ? answer.bytes.size() : 0, 0, 0, answer.offset);
    });
    nic.pcie.was_reset.subscribe([this](const nic::FunctionReset&) {
      reads_.clear();
      tags_.clear();
    });
  }

 private:
  // A read request in flight.
  struct Request {
    std::uint64_t address, offset, bytes;
    std::uint32_t tag;
  };
  struct Read {
    Pasid pasid;
    std::vector<Request> requests;
  };

  void write(const nic::DmaIssued& burst) {
    for_each_piece(burst.offset, burst.bytes, link_.max_payload.bytes, [&](std::uint64_t begin, std::uint64_t bytes) {
      put(TlpDirection::to_host, TlpType::memory_write, bytes, 0, burst.pasid, shown(burst.address + begin));
    });
  }

  void read(const nic::DmaIssued& burst) {
    Read read{burst.pasid, {}};
    for_each_piece(burst.offset, burst.bytes, link_.max_read_request.bytes,
                   [&](std::uint64_t begin, std::uint64_t bytes) {
                     read.requests.push_back({burst.address + begin, burst.offset + begin, bytes, take_tag()});
                     put(TlpDirection::to_host, TlpType::memory_read, bytes, read.requests.back().tag, burst.pasid,
                         shown(burst.address + begin));
                   });
    reads_.insert_or_assign(burst.access, std::move(read));
  }

  void complete(const nic::DmaCompleted& done) {
    const auto found = reads_.find(done.access);
    if (found == reads_.end()) return;
    for (const auto& request : found->second.requests) {
      if (done.result == nic::AccessResult::ok)
        put_data(found->second.pasid, request);
      else if (done.answered)
        put_completion(found->second.pasid, request, 0, 0);
      tags_[request.tag] = false;
    }
    reads_.erase(found);
  }

  // As PcieLink::completion() counts: the first completion ends at a multiple of RCB, if one is not enough.
  void put_data(Pasid pasid, const Request& request) {
    const auto most = link_.max_payload.bytes;
    const auto boundary = std::min(most, link_.read_completion_boundary.bytes);
    std::uint64_t done = 0;
    do {
      const auto room = done == 0 && request.bytes > most ? most - request.offset % boundary : most;
      const auto part = std::min(request.bytes - done, room);
      put_completion(pasid, request, done, part);
      done += part;
    } while (done < request.bytes);
  }

  void put_completion(Pasid pasid, const Request& request, std::uint64_t begin, std::uint64_t bytes) {
    put(TlpDirection::to_device, TlpType::completion, bytes, request.tag, pasid, shown(request.address + begin));
  }

  void request(const nic::HostAccess& access) {
    const bool is_config = access.space == nic::HostAccess::Space::config;
    if (is_config || !access.write) {
      const auto type = !is_config ? TlpType::memory_read : access.write ? TlpType::config_write : TlpType::config_read;
      return put(TlpDirection::to_device, type, access.bytes.size(), 0, 0, access.offset);
    }
    for_each_piece(access.offset, access.bytes.size(), kLine, [&](std::uint64_t begin, std::uint64_t bytes) {
      put(TlpDirection::to_device, TlpType::memory_write, bytes, 0, 0, access.offset + begin);
    });
  }

  // The model counts tags and does not number them: the lowest free number.
  std::uint32_t take_tag() {
    const auto free = std::ranges::find(tags_, false);
    const auto tag = std::uint32_t(free - tags_.begin());
    if (free == tags_.end()) tags_.push_back(true);
    tags_[tag] = true;
    return tag;
  }

  std::uint64_t shown(std::uint64_t address) const { return recorder_.addresses_ == Addresses::shown ? address : 0; }
  void put(TlpDirection direction, TlpType type, std::uint64_t bytes, std::uint32_t tag, Pasid pasid,
           std::uint64_t address) {
    recorder_.sink_.write(make_event(recorder_.time(), index_, EventKind::tlp,
                                     {std::uint64_t(direction), std::uint64_t(type), bytes, tag, pasid, address}));
  }

  TlpRecorder& recorder_;
  const std::uint32_t index_;
  const nic::PcieLinkParams link_;
  std::unordered_map<const void*, Read> reads_;  // by identity; never iterated
  std::vector<bool> tags_;                       // true: in use
};

TlpRecorder::TlpRecorder(System& system, EventSink& sink, Addresses addresses)
    : sink_(sink), addresses_(addresses), boundary_(system.boundary()) {
  for (std::uint32_t i = 0; i < system.adapters(); ++i)
    devices_.push_back(
        std::make_unique<Device>(*this, i, system.config().nic_of(i).dma.link, system.adapter(i).nic().blocks()));
}

TlpRecorder::~TlpRecorder() = default;

Duration TlpRecorder::time() const { return boundary_ != nullptr ? boundary_->time() : now(); }

}  // namespace rnicsim::sim
