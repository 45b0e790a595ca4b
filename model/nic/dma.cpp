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
  SC_METHOD(complete_reads);
  sensitive << reads_.event();
  dont_initialize();
  SC_METHOD(land_bursts);
  sensitive << bursts_.event();
  dont_initialize();
  SC_METHOD(land_lone_writes);
  sensitive << lone_writes_.event();
  dont_initialize();
}

Duration Dma::service(std::uint64_t bytes, ByteCount header) const {
  const auto tlps = bytes == 0 ? 1 : (bytes - 1) / params_.max_payload.bytes + 1;
  return params_.rate.time_for({bytes + tlps * header.bytes});
}

void Dma::read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, Done done) {
  ++counters_.reads;
  counters_.read_bytes += bytes;
  read_free_ = std::max(now(), read_free_) + service(bytes, params_.completion_header);
  reads_.push(read_free_ + params_.read_latency + params_.read_internal,
              {.pasid = pasid, .address = address, .data = Payload().slice(0, bytes), .done = std::move(done)});
}

void Dma::write(Pasid pasid, std::uint64_t address, Payload data, Done done, Placement placement) {
  ++counters_.writes;
  counters_.write_bytes += data.size();
  const auto occupied = service(data.size(), params_.request_header);
  Access access{.pasid = pasid, .address = address, .data = std::move(data), .done = std::move(done),
                .more = placement.more};
  if (placement.right_behind) {
    lone_free_ = std::max(now(), lone_free_) + occupied;
    lone_writes_.push(lone_free_, std::move(access));
    return;
  }
  write_free_ = std::max(now(), write_free_) + occupied;
  const auto lands = write_free_ + params_.write_latency;
  if (joins_burst(access)) {
    ++bursts_.back();
    bursts_.delay_back(lands);
  } else {
    burst_bytes_ = 0;
    bursts_.push(lands, 1u);
  }
  burst_bytes_ += access.data.size();
  writes_.push_back(std::move(access));
}

void Dma::reset() {
  reads_.clear();
  writes_.clear();
  bursts_.clear();
  lone_writes_.clear();
  read_free_ = write_free_ = lone_free_ = now();
}

bool Dma::adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const {
  return a.pasid == b.pasid && a.address + a.data.size() == b.address && burst_bytes + b.data.size() <= params_.burst.bytes;
}

void Dma::complete_reads() {
  Access access;
  while (reads_.pop_due(access)) {
    if (!access.sampled) sample_burst(access);
    if (access.result != AccessResult::ok) ++counters_.errors;
    access.done(access.result, std::move(access.data));
  }
}

// Samples the read that is due, with those behind it that continue it.
void Dma::sample_burst(Access& first) {
  std::size_t count = 0;
  std::uint64_t bytes = first.data.size();
  for (const auto* last = &first; count < reads_.size() && adjoins(*last, reads_[count], bytes); ++count) {
    last = &reads_[count];
    bytes += last->data.size();
  }
  if (count == 0) return sample(first);
  Payload whole(bytes);
  // A burst that fails is tried access by access when each is due, so that only the bad part fails.
  if (!transfer(tlm::TLM_READ_COMMAND, first.pasid, first.address, whole.writable())) return sample(first);
  std::uint32_t offset = 0;
  const auto cut = [&](Access& access) {
    access.data = whole.slice(offset, access.data.size());
    access.sampled = true;
    offset += access.data.size();
  };
  cut(first);
  for (std::size_t i = 0; i < count; ++i) cut(reads_[i]);
}

void Dma::sample(Access& access) {
  const auto bytes = access.data.size();
  access.data = Payload(bytes);
  access.sampled = true;
  const bool ok = bytes == 0 || transfer(tlm::TLM_READ_COMMAND, access.pasid, access.address, access.data.writable());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
}

// The write before this one has not landed and may wait for it: one event serves both.
bool Dma::joins_burst(const Access& access) {
  if (bursts_.empty()) return false;
  const auto& last = writes_[writes_.size() - 1];
  return last.more && adjoins(last, access, burst_bytes_);
}

void Dma::land_bursts() {
  std::uint32_t count;
  while (bursts_.pop_due(count)) {
    const bool together = count > 1 && land_together(count);
    for (; count > 0; --count) {
      auto access = std::move(writes_.front());
      writes_.pop_front();
      if (!together) land(access);
      if (access.done) access.done(access.result, {});
    }
  }
}

bool Dma::land_together(std::uint32_t count) {
  auto& first = writes_[0];
  std::uint64_t bytes = first.data.size();
  // Slices of one buffer, as a sender on this machine gathers them, need no copy.
  bool one_buffer = true;
  for (std::uint32_t i = 1; i < count; ++i) {
    one_buffer &= first.data.bytes().data() + bytes == writes_[i].data.bytes().data();
    bytes += writes_[i].data.size();
  }
  std::span<std::byte> data(first.data.writable().data(), bytes);
  if (!one_buffer) {
    scratch_.clear();
    for (std::uint32_t i = 0; i < count; ++i)
      scratch_.insert(scratch_.end(), writes_[i].data.bytes().begin(), writes_[i].data.bytes().end());
    data = scratch_;
  }
  return transfer(tlm::TLM_WRITE_COMMAND, first.pasid, first.address, data);
}

void Dma::land_lone_writes() {
  Access access;
  while (lone_writes_.pop_due(access)) {
    land(access);
    if (access.done) access.done(access.result, {});
  }
}

void Dma::land(Access& access) {
  const bool ok = access.data.empty() ||
                  transfer(tlm::TLM_WRITE_COMMAND, access.pasid, access.address, access.data.writable());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
  if (!ok) ++counters_.errors;
}

}  // namespace rnicsim::nic
