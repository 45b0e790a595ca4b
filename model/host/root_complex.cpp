// SPDX-License-Identifier: Apache-2.0
#include "model/host/root_complex.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "model/abi/big_endian.h"
#include "model/abi/device.h"

namespace rnicsim::host {
namespace {

// Only the function itself raises interrupts: a write with a process's PASID goes to memory, whatever its address.
bool is_message(Pasid pasid, std::uint64_t address, std::size_t bytes) {
  return pasid == kKernelPasid && bytes == 4 && address >= abi::kMsiWindow &&
         address < abi::kMsiWindow + abi::kMsiWindowSize;
}

}  // namespace

RootComplex::RootComplex(sc_core::sc_module_name name, const HostParams& params, Iommu& iommu, std::uint32_t function)
    : sc_module(name), params_(params), iommu_(iommu), function_(function) {
  upstream.register_b_transport(this, &RootComplex::serve_device);
  message_.set_command(tlm::TLM_IGNORE_COMMAND);
  message_.set_extension(new PageMessageExtension);
}

void RootComplex::serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto* extension = request.get_extension<PasidExtension>();
  const Pasid pasid = extension ? extension->pasid : kKernelPasid;
  if (request.get_byte_enable_ptr()) {
    request.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  const std::span data(reinterpret_cast<std::byte*>(request.get_data_ptr()), request.get_data_length());
  if (!request.is_read() && !request.is_write()) {
    if (auto* message = request.get_extension<PageMessageExtension>()) return take_message(pasid, request, *message);
    return translate(pasid, request);
  }
  const auto address = request.get_address();
  const bool ok = request.is_read() ? read(pasid, address, data) : write(pasid, address, data);
  request.set_response_status(ok ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

bool RootComplex::read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  const bool ok = iommu_.read({pasid, function_}, address, bytes);
  if (ok && dma_read) dma_read({pasid, address, bytes});
  return ok;
}

bool RootComplex::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  if (is_message(pasid, address, bytes.size())) {
    const auto vector = static_cast<std::uint32_t>((address - abi::kMsiWindow) / 16);
    ++counters_.interrupts;
    interrupts({vector});
    interrupt(std::uint32_t{vector});
    interrupted({vector});
    return true;
  }
  const bool ok = iommu_.write({pasid, function_}, address, bytes);
  if (ok && dma_written) dma_written({pasid, address, bytes.size(), bytes});
  return ok;
}

void RootComplex::translate(Pasid pasid, tlm::tlm_generic_payload& request) {
  auto* translation = request.get_extension<TranslationExtension>();
  if (!translation) return request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  const auto physical = iommu_.physical({pasid, function_}, request.get_address());
  if (physical) translation->physical = *physical;
  request.set_response_status(physical ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

void RootComplex::take_message(Pasid pasid, tlm::tlm_generic_payload& request, PageMessageExtension& message) {
  using Kind = PageMessageExtension::Kind;
  request.set_response_status(tlm::TLM_OK_RESPONSE);
  switch (message.kind) {
    case Kind::translate:
      ++counters_.translations;
      message.translation = iommu_.page_translation({pasid, function_}, message.address);
      message.translation.walk = params_.iommu_walk;
      return;
    case Kind::request:
      ++counters_.page_requests;
      return page_requested(PageRequest{pasid, message.request.address, message.request.write, message.request.index});
    case Kind::invalidated: return invalidated(std::uint32_t{message.tag});
    default: request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  }
}

void RootComplex::respond(const PageResponse& response) {
  messages_.push(now() + params_.mmio_write_latency,
                 {.kind = PageMessageExtension::Kind::response, .response = response});
}

void RootComplex::invalidate(const PageInvalidation& invalidation) {
  messages_.push(now() + params_.mmio_write_latency,
                 {.kind = PageMessageExtension::Kind::invalidate, .invalidation = invalidation});
}

void RootComplex::send_messages_due() {
  PageMessage due;
  while (messages_.pop_due(due)) {
    auto& message = *message_.get_extension<PageMessageExtension>();
    message.kind = due.kind;
    message.response = due.response;
    message.invalidation = due.invalidation;
    message_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    auto delay = sc_core::SC_ZERO_TIME;
    bar->b_transport(message_, delay);
    if (!message_.is_response_ok() && due.kind == PageMessageExtension::Kind::invalidate)
      invalidated(std::uint32_t{due.invalidation.tag});
  }
}

inline void RootComplex::send(Access&& access, std::size_t bytes) {
  to_device_.push(path_.occupy(now(), bytes, params_) + params_.mmio_write_latency, std::move(access));
}

void RootComplex::mmio_write(std::uint32_t offset, Payload&& data) {
  const auto bytes = data.size();
  assert(bytes <= kMostWriteBytes);
  if (requested) requested({CpuRequest::Kind::mmio_write, offset, std::uint32_t(bytes), data.bytes()});
  send({offset, static_cast<std::uint16_t>(bytes), false, now(), std::move(data)}, bytes);
}

// The request travels as fast as a write, so it pushes earlier writes; the value takes the rest of the time.
void RootComplex::mmio_read(std::uint32_t offset, std::uint32_t bytes, std::function<void(std::uint64_t)> done) {
  requested({CpuRequest::Kind::mmio_read, offset, bytes, {}});
  readers_.push_back(std::move(done));
  send({.offset = offset, .bytes = static_cast<std::uint16_t>(bytes), .reads = true, .stored = {}}, 0);
}

void RootComplex::read_bar(const Access& access) {
  std::array<std::byte, 8> data{};
  ++counters_.mmio_reads;
  const bool ok = read_bar(access.offset, std::span(data).last(access.bytes));
  const std::uint64_t all_ones = access.bytes == 8 ? ~0ull : (1ull << (8 * access.bytes)) - 1;
  const std::uint64_t value = ok ? abi::load_be<std::uint64_t>(data.data()) : all_ones;
  const Duration back = std::max(params_.cpu.mmio_read - params_.mmio_write_latency, Duration{});
  to_cpu_.push(now() + back, {value, std::move(readers_.front())});
  readers_.pop_front();
}

void RootComplex::answer_due() {
  Answer answer;
  while (to_cpu_.pop_due(answer)) {
    answered({answer.value});
    answer.done(answer.value);
  }
}

std::uint64_t RootComplex::mmio_read(std::uint32_t offset, std::uint32_t bytes) {
  std::optional<std::uint64_t> value;
  sc_core::sc_event arrived("arrived");
  mmio_read(offset, bytes, [&](std::uint64_t read) {
    value = read;
    wake(arrived);
  });
  while (!value) sleep_on(arrived);
  return *value;
}

std::uint32_t RootComplex::config_read(std::uint16_t offset, std::uint32_t bytes) {
  sleep_until(now() + params_.cpu.mmio_read);
  std::array<std::byte, 4> data{};
  if (!config_request(CpuRequest::Kind::config_read, offset, std::span(data).first(bytes))) return 0xffffffff;
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) value |= std::uint32_t(data[i]) << (8 * i);
  return value;
}

void RootComplex::config_write(std::uint16_t offset, std::uint32_t bytes, std::uint32_t value) {
  sleep_until(now() + params_.cpu.mmio_read);
  std::array<std::byte, 4> data{};
  for (std::uint32_t i = 0; i < bytes; ++i) data[i] = std::byte(value >> (8 * i));
  config_request(CpuRequest::Kind::config_write, offset, std::span(data).first(bytes));
}

void RootComplex::deliver_due() {
  Access access;
  while (to_device_.pop_due(access)) {
    if (access.reads) {
      read_bar(access);
      continue;
    }
    ++counters_.mmio_writes;
    if (carried) carried({access.offset, access.stored});
    write_bar(access.offset, access.data);
  }
}

bool RootComplex::read_bar(std::uint32_t offset, std::span<std::byte> data) {
  if (device_ == nullptr) return access(bar, tlm::TLM_READ_COMMAND, offset, data);
  return accepted(device_->read_bar(offset, data));
}

void RootComplex::write_bar(std::uint32_t offset, Payload& data) {
  if (device_ == nullptr)
    access(bar, tlm::TLM_WRITE_COMMAND, offset, data.writable());
  else
    accepted(device_->write_bar(offset, data.bytes()));
}

bool RootComplex::accepted(bool ok) {
  if (!ok) ++counters_.device_errors;
  return ok;
}

bool RootComplex::config_request(CpuRequest::Kind kind, std::uint16_t offset, std::span<std::byte> data) {
  const bool writes = kind == CpuRequest::Kind::config_write;
  requested({kind, offset, std::uint32_t(data.size()), writes ? data : std::span<std::byte>()});
  return access(config, writes ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND, offset, data);
}

bool RootComplex::access(tlm_utils::simple_initiator_socket<RootComplex>& socket, tlm::tlm_command command,
                         std::uint64_t address, std::span<std::byte> data) {
  request_.set_command(command);
  request_.set_address(address);
  request_.set_data_ptr(reinterpret_cast<unsigned char*>(data.data()));
  request_.set_data_length(static_cast<unsigned>(data.size()));
  request_.set_streaming_width(static_cast<unsigned>(data.size()));
  request_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  auto delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(request_, delay);
  return accepted(request_.is_response_ok());
}

}  // namespace rnicsim::host
