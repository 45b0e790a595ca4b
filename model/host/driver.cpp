// SPDX-License-Identifier: Apache-2.0
#include "model/host/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

#include "model/abi/device.h"
#include "model/host/pci_function.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kPort = 1;

// Bytes of the output mailbox that the command defines: bytes behind them may belong to another process.
std::size_t output_bytes_of(std::span<const std::byte> input) {
  using abi::CommandOpcode;
  switch (CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode))) {
    case CommandOpcode::query_device: return sizeof(abi::DeviceCapabilities);
    case CommandOpcode::query_port: return sizeof(abi::PortAttributes);
    case CommandOpcode::query_port_counters: return sizeof(abi::PortCounters);
    case CommandOpcode::query_cq: return sizeof(abi::QueryCq);
    case CommandOpcode::resize_cq: return sizeof(abi::ResizedCq);
    case CommandOpcode::query_mpt: return sizeof(abi::QueryMpt);
    case CommandOpcode::query_srq: return sizeof(abi::QuerySrq);
    case CommandOpcode::query_qp: return sizeof(abi::QueryQp);
    case CommandOpcode::query_counter: return sizeof(abi::QueryCounter);
    default: return sizeof(abi::CommandResult);
  }
}

// Number of indices of a table, from the device's capabilities.
std::uint32_t table_size(const abi::DeviceCapabilities& device, abi::IcmTable table) {
  switch (table) {
    case abi::IcmTable::qpc: return device.max_qp;
    case abi::IcmTable::cqc: return device.max_cq;
    case abi::IcmTable::eqc: return device.max_eq;
    case abi::IcmTable::mpt: return device.max_mr;
    case abi::IcmTable::mtt: return device.max_mtt;
    case abi::IcmTable::srqc: return device.max_srq;
  }
  return 0;
}

}  // namespace

Driver::Driver(const HostParams& params, RootComplex& root_complex)
    : params_(params),
      root_complex_(root_complex),
      memory_(params.kernel_memory.bytes),
      mmio_([&root_complex](std::uint32_t offset, std::span<const std::byte> data) {
        root_complex.mmio_write(offset, Payload::copy_of(data));
      }),
      uar_(mmio_, 0) {
  root_complex_.iommu().attach(root_complex_.own_domain(), memory_);
}

Driver::~Driver() { root_complex_.iommu().detach(root_complex_.own_domain()); }

void Driver::bring_up(std::span<const Gid> gids, const Mac& mac) {
  const std::uint32_t event_queues = params_.event_queues();
  PciFunction function(root_complex_);
  function.identify();
  function.enable(1 + event_queues);

  start_command_queue();
  capabilities_ = provider::decode<abi::DeviceCapabilities>(
      must_execute(provider::encode(provider::header(abi::CommandOpcode::query_device)), "query_device").output);
  if (capabilities_.max_eq < event_queues)
    throw std::runtime_error(fmt::format("the device cannot be used: {} event queues, {} are needed",
                                         std::uint32_t(capabilities_.max_eq), event_queues));
  for (std::uint32_t eqn = 0; eqn < event_queues; ++eqn)
    if (!lend(abi::IcmTable::eqc, eqn)) throw std::runtime_error("no kernel memory for event queue contexts");
  must_execute(provider::encode(provider::header(abi::CommandOpcode::initialize)), "initialize");
  const auto status = abi::DeviceStatus(root_complex_.mmio_read(abi::reg::kStatus, 4));
  if (status != abi::DeviceStatus::ready) throw std::runtime_error("the device did not become ready");

  for (std::uint32_t eqn = 0; eqn < event_queues; ++eqn) create_event_queue(eqn);
  port_ = provider::decode<abi::PortAttributes>(
      must_execute(provider::encode(provider::header(abi::CommandOpcode::query_port, kPort)), "query_port").output);
  const auto vlan = static_cast<std::uint16_t>(params_.vlan);
  for (std::size_t index = 0; index < gids.size(); ++index)
    must_execute(provider::encode(provider::set_gid(kPort, static_cast<std::uint16_t>(index), gids[index], mac, vlan)),
                 "set_gid");
}

void Driver::start_command_queue() {
  const auto ring = allocate(provider::CommandQueue::kRingBytes);
  const auto mailboxes = allocate(provider::CommandQueue::kMailboxesBytes);
  commands_.emplace(ring, mailboxes, mmio_);
  std::array<std::byte, 8> base;
  abi::store_be(base.data(), ring.bus_address);
  root_complex_.mmio_write(abi::reg::kCommandQueueBase, Payload::copy_of(base));
}

void Driver::create_event_queue(std::uint32_t eqn) {
  const auto log_entries = static_cast<std::uint8_t>(std::bit_width(params_.event_queue_entries - 1));
  const auto ring = allocate(sizeof(abi::Eqe) << log_entries);
  events_.emplace_back(eqn, log_entries, ring);
  abi::Eqc context;
  context.log_entries = log_entries;
  context.msix_vector = static_cast<std::uint16_t>(eqn + 1);
  context.pasid = kKernelPasid;
  context.ring = ring.bus_address;
  context.producer = context.consumer = provider::EventRing::first(log_entries);
  must_execute(provider::encode(provider::create_eq(eqn, context)), "create_eq");
  events_.back().rearm(uar_);
}

Driver::Answer Driver::must_execute(std::span<const std::byte> input, const char* what) {
  Answer answer = execute(input);
  if (answer.status != abi::CommandStatus::ok)
    throw std::runtime_error(fmt::format(
        "the device cannot be used: command {} failed with status {:#x}, syndrome {:#x}", what, unsigned(answer.status),
        std::uint32_t(provider::decode<abi::CommandResult>(answer.output).syndrome)));
  return answer;
}

void Driver::create(abi::IcmTable table, std::uint32_t index, std::span<const std::byte> input, const char* what) {
  if (!lend(table, index)) throw std::runtime_error(fmt::format("no kernel memory for the context of {}", what));
  must_execute(input, what);
}

Driver::Answer Driver::execute(std::span<const std::byte> input) {
  const std::size_t output_bytes = output_bytes_of(input);
  const auto slot = commands_->submit(input, output_bytes);
  if (!slot) return {abi::CommandStatus::bad_input_length, std::vector<std::byte>(output_bytes)};
  for (;;) {
    if (const auto completion = commands_->try_complete(*slot)) {
      std::vector<std::byte> output(completion->output.begin(), completion->output.end());
      output.resize(output_bytes);
      return {completion->status, std::move(output)};
    }
    sleep_on(command_done_);
  }
}

std::uint32_t Driver::chunk_entries(abi::IcmTable table) const {
  return static_cast<std::uint32_t>(params_.icm_chunk.bytes / abi::kIcmEntryBytes[unsigned(table)]);
}

bool Driver::lend(abi::IcmTable table, std::uint32_t index) {
  const std::uint32_t entry_bytes = abi::kIcmEntryBytes[unsigned(table)];
  const std::uint32_t first = index / chunk_entries(table) * chunk_entries(table);
  const std::pair chunk(table, first);
  if (lent_.contains(chunk)) return true;
  const std::uint32_t entries = std::min(chunk_entries(table), table_size(capabilities_, table) - first);
  const std::size_t bytes = std::size_t(entries) * entry_bytes;
  const auto buffer = memory_.allocate(bytes, kPage);
  if (!buffer.memory) return false;
  root_complex_.iommu().pin(root_complex_.own_domain(), buffer.bus_address, bytes);
  const auto answer = execute(provider::encode(provider::map_icm(table, first, entries, buffer.bus_address)));
  if (answer.status != abi::CommandStatus::ok) {
    root_complex_.iommu().unpin(root_complex_.own_domain(), buffer.bus_address, bytes);
    memory_.release(buffer, bytes);
    return false;
  }
  lent_.emplace(chunk, buffer);
  return true;
}

bool Driver::write_pages(std::uint32_t first, std::uint32_t count, std::uint64_t bus_address, ByteCount size) {
  const std::uint32_t entries = chunk_entries(abi::IcmTable::mtt);
  for (const std::uint64_t end = std::uint64_t{first} + count; first != end;) {
    if (!lend(abi::IcmTable::mtt, first)) return false;
    const std::uint32_t in_chunk = first % entries;
    const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - first, entries - in_chunk));
    std::byte* entry = lent_.at({abi::IcmTable::mtt, first - in_chunk}).memory + in_chunk * sizeof(abi::Mtt);
    for (std::uint32_t i = 0; i < here; ++i, entry += sizeof(abi::Mtt), bus_address += size.bytes)
      abi::store_be(entry, bus_address);
    first += here;
  }
  return true;
}

void Driver::interrupt(std::uint32_t vector, const std::function<void(const abi::Eqe&)>& event) {
  if (vector == 0) {
    wake(command_done_);
    return;
  }
  const std::uint32_t eqn = vector - 1;
  if (eqn >= events_.size()) return;
  while (const auto eqe = events_[eqn].take()) event(*eqe);
  events_[eqn].rearm(uar_);
}

provider::DmaBuffer Driver::allocate(std::size_t bytes) {
  const auto buffer = memory_.allocate(bytes, kPage);
  if (!buffer.memory) throw std::runtime_error("no kernel memory for the device's queues");
  root_complex_.iommu().pin(root_complex_.own_domain(), buffer.bus_address, bytes);
  return buffer;
}

}  // namespace rnicsim::host
