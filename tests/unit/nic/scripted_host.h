// SPDX-License-Identifier: Apache-2.0
// A minimal host: flat memory behind the device, and MMIO functions.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "model/abi/big_endian.h"
#include "model/abi/device.h"
#include "model/base/kernel.h"
#include "model/base/pcie.h"

namespace rnicsim::nic::test {

constexpr std::uint64_t kMemoryBase = 0x10000000;
constexpr std::size_t kMemoryBytes = 8 << 20;

class Host : public sc_core::sc_module {
 public:
  explicit Host(sc_core::sc_module_name name) : sc_module(name), memory(kMemoryBytes) {
    upstream.register_b_transport(this, &Host::serve);
    upstream.register_transport_dbg(this, &Host::peek);
  }
  tlm_utils::simple_initiator_socket<Host> bar{"bar"};
  tlm_utils::simple_initiator_socket<Host> config{"config"};
  tlm_utils::simple_target_socket<Host> upstream{"upstream"};
  std::vector<std::byte> memory;
  std::vector<std::uint64_t> interrupts;
  std::uint64_t refuse_from = ~0ull;  // addresses from this one on are unmapped
  static constexpr std::uint64_t kReadOnlyBytes = 256;
  std::uint64_t read_only = kMemoryBase + kMemoryBytes;  // writes to kReadOnlyBytes from this address on are refused
  // receives the device's page messages; empty: they are refused
  std::function<void(PageMessageExtension&)> page_message;
  std::vector<std::pair<std::uint64_t, Duration>> landed;  // address and time of every write
  std::uint64_t heap = kMemoryBase;

  std::uint64_t allocate(std::size_t bytes) {
    const auto at = heap;
    heap += (bytes + 4095) & ~std::size_t{4095};
    return at;
  }
  std::byte* at(std::uint64_t address) { return memory.data() + (address - kMemoryBase); }
  template <class T>
  void put(std::uint64_t address, const T& value) {
    std::memcpy(at(address), &value, sizeof(value));
  }
  template <class T>
  T get(std::uint64_t address) {
    T value;
    std::memcpy(static_cast<void*>(&value), at(address), sizeof(value));
    return value;
  }
  bool mmio(std::uint64_t offset, std::span<const std::byte> data) { return access(bar, true, offset, data); }
  bool config_write(std::uint64_t offset, std::uint32_t value, std::size_t bytes) {
    return access(config, true, offset, std::as_bytes(std::span(&value, 1)).first(bytes));
  }
  std::uint32_t config_read(std::uint64_t offset, std::size_t bytes) {
    std::uint32_t value = 0;
    access(config, false, offset, std::as_bytes(std::span(&value, 1)).first(bytes));
    return value;
  }
  // Sends a page message to the device.
  void tell(PageMessageExtension message) {
    tlm::tlm_generic_payload request;
    request.set_command(tlm::TLM_IGNORE_COMMAND);
    request.set_extension(&message);
    auto delay = sc_core::SC_ZERO_TIME;
    bar->b_transport(request, delay);
    request.clear_extension(&message);
  }
  std::uint32_t mmio_read(std::uint64_t offset) {
    std::array<std::byte, 4> data{};
    access(bar, false, offset, data);
    return abi::load_be<std::uint32_t>(data.data());
  }

 private:
  // Debug transport: reads memory without side effects.
  unsigned peek(tlm::tlm_generic_payload& request) {
    const auto address = request.get_address();
    const auto length = request.get_data_length();
    const auto end = std::min(kMemoryBase + kMemoryBytes, refuse_from);
    if (!request.is_read() || address < kMemoryBase || address > end || length > end - address) return 0;
    std::memcpy(request.get_data_ptr(), at(address), length);
    return length;
  }
  template <class Socket>
  bool access(Socket& socket, bool write, std::uint64_t offset, std::span<const std::byte> data) {
    tlm::tlm_generic_payload request;
    request.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    request.set_address(offset);
    request.set_data_ptr(reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data())));
    request.set_data_length(static_cast<unsigned>(data.size()));
    auto delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(request, delay);
    return request.is_response_ok();
  }
  void serve(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
    const auto address = request.get_address();
    const auto length = request.get_data_length();
    request.set_response_status(tlm::TLM_OK_RESPONSE);
    if (auto* message = request.get_extension<PageMessageExtension>()) {
      if (!page_message) return request.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
      return page_message(*message);
    }
    if (address >= abi::kMsiWindow && address < abi::kMsiWindow + abi::kMsiWindowSize) {
      interrupts.push_back((address - abi::kMsiWindow) / 16);
      return;
    }
    const auto end = std::min(kMemoryBase + kMemoryBytes, refuse_from);
    if (address < kMemoryBase || address > end || length > end - address) {
      request.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    if (request.is_write() && address + length > read_only && address < read_only + kReadOnlyBytes)
      return request.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    auto* bytes = reinterpret_cast<std::byte*>(request.get_data_ptr());
    if (request.is_write()) landed.emplace_back(address, now());
    request.is_read() ? std::memcpy(bytes, at(address), length) : std::memcpy(at(address), bytes, length);
  }
};

}  // namespace rnicsim::nic::test
