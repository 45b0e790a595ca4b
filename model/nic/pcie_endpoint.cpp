#include "model/nic/pcie_endpoint.h"

#include <algorithm>

#include "model/abi/big_endian.h"
#include "model/abi/command.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kRegisterPageBytes = 4096;
constexpr std::uint32_t kMsixTableBytes = abi::kMsixVectors * 16;
constexpr std::uint64_t kFirmwareVersion = 1;
// Completion timestamps and the clock register: picoseconds to ticks.
constexpr std::uint64_t kPsPerMs = 1'000'000'000;

// What can be read of the register page: each whole, or one of 64 bits as two words.
struct Register {
  std::uint32_t offset;
  std::uint32_t bytes;
};
constexpr Register kReadable[] = {
    {abi::reg::kMagic, 4},
    {abi::reg::kAbiVersion, 4},
    {abi::reg::kFeatures, 8},
    {abi::reg::kFirmwareVersion, 8},
    {abi::reg::kUarInfo, 4},
    {abi::reg::kBlueFlameSize, 4},
    {abi::reg::kCommandLogEntries, 4},
    {abi::reg::kStatus, 4},
    {abi::reg::kHealthSyndrome, 4},
    {abi::reg::kCoreClockKhz, 4},
    {abi::reg::kCommandQueueBase, 8},
    {abi::reg::kClock, 8},
};

bool is_readable(std::uint64_t offset, std::size_t bytes) {
  return std::ranges::any_of(kReadable, [&](const Register& one) {
    if (offset == one.offset && bytes == one.bytes) return true;
    return one.bytes == 8 && bytes == 4 && (offset == one.offset || offset == one.offset + 4);
  });
}

bool within(std::uint64_t offset, std::size_t bytes, std::uint64_t begin, std::uint64_t size) {
  return offset >= begin && bytes <= size && offset - begin <= size - bytes;
}

std::span<std::byte> data_of(tlm::tlm_generic_payload& request) {
  return {reinterpret_cast<std::byte*>(request.get_data_ptr()), request.get_data_length()};
}

}  // namespace

PcieEndpoint::PcieEndpoint(sc_core::sc_module_name name, const PcieEndpointParams& params, std::uint64_t features)
    : sc_module(name), params_(params), features_(features) {
  bar.register_b_transport(this, &PcieEndpoint::access_bar);
  config.register_b_transport(this, &PcieEndpoint::access_config);
  request_.set_extension(new PasidExtension);  // whose owner it is
  translation_.set_extension(new PasidExtension);
  translation_.set_extension(new TranslationExtension);
  translation_.set_command(tlm::TLM_IGNORE_COMMAND);
}

bool PcieEndpoint::transfer(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::span<std::byte> data) {
  if (!config_space_.bus_master()) {
    ++counters_.dma_blocked;
    return false;
  }
  const bool reads = command == tlm::TLM_READ_COMMAND;
  ++(reads ? counters_.dma_reads : counters_.dma_writes);
  if (host_ != nullptr) {
    const bool ok = reads ? host_->read(pasid, address, data) : host_->write(pasid, address, data);
    if (!ok) ++counters_.dma_aborts;
    return ok;
  }
  request_.get_extension<PasidExtension>()->pasid = pasid;
  request_.set_command(command);
  request_.set_address(address);
  request_.set_data_ptr(reinterpret_cast<unsigned char*>(data.data()));
  request_.set_data_length(static_cast<unsigned>(data.size()));
  request_.set_streaming_width(static_cast<unsigned>(data.size()));
  request_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  auto delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(request_, delay);
  if (!request_.is_response_ok()) ++counters_.dma_aborts;
  return request_.is_response_ok();
}

std::optional<std::uint64_t> PcieEndpoint::translate(Pasid pasid, std::uint64_t address) {
  if (!config_space_.bus_master()) return std::nullopt;
  ++counters_.translations;
  translation_.get_extension<PasidExtension>()->pasid = pasid;
  translation_.set_address(address);
  translation_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  constexpr std::uint64_t kUntranslated = ~0ull;
  auto& physical = translation_.get_extension<TranslationExtension>()->physical;
  physical = kUntranslated;
  auto delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(translation_, delay);
  // A host that knows no translations may answer anything.
  if (!translation_.is_response_ok() || physical == kUntranslated) return std::nullopt;
  return physical;
}

std::optional<MsixMessage> PcieEndpoint::interrupt(std::uint32_t vector) {
  if (!config_space_.msix_enabled()) return std::nullopt;
  auto message = msix_.raise(vector, config_space_.msix_masked());
  if (message) ++counters_.interrupts;
  return message;
}

std::uint64_t PcieEndpoint::clock() const {
  const auto ps = static_cast<std::uint64_t>(now().ps);
  return ps / kPsPerMs * params_.core_clock_khz + ps % kPsPerMs * params_.core_clock_khz / kPsPerMs;
}

void PcieEndpoint::access_config(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const auto offset = static_cast<std::uint16_t>(request.get_address());
  const bool fits = request.get_address() < abi::config::kSize;
  const bool ok = fits && (request.is_read() ? config_space_.read(offset, data) : config_space_.write(offset, data));
  request.set_response_status(ok ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  if (config_space_.take_function_reset()) reset();
  if (request.is_write()) announce_unmasked();
}

void PcieEndpoint::access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const bool write = request.is_write();
  ++(write ? counters_.mmio_writes : counters_.mmio_reads);
  const bool ok = config_space_.memory_enabled() && !data.empty() &&
                  (write ? write_bar(request.get_address(), data) : read_bar(request.get_address(), data));
  if (!ok) ++counters_.mmio_refused;
  request.set_response_status(ok ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

bool PcieEndpoint::write_bar(std::uint64_t offset, std::span<const std::byte> data) {
  if (within(offset, data.size(), abi::kUarBase, std::uint64_t{abi::kUarPages} * abi::kUarPageSize)) {
    const auto in_uar = static_cast<std::uint32_t>(offset - abi::kUarBase);
    uar_written({in_uar / abi::kUarPageSize, in_uar % abi::kUarPageSize, data});
    return true;
  }
  if (within(offset, data.size(), abi::kMsixTable, kMsixTableBytes)) {
    msix_.write_table(static_cast<std::uint32_t>(offset - abi::kMsixTable), data);
    announce_unmasked();
    return true;
  }
  if (!within(offset, data.size(), abi::kRegisterPage, kRegisterPageBytes)) return false;
  return write_register(static_cast<std::uint32_t>(offset), data);
}

bool PcieEndpoint::write_register(std::uint32_t offset, std::span<const std::byte> data) {
  if (offset == abi::reg::kCommandDoorbell && data.size() == 4) {
    command_doorbell(abi::load_be<std::uint32_t>(data.data()));
    return true;
  }
  if (!within(offset, data.size(), abi::reg::kCommandQueueBase, 8) || offset % 4 != 0 || data.size() % 4 != 0)
    return false;
  std::array<std::byte, 8> base;
  abi::store_be(base.data(), command_queue_);
  std::ranges::copy(data, base.begin() + (offset - abi::reg::kCommandQueueBase));
  command_queue_ = abi::load_be<std::uint64_t>(base.data());
  return true;
}

bool PcieEndpoint::read_bar(std::uint64_t offset, std::span<std::byte> out) const {
  if (within(offset, out.size(), abi::kMsixTable, kMsixTableBytes))
    return msix_.read_table(static_cast<std::uint32_t>(offset - abi::kMsixTable), out);
  if (within(offset, out.size(), abi::kMsixPba, 8))
    return msix_.read_pending(static_cast<std::uint32_t>(offset - abi::kMsixPba), out);
  if (!is_readable(offset, out.size())) return false;
  const auto page = register_page();
  std::copy_n(page.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  return true;
}

std::vector<std::byte> PcieEndpoint::register_page() const {
  using namespace abi;
  std::vector<std::byte> page(kRegisterPageBytes);
  const auto put32 = [&](std::uint32_t at, std::uint32_t value) { store_be(page.data() + at, value); };
  const auto put64 = [&](std::uint32_t at, std::uint64_t value) { store_be(page.data() + at, value); };
  put32(reg::kMagic, kMagicValue);
  put32(reg::kAbiVersion, std::uint32_t{kAbiMajor} << 16 | kAbiMinor);
  put64(reg::kFeatures, features_);
  put64(reg::kFirmwareVersion, kFirmwareVersion << 32);
  put32(reg::kUarInfo, kUarPages);
  put32(reg::kBlueFlameSize, uar::kBlueFlameBytes);
  put32(reg::kCommandLogEntries, abi::kCommandLogEntries);
  put32(reg::kStatus, static_cast<std::uint32_t>(status_));
  put32(reg::kHealthSyndrome, syndrome_);
  put32(reg::kCoreClockKhz, params_.core_clock_khz);
  put64(reg::kCommandQueueBase, command_queue_);
  put64(reg::kClock, clock());
  return page;
}

void PcieEndpoint::announce_unmasked() {
  if (!config_space_.msix_enabled()) return;
  for (const auto vector : msix_.take_unmasked(config_space_.msix_masked())) unmasked(std::uint32_t{vector});
}

void PcieEndpoint::reset() {
  ++counters_.function_resets;
  config_space_.reset();
  msix_.reset();
  command_queue_ = 0;
  status_ = abi::DeviceStatus::initializing;
  syndrome_ = 0;
  function_reset();
}

}  // namespace rnicsim::nic
