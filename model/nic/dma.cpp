#include "model/nic/dma.h"

#include <cstring>

namespace rnicsim::nic {

void DmaParams::describe(ParamVisitor& visit) {
  visit.param("read_latency", read_latency, "PCIe read of 64 B, idle; spec/timing.md, cx5 (measured 372-488 ns)", {0, 1e9});
  visit.param("read_internal", read_internal, "the device's own part of a read; spec/timing.md, cx5", {0, 1e9});
  visit.param("write_latency", write_latency, "posted write until visible in memory; spec/timing.md, cx5", {0, 1e9});
  visit.param("rate", rate, "PCIe each way after encoding and DLLPs; Gen3 x16 less 3%, spec/timing.md", {1e9, 1e13});
  visit.param("max_payload", max_payload, "largest payload of a TLP (MPS); spec/timing.md, cx5", {64, 4096});
  visit.param("request_header", request_header, "MWr or MRd TLP with framing; spec/timing.md", {0, 64});
  visit.param("completion_header", completion_header, "CplD TLP with framing; spec/timing.md", {0, 64});
  visit.param("burst", burst, "most bytes of adjoining accesses made in one call to the host", {4096, 1 << 20});
}

void DmaCounters::describe(CounterVisitor& visit) const {
  visit.counter("reads", reads, "requests", "reads of host memory issued");
  visit.counter("read_bytes", read_bytes, "bytes", "bytes read from host memory");
  visit.counter("writes", writes, "requests", "writes to host memory issued");
  visit.counter("write_bytes", write_bytes, "bytes", "bytes written to host memory");
  visit.counter("errors", errors, "requests", "accesses that the host refused");
}

Dma::Dma(sc_core::sc_module_name name, const DmaParams& params) : sc_module(name), params_(params) {
  SC_HAS_PROCESS(Dma);
  SC_METHOD(complete_due);
  sensitive << queue_.event();
  dont_initialize();
}

Duration Dma::service(std::uint64_t bytes, ByteCount header) const {
  const auto tlps = bytes == 0 ? 1 : (bytes - 1) / params_.max_payload.bytes + 1;
  return params_.rate.time_for({bytes + tlps * header.bytes});
}

void Dma::read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, ReadDone done) {
  ++counters_.reads;
  counters_.read_bytes += bytes;
  read_free_ = std::max(now(), read_free_) + service(bytes, params_.completion_header);
  reads_.push_back({.pasid = pasid, .address = address, .data = Payload().slice(0, bytes), .read_done = std::move(done)});
  queue_.push(read_free_ + params_.read_latency + params_.read_internal, Due::read);
}

void Dma::write(Pasid pasid, std::uint64_t address, Payload data, WriteDone done, Placement placement) {
  ++counters_.writes;
  counters_.write_bytes += data.size();
  const auto occupied = service(data.size(), params_.request_header);
  Access access{.pasid = pasid, .address = address, .data = std::move(data), .write_done = std::move(done),
                .more = placement.more};
  if (placement.right_behind) {
    lone_free_ = std::max(now(), lone_free_) + occupied;
    lone_writes_.push_back(std::move(access));
    queue_.push(lone_free_, Due::lone_write);
    return;
  }
  write_free_ = std::max(now(), write_free_) + occupied;
  writes_.push_back(std::move(access));
  queue_.push(write_free_ + params_.write_latency, Due::write);
}

void Dma::reset() {
  queue_.clear();
  reads_.clear();
  writes_.clear();
  lone_writes_.clear();
  burst_.clear();
  burst_bytes_ = 0;
  read_free_ = write_free_ = lone_free_ = now();
}

void Dma::complete_due() {
  Due due;
  while (queue_.pop_due(due)) {
    if (due == Due::read) complete_read();
    if (due == Due::write) land_next();
    if (due == Due::lone_write) {
      auto access = std::move(lone_writes_.front());
      lone_writes_.pop_front();
      land(access);
      if (access.write_done) access.write_done(access.result);
    }
  }
}

bool Dma::adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const {
  return a.pasid == b.pasid && a.address + a.data.size() == b.address && burst_bytes + b.data.size() <= params_.burst.bytes;
}

void Dma::complete_read() {
  if (!reads_.front().sampled) sample_burst();
  auto access = std::move(reads_.front());
  reads_.pop_front();
  if (access.result != AccessResult::ok) ++counters_.errors;
  access.read_done(access.result, std::move(access.data));
}

void Dma::sample_burst() {
  std::size_t count = 1;
  std::uint64_t bytes = reads_.front().data.size();
  while (count < reads_.size() && adjoins(reads_[count - 1], reads_[count], bytes)) bytes += reads_[count++].data.size();
  if (count == 1) return sample(reads_.front());
  Payload whole(bytes);
  auto& first = reads_.front();
  // A burst that fails is tried access by access when each is due, so that only the bad part fails.
  if (!transfer(tlm::TLM_READ_COMMAND, first.pasid, first.address, whole.writable())) return sample(reads_.front());
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto size = reads_[i].data.size();
    reads_[i].data = whole.slice(offset, size);
    reads_[i].sampled = true;
    offset += size;
  }
}

void Dma::sample(Access& access) {
  const auto bytes = access.data.size();
  access.data = Payload(bytes);
  access.sampled = true;
  const bool ok = bytes == 0 || transfer(tlm::TLM_READ_COMMAND, access.pasid, access.address, access.data.writable());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
}

void Dma::land_next() {
  burst_.push_back(std::move(writes_.front()));
  writes_.pop_front();
  const auto& last = burst_.back();
  burst_bytes_ += last.data.size();
  if (last.more && !writes_.empty() && adjoins(last, writes_.front(), burst_bytes_)) return;
  land_burst();
}

void Dma::land_burst() {
  auto burst = std::exchange(burst_, {});
  const auto bytes = std::exchange(burst_bytes_, 0);
  bool together = burst.size() > 1;
  if (together) {
    // Slices of one buffer, as a sender on this machine gathers them, need no copy.
    bool one_buffer = true;
    for (std::size_t i = 1; i < burst.size(); ++i) {
      const auto before = burst[i - 1].data.bytes();
      one_buffer &= before.data() + before.size() == burst[i].data.bytes().data();
    }
    std::span<std::byte> data(burst[0].data.writable().data(), bytes);
    if (!one_buffer) {
      scratch_.clear();
      for (const auto& access : burst)
        scratch_.insert(scratch_.end(), access.data.bytes().begin(), access.data.bytes().end());
      data = scratch_;
    }
    together = transfer(tlm::TLM_WRITE_COMMAND, burst[0].pasid, burst[0].address, data);
  }
  for (auto& access : burst) {
    if (!together) land(access);
    if (access.write_done) access.write_done(access.result);
  }
}

void Dma::land(Access& access) {
  const bool ok = access.data.empty() ||
                  transfer(tlm::TLM_WRITE_COMMAND, access.pasid, access.address, access.data.writable());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
  if (!ok) ++counters_.errors;
}

}  // namespace rnicsim::nic
