// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_device.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>

namespace rnicsim::testing {
namespace {

std::span<std::byte> data_of(tlm::tlm_generic_payload& request) {
  return {reinterpret_cast<std::byte*>(request.get_data_ptr()), request.get_data_length()};
}

template <class T>
std::span<std::byte> bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace

FakeDevice::FakeDevice(sc_core::sc_module_name name) : sc_module(name) {
  bar.register_b_transport(this, &FakeDevice::access_bar);
  config.register_b_transport(this, &FakeDevice::access_config);
}

bool FakeDevice::transfer(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::span<std::byte> data) {
  tlm::tlm_generic_payload request;
  PasidExtension extension;
  extension.pasid = pasid;
  request.set_command(command);
  request.set_address(address);
  request.set_data_ptr(reinterpret_cast<unsigned char*>(data.data()));
  request.set_data_length(static_cast<unsigned>(data.size()));
  request.set_extension(&extension);
  auto delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(request, delay);
  request.clear_extension(&extension);
  return request.is_response_ok();
}

void FakeDevice::raise_event(std::uint32_t eqn, abi::EventType type, std::uint32_t number) {
  EventQueue& queue = event_queues_.at(eqn);
  abi::Eqe eqe{.type = type, .number = number};
  eqe.owner = queue.producer >> queue.context.log_entries & 1;
  const std::uint32_t index = queue.producer++ & ((1u << queue.context.log_entries) - 1);
  transfer(tlm::TLM_WRITE_COMMAND, queue.context.pasid, queue.context.ring + index * sizeof eqe, bytes_of(eqe));
  interrupt(queue.context.msix_vector);
}

std::vector<abi::CommandOpcode> FakeDevice::opcodes() const {
  std::vector<abi::CommandOpcode> result;
  for (const auto& command : commands) result.push_back(command.opcode);
  return result;
}

void FakeDevice::access_config(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const auto offset = static_cast<std::uint32_t>(request.get_address());
  std::memcpy(config_space_.data(), &identity, sizeof identity);
  config_space_[abi::config::kMsixControl] = std::byte(abi::kMsixVectors - 1);
  if (request.is_read()) {
    std::copy_n(config_space_.begin() + offset, data.size(), data.begin());
  } else {
    std::ranges::copy(data, config_space_.begin() + offset);
    // Address bits below the BAR's size read as zero.
    std::uint32_t low;
    std::memcpy(&low, config_space_.data() + abi::config::kBar0, sizeof low);
    low = (low & ~(abi::kBarSize - 1)) | 0xc;
    std::memcpy(config_space_.data() + abi::config::kBar0, &low, sizeof low);
  }
  request.set_response_status(tlm::TLM_OK_RESPONSE);
}

void FakeDevice::access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const auto offset = static_cast<std::uint32_t>(request.get_address());
  request.set_response_status(tlm::TLM_OK_RESPONSE);
  if (request.is_read()) {
    const std::uint64_t value = read_register(offset) << (8 * (8 - data.size()));
    std::array<std::byte, 8> bytes;
    abi::store_be(bytes.data(), value);
    std::copy_n(bytes.begin(), data.size(), data.begin());
  } else if (offset == abi::reg::kCommandQueueBase) {
    command_queue_ = abi::load_be<std::uint64_t>(data.data());
  } else if (offset == abi::reg::kCommandDoorbell) {
    const auto slots = abi::load_be<std::uint32_t>(data.data());
    for (std::uint32_t slot = 0; slot < 32; ++slot)
      if (slots >> slot & 1) execute(slot);
  } else if (offset >= abi::kMsixTable && offset < abi::kMsixPba) {
    std::ranges::copy(data, msix_table_.begin() + (offset - abi::kMsixTable));
  } else {
    uar_stores.push_back({now(), offset, {data.begin(), data.end()}});
  }
}

std::uint64_t FakeDevice::read_register(std::uint32_t offset) const {
  switch (offset) {
    case abi::reg::kMagic: return abi::kMagicValue;
    case abi::reg::kAbiVersion: return abi_version;
    case abi::reg::kStatus: return ready_;
    default: return 0;
  }
}

void FakeDevice::execute(std::uint32_t slot) {
  const std::uint64_t at = command_queue_ + slot * sizeof(abi::CommandEntry);
  abi::CommandEntry entry;
  transfer(tlm::TLM_READ_COMMAND, kKernelPasid, at, bytes_of(entry));
  std::vector<std::byte> input(entry.input_bytes);
  transfer(tlm::TLM_READ_COMMAND, kKernelPasid, entry.input, input);
  abi::CommandHeader header;
  std::memcpy(&header, input.data(), sizeof header);
  const auto opcode = abi::CommandOpcode(std::uint16_t(header.opcode));
  commands.push_back({opcode, header.object, input});

  const auto status = refused.contains(opcode) ? refused.at(opcode) : abi::CommandStatus::ok;
  std::vector<std::byte> output(entry.output_bytes);
  if (opcode == abi::CommandOpcode::query_device) {
    abi::DeviceCapabilities device;
    device.max_pd = 16;
    device.max_cq = 4096;
    device.max_mr = 4096;
    device.max_mr_size = 1 << 30;
    device.max_mtt = max_mtt;
    device.max_qp = 4096;
    device.max_eq = 64;
    device.max_flows = 16;
    device.max_flow_counters = 16;
    std::memcpy(output.data(), &device, sizeof device);
  } else if (opcode == abi::CommandOpcode::query_port) {
    abi::PortAttributes port;
    port.gid_table_length = 16;
    std::memcpy(output.data(), &port, sizeof port);
  } else if (opcode == abi::CommandOpcode::initialize) {
    ready_ = true;
  } else if (opcode == abi::CommandOpcode::create_eq) {
    abi::CreateEq mailbox;
    std::memcpy(&mailbox, input.data(), sizeof mailbox);
    event_queues_[header.object] = {mailbox.context, mailbox.context.producer};
  }
  abi::CommandResult result{.status = status, .object = header.object};
  std::memcpy(output.data(), &result, sizeof result);
  transfer(tlm::TLM_WRITE_COMMAND, kKernelPasid, entry.output, output);
  entry.status = status;
  entry.owner = 0;
  transfer(tlm::TLM_WRITE_COMMAND, kKernelPasid, at, bytes_of(entry));
  interrupt(0);
}

void FakeDevice::interrupt(std::uint32_t vector) {
  const auto* entry = reinterpret_cast<const unsigned char*>(msix_table_.data() + 16 * vector);
  const std::uint64_t address = boost::endian::load_little_u64(entry);
  std::uint32_t data = boost::endian::load_little_u32(entry + 8);
  transfer(tlm::TLM_WRITE_COMMAND, kKernelPasid, address, bytes_of(data));
}

}  // namespace rnicsim::testing
