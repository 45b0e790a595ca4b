#include "sim/guest/guest_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "model/abi/device.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter.h"
#include "sim/progress_line.h"

namespace rnicsim::sim {
namespace {

constexpr unsigned kMostComplaints = 20;

void print_line(const std::string& line) {
  progress_line::erase();
  fmt::print(stderr, "rnicsim: {}\n", line);
}

bool is_message(std::uint64_t address, std::size_t bytes) {
  return bytes == 4 && address >= abi::kMsiWindow && address < abi::kMsiWindow + abi::kMsiWindowSize;
}

}  // namespace

GuestPort::GuestPort(sc_core::sc_module_name name, Adapter& adapter)
    : sc_module(name), say(print_line), adapter_(adapter) {
  upstream_.register_b_transport(this, &GuestPort::serve_device);
  bar_.bind(adapter.nic().bar());
  config_.bind(adapter.nic().config());
  adapter.nic().dma().bind(upstream_);
  adapter.nic().blocks().pcie.reach(static_cast<HostMemory&>(*this));
}

const std::string& GuestPort::label() const { return adapter_.label(); }

bool GuestPort::read_config(std::uint32_t offset, std::span<std::byte> bytes) {
  ++counters_.config_accesses;
  return access(config_, tlm::TLM_READ_COMMAND, offset, bytes);
}

bool GuestPort::write_config(std::uint32_t offset, std::span<const std::byte> bytes) {
  ++counters_.config_accesses;
  std::array<std::byte, abi::config::kSize> copy;
  if (bytes.size() > copy.size()) return false;
  std::ranges::copy(bytes, copy.begin());
  return access(config_, tlm::TLM_WRITE_COMMAND, offset, std::span(copy).first(bytes.size()));
}

bool GuestPort::read_bar(std::uint64_t offset, std::span<std::byte> bytes) {
  ++counters_.bar_accesses;
  return access(bar_, tlm::TLM_READ_COMMAND, offset, bytes);
}

bool GuestPort::write_bar(std::uint64_t offset, std::span<const std::byte> bytes) {
  ++counters_.bar_accesses;
  // The device does not change these bytes: TLM-2.0 has one pointer for the data of reads and writes.
  const std::span data(const_cast<std::byte*>(bytes.data()), bytes.size());
  return access(bar_, tlm::TLM_WRITE_COMMAND, offset, data);
}

void GuestPort::reset() {
  std::array<std::byte, 2> control{std::byte(abi::config::kFunctionLevelReset & 0xff),
                                   std::byte(abi::config::kFunctionLevelReset >> 8)};
  access(config_, tlm::TLM_WRITE_COMMAND, abi::config::kDeviceControl, control);
}

void GuestPort::clear() {
  memory_.clear();
  complaints_ = 0;
  reset();
}

std::uint64_t GuestPort::bar_address() {
  constexpr std::uint64_t kFlags = 0xf;
  std::uint64_t bar = 0;
  access(config_, tlm::TLM_READ_COMMAND, abi::config::kBar0, std::as_writable_bytes(std::span(&bar, 1)));
  return bar & ~kFlags;
}

std::uint64_t GuestPort::function_resets() { return adapter_.nic().blocks().pcie.counters().function_resets; }

bool GuestPort::access(tlm_utils::simple_initiator_socket<GuestPort>& socket, tlm::tlm_command command,
                       std::uint64_t address, std::span<std::byte> bytes) {
  tlm::tlm_generic_payload request;
  request.set_command(command);
  request.set_address(address);
  request.set_data_ptr(reinterpret_cast<unsigned char*>(bytes.data()));
  request.set_data_length(static_cast<unsigned>(bytes.size()));
  request.set_streaming_width(static_cast<unsigned>(bytes.size()));
  auto delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(request, delay);
  if (request.is_response_ok()) return true;
  if (command == tlm::TLM_READ_COMMAND) std::ranges::fill(bytes, std::byte{0xff});
  return false;
}

bool GuestPort::read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  return in_guest(pasid, "read", address, bytes.size()) &&
         judge(memory_.read(address, bytes), "read", address, bytes.size());
}

bool GuestPort::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  if (!in_guest(pasid, "write", address, bytes.size())) return false;
  if (!is_message(address, bytes.size()))
    return judge(memory_.write(address, bytes), "write", address, bytes.size());
  ++counters_.interrupts;
  std::uint32_t data = 0;  // little-endian
  std::memcpy(&data, bytes.data(), sizeof data);
  if (interrupt) interrupt(address, data);
  return true;
}

bool GuestPort::look(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  return pasid == kKernelPasid && memory_.look(address, bytes);
}

// PASIDs other than 0 need an IOMMU, and the guest has none that the device could ask.
bool GuestPort::in_guest(Pasid pasid, const char* what, std::uint64_t address, std::size_t bytes) {
  if (pasid == kKernelPasid) return true;
  ++counters_.dma_refused;
  complain(fmt::format("DMA {} of {} bytes at {:#x} in PASID {}: a guest has PASID 0 only", what, bytes, address,
                       pasid));
  return false;
}

bool GuestPort::judge(GuestMemory::Answer answer, const char* what, std::uint64_t address, std::size_t bytes) {
  if (answer == GuestMemory::Answer::done) return true;
  ++counters_.dma_refused;
  complain(fmt::format("DMA {} of {} bytes at {:#x}: {}", what, bytes, address, to_string(answer)));
  return false;
}

// Translation requests, for the lock of an atomic. A bus address of a guest is its physical address.
void GuestPort::serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  auto* translation = request.get_extension<TranslationExtension>();
  if (translation == nullptr) return request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  const auto* pasid = request.get_extension<PasidExtension>();
  const bool known = (pasid == nullptr || pasid->pasid == kKernelPasid) && memory_.holds(request.get_address(), 8);
  if (known) translation->physical = request.get_address();
  request.set_response_status(known ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

void GuestPort::complain(const std::string& what) {
  if (complaints_ == kMostComplaints) return;
  ++complaints_;
  say(fmt::format("{}: {}{}", label(), what,
                  complaints_ == kMostComplaints ? " (and no more is said of this guest)" : ""));
}

}  // namespace rnicsim::sim
