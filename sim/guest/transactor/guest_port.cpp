// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/guest_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "sim/guest/transactor/pci_registers.h"

namespace rnicsim::sim {
namespace {

constexpr unsigned kMostComplaints = 20;

void print_line(const std::string& line) { fmt::print(stderr, "rnicsim: {}\n", line); }

bool is_message(std::uint64_t address, std::size_t bytes) {
  return bytes == 4 && address >= pci::kMessageWindow && address < pci::kMessageWindow + pci::kMessageWindowBytes;
}

}  // namespace

GuestPort::GuestPort(sc_core::sc_module_name name, const GuestFunction& function)
    : sc_module(name), say(print_line), function_(function) {
  upstream_.register_b_transport(this, &GuestPort::serve_device);
  bar_.bind(function.bar);
  config_.bind(function.config);
  function.dma.bind(upstream_);
}

bool GuestPort::read_config(std::uint32_t offset, std::span<std::byte> bytes) {
  ++counters_.config_accesses;
  return access(config_, tlm::TLM_READ_COMMAND, offset, bytes);
}

bool GuestPort::write_config(std::uint32_t offset, std::span<const std::byte> bytes) {
  ++counters_.config_accesses;
  std::array<std::byte, pci::kMostConfigBytes> copy;
  if (bytes.size() > copy.size()) return false;
  std::ranges::copy(bytes, copy.begin());
  const auto control = device_control();
  const auto high = control ? std::int64_t{*control} + 1 - offset : -1;
  const bool resets = high >= 0 && high < std::int64_t(bytes.size()) &&
                      (bytes[std::size_t(high)] & std::byte(pci::kFunctionLevelReset >> 8)) != std::byte{0};
  if (resets) ++function_resets_;
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

// No effect on a function without function-level reset.
void GuestPort::reset() {
  const auto control = device_control();
  if (!control) return;
  ++function_resets_;
  std::array<std::byte, 2> bytes{std::byte(pci::kFunctionLevelReset & 0xff), std::byte(pci::kFunctionLevelReset >> 8)};
  access(config_, tlm::TLM_WRITE_COMMAND, *control, bytes);
}

void GuestPort::clear() {
  memory_.clear();
  complaints_ = 0;
  reset();
}

std::uint64_t GuestPort::bar_address() {
  const std::uint64_t low = config_word(pci::kBar0);
  const bool wide = (low & pci::kBarTypeMask) == pci::kBarType64;
  return (low & ~pci::kBarFlags) | (wide ? std::uint64_t{config_word(pci::kBar0 + 4)} << 32 : 0);
}

std::uint32_t GuestPort::config_word(std::uint32_t offset) {
  std::uint32_t word = 0;  // little-endian
  access(config_, tlm::TLM_READ_COMMAND, offset, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

// Offset of a capability. The number of steps is limited, since a broken list may have a loop.
std::optional<std::uint32_t> GuestPort::capability(std::uint8_t id) {
  std::uint32_t at = config_word(pci::kCapabilityPointer) & pci::kCapabilityMask;
  for (int steps = 0; at != 0 && steps < pci::kMostCapabilities; ++steps) {
    const auto word = config_word(at);
    if ((word & 0xff) == id) return at;
    at = (word >> 8) & pci::kCapabilityMask;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> GuestPort::device_control() {
  const auto express = capability(pci::kExpressCapability);
  if (!express) return std::nullopt;
  return *express + pci::kDeviceControlOffset;
}

const GuestPort::Msix& GuestPort::msix() {
  if (msix_) return *msix_;
  msix_.emplace();
  if (const auto at = capability(pci::kMsixCapability)) {
    msix_->control = *at + pci::kMsixControlOffset;
    msix_->vectors = (config_word(*at) >> 16 & pci::kMsixTableSize) + 1;
    msix_->table = config_word(*at + pci::kMsixTableOffset) & ~pci::kMsixBarMask;
  }
  return *msix_;
}

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
         validate(memory_.read(address, bytes), "read", address, bytes.size());
}

bool GuestPort::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  if (!in_guest(pasid, "write", address, bytes.size())) return false;
  if (!is_message(address, bytes.size()))
    return validate(memory_.write(address, bytes), "write", address, bytes.size());
  ++counters_.interrupts;
  std::uint32_t data = 0;  // little-endian
  std::memcpy(&data, bytes.data(), sizeof data);
  if (interrupt) interrupt(address, data);
  return true;
}

bool GuestPort::peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  return pasid == kKernelPasid && memory_.peek(address, bytes);
}

// PASIDs other than 0 need an IOMMU; a guest has none that the device could use.
bool GuestPort::in_guest(Pasid pasid, const char* what, std::uint64_t address, std::size_t bytes) {
  if (pasid == kKernelPasid) return true;
  ++counters_.dma_refused;
  complain(
      fmt::format("DMA {} of {} bytes at {:#x} in PASID {}: a guest has PASID 0 only", what, bytes, address, pasid));
  return false;
}

bool GuestPort::validate(GuestMemory::Answer answer, const char* what, std::uint64_t address, std::size_t bytes) {
  if (answer == GuestMemory::Answer::done) return true;
  ++counters_.dma_refused;
  complain(fmt::format("DMA {} of {} bytes at {:#x}: {}", what, bytes, address, to_string(answer)));
  return false;
}

void GuestPort::serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  if (auto* translation = request.get_extension<TranslationExtension>()) return translate(request, *translation);
  if (request.get_byte_enable_ptr() != nullptr) return request.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  const auto* extension = request.get_extension<PasidExtension>();
  const Pasid pasid = extension != nullptr ? extension->pasid : kKernelPasid;
  const std::span bytes(reinterpret_cast<std::byte*>(request.get_data_ptr()), request.get_data_length());
  if (request.get_command() == tlm::TLM_IGNORE_COMMAND)
    return request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  const bool done =
      request.is_read() ? read(pasid, request.get_address(), bytes) : write(pasid, request.get_address(), bytes);
  request.set_response_status(done ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

// Used for the lock of an atomic. A bus address of a guest is its physical address.
void GuestPort::translate(tlm::tlm_generic_payload& request, TranslationExtension& translation) {
  const auto* pasid = request.get_extension<PasidExtension>();
  const bool known = (pasid == nullptr || pasid->pasid == kKernelPasid) && memory_.holds(request.get_address(), 8);
  if (known) translation.physical = request.get_address();
  request.set_response_status(known ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

void GuestPort::complain(const std::string& what) {
  if (complaints_ == kMostComplaints) return;
  ++complaints_;
  say(fmt::format("{}: {}{}", label(), what,
                  complaints_ == kMostComplaints ? " (later messages of this guest are not printed)" : ""));
}

}  // namespace rnicsim::sim
