// SPDX-License-Identifier: Apache-2.0
#include "sim/python/station.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/python/running.h"
#include "sim/recording/log_choice.h"

namespace rnicsim::sim::python {
namespace {

template <class Socket>
bool transport(Socket& socket, tlm::tlm_command command, std::uint64_t address, std::span<std::byte> data) {
  tlm::tlm_generic_payload request;
  request.set_command(command);
  request.set_address(address);
  request.set_data_ptr(reinterpret_cast<unsigned char*>(data.data()));
  request.set_data_length(static_cast<unsigned>(data.size()));
  request.set_streaming_width(static_cast<unsigned>(data.size()));
  auto delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(request, delay);
  return request.is_response_ok();
}

}  // namespace

struct Station::Counters {
  nic::NicCounters nic;
  host::IommuCounters iommu;

  void describe(CounterVisitor& visit) const {
    visit.group("nic", nic);
    visit.group("iommu", iommu);
  }
};

Station::Station(sc_core::sc_module_name name, std::uint32_t number, const nic::NicParams& params,
                 const driver_check::CheckParams* check)
    : sc_module(name),
      number_(number),
      iommu_(fmt::format("device {}", number)),
      root_("root_complex", {}, iommu_),
      nic_("nic", params) {
  root_.bar.bind(nic_.bar());
  root_.config.bind(nic_.config());
  nic_.dma().bind(root_.upstream);
  nic_.blocks().pcie.reach(root_);
  if (check != nullptr) check_ = std::make_unique<driver_check::DriverCheck>(nic_, *check);
  root_.interrupt.bind([this](std::uint32_t vector) { interrupted(vector); });
  nic_.frame_out().bind([this](Frame&& frame) {
    auto& kept = frames_.emplace_back(now(), std::vector<std::byte>()).second;
    frame.append_to(kept);
    if (peer_ != nullptr) peer_->arriving_.push(now() + latency_, std::move(frame));
  });
}

// The NIC gets the frame at its arrival time, so frames injected meanwhile come first.
void Station::arrive_due() {
  Frame frame;
  while (arriving_.pop_due(frame)) nic_.receive(std::move(frame));
}

void Station::connect(Station& peer, Duration latency) {
  peer_ = &peer;
  latency_ = latency;
}

std::optional<std::vector<std::byte>> Station::read(Space where, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  const bool ok = where == Space::bar ? transport(root_.bar, tlm::TLM_READ_COMMAND, offset, data)
                                      : transport(root_.config, tlm::TLM_READ_COMMAND, offset, data);
  return ok ? std::optional(std::move(data)) : std::nullopt;
}

bool Station::write(Space where, std::uint64_t offset, std::span<std::byte> bytes) {
  return where == Space::bar ? transport(root_.bar, tlm::TLM_WRITE_COMMAND, offset, bytes)
                             : transport(root_.config, tlm::TLM_WRITE_COMMAND, offset, bytes);
}

std::shared_ptr<Buffer> Station::allocate(std::size_t bytes) {
  return std::make_shared<Buffer>(Buffer{++buffers_, std::vector<std::byte>(bytes)});
}

IovaSpace& Station::space(Pasid pasid) {
  const auto [found, is_new] = spaces_.try_emplace(pasid);
  if (is_new) iommu_.attach(pasid, found->second);
  return found->second;
}

void Station::map(const std::shared_ptr<Buffer>& buffer, std::uint64_t iova, Pasid pasid, bool writable) {
  const auto bytes = buffer->bytes.size();
  if (iova + bytes < iova || !space(pasid).map(iova, buffer, writable))
    throw std::invalid_argument(fmt::format("PASID {}: some of {:#x} to {:#x} is mapped", pasid, iova, iova + bytes));
  iommu_.pin(pasid, iova, bytes, writable);
  if (check_) check_->mapped(pasid, iova, bytes);
}

void Station::unmap(std::uint64_t iova, Pasid pasid) {
  const auto mapping = space(pasid).unmap(iova);
  if (!mapping) throw std::invalid_argument(fmt::format("PASID {}: nothing is mapped from {:#x} on", pasid, iova));
  iommu_.unpin(pasid, iova, mapping->buffer->bytes.size(), mapping->writable);
  if (check_) check_->unmapped(pasid, iova, mapping->buffer->bytes.size());
}

std::optional<std::vector<std::byte>> Station::load(std::uint64_t iova, Pasid pasid, std::size_t bytes) {
  if (!space(pasid).covers(iova, bytes, false)) return std::nullopt;
  std::vector<std::byte> data(bytes);
  space(pasid).read(iova, data);
  return data;
}

bool Station::store(std::uint64_t iova, Pasid pasid, std::span<const std::byte> bytes) {
  return space(pasid).covers(iova, bytes.size(), true) && space(pasid).write(iova, bytes);
}

// While it exists, an awaited interrupt pauses the run.
struct Station::Awaiting {
  Awaiting(Station& station, std::optional<std::uint32_t> vector) : station(station) {
    station.awaited_ = true;
    station.awaited_vector_ = vector;
  }
  ~Awaiting() { station.awaited_ = false; }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;
  Station& station;
};

void Station::interrupted(std::uint32_t vector) {
  interrupts_.emplace_back(now(), vector);
  if (awaited_ && awaited_vector_.value_or(vector) == vector) pause_run();
}

std::optional<std::pair<Duration, std::uint32_t>> Station::next_interrupt(std::optional<std::uint32_t> vector,
                                                                          Duration limit) {
  const Duration end = now() + limit;
  for (;;) {
    const auto found = std::ranges::find_if(
        interrupts_, [&](const auto& interrupt) { return vector.value_or(interrupt.second) == interrupt.second; });
    if (found != interrupts_.end()) {
      const auto taken = *found;
      interrupts_.erase(found);
      return taken;
    }
    if (now() >= end) return std::nullopt;
    const Awaiting awaiting(*this, vector);
    run_for_a_while(end);
  }
}

void Station::inject(std::span<const std::byte> bytes) { nic_.receive(Frame::of(Payload::copy_of(bytes))); }

std::vector<CounterEntry> Station::counters() const {
  return CounterList(Counters{nic_.counters(), iommu_.counters()}).entries();
}

void Station::Trace::write(const TraceEvent& event) {
  static const std::vector<std::string> names{"device0", "device1"};
  if (kept) events.push_back(event);
  if (!shown.empty() && shown[static_cast<std::size_t>(event.kind)]) fmt::print(stderr, "{}\n", to_text(event, names));
}

void Station::record() {
  trace_.kept = true;
  watch();
}

void Station::log(const std::vector<std::string>& choices) {
  std::vector<LogChoice> parsed;
  for (const auto& choice : choices) parsed.push_back(parse_log_choice(choice));
  trace_.shown = shown_kinds(parsed);
  watch();
}

void Station::watch() {
  if (std::exchange(watched_, true)) return;
  recorder_.watch_nic(number_, nic_.blocks());
  recorder_.watch_root(number_, root_, 0);
}

}  // namespace rnicsim::sim::python
