// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/pcie_endpoint.h"

#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kRegisterPageBytes = 4096;
constexpr std::uint32_t kMsixEntryBytes = 16;
constexpr std::uint32_t kPendingBytes = 8;
constexpr std::uint64_t kCommandQueueAlignment = 4096;
// Converts picoseconds to ticks of completion timestamps and the clock register.
constexpr std::uint64_t kPsPerMs = 1'000'000'000;

bool within(std::uint64_t offset, std::size_t bytes, std::uint64_t begin, std::uint64_t size) {
  return offset >= begin && bytes <= size && offset - begin <= size - bytes;
}

std::span<std::byte> data_of(tlm::tlm_generic_payload& request) {
  return {reinterpret_cast<std::byte*>(request.get_data_ptr()), request.get_data_length()};
}

}  // namespace

PcieEndpoint::PcieEndpoint(sc_core::sc_module_name name, const PcieEndpointParams& params,
                           const DeviceFeatures& features, const Personality& personality, const FunctionFacts& facts)
    : sc_module(name),
      params_(params),
      personality_(personality),
      function_(personality.layout.pci),
      features_(features),
      config_space_(function_, facts),
      msix_(function_.msix_vectors) {
  bar.register_b_transport(this, &PcieEndpoint::access_bar);
  config.register_b_transport(this, &PcieEndpoint::access_config);
  request_.set_extension(new PasidExtension);  // request_ owns the extension
  translation_.set_extension(new PasidExtension);
  translation_.set_extension(new TranslationExtension);
  translation_.set_command(tlm::TLM_IGNORE_COMMAND);
  message_.set_extension(new PasidExtension);
  message_.set_extension(new PageMessageExtension);
  message_.set_command(tlm::TLM_IGNORE_COMMAND);
}

bool PcieEndpoint::read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  if (!may_ask(counters_.dma_reads, Refusal::What::dma_read, address)) return false;
  return answered(host_ != nullptr ? host_->read(pasid, address, bytes)
                                   : ask(tlm::TLM_READ_COMMAND, pasid, address, bytes.data(), bytes.size()));
}

bool PcieEndpoint::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  if (!may_ask(counters_.dma_writes, Refusal::What::dma_write, address)) return false;
  return answered(host_ != nullptr ? host_->write(pasid, address, bytes)
                                   : ask(tlm::TLM_WRITE_COMMAND, pasid, address, const_cast<std::byte*>(bytes.data()),
                                         bytes.size()));
}

bool PcieEndpoint::may_ask(Counter& requests, Refusal::What what, std::uint64_t address) {
  const bool may = config_space_.bus_master();
  ++(may ? requests : counters_.dma_blocked);
  if (!may) refusal({.what = what, .why = Refusal::Why::bus_master_off, .address = address});
  return may;
}

bool PcieEndpoint::answered(bool ok) {
  if (ok) return true;
  ++counters_.dma_aborts;
  config_space_.aborted_request();
  return false;
}

void PcieEndpoint::set_request(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::byte* data,
                               std::size_t bytes) {
  request_.get_extension<PasidExtension>()->pasid = pasid;
  request_.set_command(command);
  request_.set_address(address);
  request_.set_data_ptr(reinterpret_cast<unsigned char*>(data));
  request_.set_data_length(static_cast<unsigned>(bytes));
  request_.set_streaming_width(static_cast<unsigned>(bytes));
  request_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
}

bool PcieEndpoint::ask(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::byte* data,
                       std::size_t bytes) {
  set_request(command, pasid, address, data, bytes);
  auto delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(request_, delay);
  return request_.is_response_ok();
}

// A platform's memory is read by the debug transport, which takes no time and may be called from any process.
bool PcieEndpoint::peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  if (host_ != nullptr) return host_->peek(pasid, address, bytes);
  set_request(tlm::TLM_READ_COMMAND, pasid, address, bytes.data(), bytes.size());
  return dma->transport_dbg(request_) == bytes.size();
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
  // A host without translations may answer anything.
  if (!translation_.is_response_ok() || physical == kUntranslated) return std::nullopt;
  return physical;
}

bool PcieEndpoint::send_message(Pasid pasid) {
  message_.get_extension<PasidExtension>()->pasid = pasid;
  message_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  auto delay = sc_core::SC_ZERO_TIME;
  dma->b_transport(message_, delay);
  return message_.is_response_ok();
}

PageTranslation PcieEndpoint::translate_page(Pasid pasid, std::uint64_t address) {
  if (!config_space_.bus_master()) return {};
  ++counters_.translations;
  auto& message = *message_.get_extension<PageMessageExtension>();
  message.kind = PageMessageExtension::Kind::translate;
  message.address = address;
  message.translation = {};
  return send_message(pasid) ? message.translation : PageTranslation{};
}

bool PcieEndpoint::request_page(const PageRequest& request) {
  if (!config_space_.bus_master()) return false;
  ++counters_.page_requests;
  auto& message = *message_.get_extension<PageMessageExtension>();
  message.kind = PageMessageExtension::Kind::request;
  message.request = request;
  return send_message(request.pasid);
}

void PcieEndpoint::tell_invalidated(std::uint32_t tag) {
  auto& message = *message_.get_extension<PageMessageExtension>();
  message.kind = PageMessageExtension::Kind::invalidated;
  message.tag = tag;
  send_message(kKernelPasid);
}

bool PcieEndpoint::take_message(const PageMessageExtension& message) {
  if (message.kind == PageMessageExtension::Kind::response) {
    page_response(PageResponse{message.response});
  } else if (message.kind == PageMessageExtension::Kind::invalidate) {
    ++counters_.page_invalidations;
    page_invalidation(PageInvalidation{message.invalidation});
  } else {
    return false;
  }
  return true;
}

std::optional<MsixMessage> PcieEndpoint::interrupt(std::uint32_t vector) {
  using Outcome = InterruptRaised::Outcome;
  if (!config_space_.msix_enabled()) {
    raised({vector, Outcome::lost});
    return std::nullopt;
  }
  auto message = msix_.raise(vector, config_space_.msix_masked());
  if (message) ++counters_.interrupts;
  raised({vector, message ? Outcome::sent : Outcome::pending});
  return message;
}

std::uint64_t PcieEndpoint::clock() const {
  const auto ps = static_cast<std::uint64_t>(now().ps);
  return ps / kPsPerMs * params_.core_clock_khz + ps % kPsPerMs * params_.core_clock_khz / kPsPerMs;
}

void PcieEndpoint::access_config(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const auto offset = static_cast<std::uint16_t>(request.get_address());
  const bool fits = request.get_address() < PciConfig::kSize;
  if (accessed) accessed({HostAccess::Space::config, request.is_write(), request.get_address(), data});
  const bool ok = fits && (request.is_read() ? config_space_.read(offset, data) : config_space_.write(offset, data));
  request.set_response_status(ok ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  if (request.is_read()) read_answered({HostAccess::Space::config, request.get_address(), data, ok});
  if (config_space_.take_function_reset()) reset();
  if (request.is_write()) announce_unmasked();
}

void PcieEndpoint::access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
  const auto data = data_of(request);
  const auto offset = request.get_address();
  if (const auto* message = request.get_extension<PageMessageExtension>())
    return request.set_response_status(take_message(*message) ? tlm::TLM_OK_RESPONSE : tlm::TLM_COMMAND_ERROR_RESPONSE);
  const bool ok = request.is_write() ? write_bar(offset, data) : read_bar(offset, data);
  request.set_response_status(ok ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

bool PcieEndpoint::read_bar(std::uint64_t offset, std::span<std::byte> bytes) {
  ++counters_.mmio_reads;
  if (accessed) accessed({HostAccess::Space::bar, false, offset, bytes});
  const bool ok =
      answer(config_space_.memory_enabled() && !bytes.empty() && load(offset, bytes), Refusal::What::mmio_read, offset);
  if (read_answered) read_answered({HostAccess::Space::bar, offset, bytes, ok});
  return ok;
}

bool PcieEndpoint::write_bar(std::uint64_t offset, std::span<const std::byte> bytes) {
  ++counters_.mmio_writes;
  if (accessed) accessed({HostAccess::Space::bar, true, offset, bytes});
  return answer(config_space_.memory_enabled() && !bytes.empty() && store(offset, bytes), Refusal::What::mmio_write,
                offset);
}

bool PcieEndpoint::answer(bool ok, Refusal::What what, std::uint64_t offset) {
  if (ok) return true;
  ++counters_.mmio_refused;
  auto why = std::exchange(misaligned_, false) ? Refusal::Why::bad_alignment : Refusal::Why::no_register;
  if (status_ == DeviceStatus::fatal) why = Refusal::Why::device_fatal;
  if (!config_space_.memory_enabled()) why = Refusal::Why::memory_off;
  config_space_.unsupported_request(what == Refusal::What::mmio_write);
  refusal({.what = what, .why = why, .address = offset});
  return false;
}

bool PcieEndpoint::store(std::uint64_t offset, std::span<const std::byte> data) {
  const auto& map = function_;
  const bool is_vector = within(offset, data.size(), map.msix_table, std::uint64_t{map.msix_vectors} * kMsixEntryBytes);
  if (status_ == DeviceStatus::fatal && !is_vector) return false;
  if (within(offset, data.size(), map.uar, std::uint64_t{map.uar_pages} * map.uar_page_bytes)) {
    const auto in_uar = static_cast<std::uint32_t>(offset - map.uar);
    uar_written({in_uar / map.uar_page_bytes, in_uar % map.uar_page_bytes, data});
    return true;
  }
  if (own_memory_ != nullptr && within(offset, data.size(), map.device_memory, map.most_device_memory)) {
    if (!own_memory_->store(offset - map.device_memory, data)) return false;
    memory_written(std::uint64_t{data.size()});
    return true;
  }
  if (is_vector) {
    msix_.write_table(static_cast<std::uint32_t>(offset - map.msix_table), data);
    announce_unmasked();
    return true;
  }
  if (!within(offset, data.size(), map.registers, kRegisterPageBytes)) return false;
  return write_register(static_cast<std::uint32_t>(offset - map.registers), data);
}

bool PcieEndpoint::write_register(std::uint32_t offset, std::span<const std::byte> data) {
  const auto written = personality_.write_registers(registers(), offset, data);
  if (!written) return false;
  misaligned_ = written->command_queue && *written->command_queue % kCommandQueueAlignment != 0;
  if (misaligned_) return false;
  if (written->command_queue) command_queue_ = *written->command_queue;
  if (written->commands) command_doorbell(std::uint32_t{*written->commands});
  return true;
}

bool PcieEndpoint::load(std::uint64_t offset, std::span<std::byte> out) const {
  const auto& map = function_;
  if (own_memory_ != nullptr && within(offset, out.size(), map.device_memory, map.most_device_memory))
    return own_memory_->load(offset - map.device_memory, out);
  if (within(offset, out.size(), map.msix_table, std::uint64_t{map.msix_vectors} * kMsixEntryBytes))
    return msix_.read_table(static_cast<std::uint32_t>(offset - map.msix_table), out);
  if (within(offset, out.size(), map.msix_pending, kPendingBytes))
    return msix_.read_pending(static_cast<std::uint32_t>(offset - map.msix_pending), out);
  if (!within(offset, out.size(), map.registers, kRegisterPageBytes)) return false;
  return personality_.read_registers(registers(), static_cast<std::uint32_t>(offset - map.registers), out);
}

DeviceRegisters PcieEndpoint::registers() const {
  return {.features = features_,
          .status = status_,
          .syndrome = syndrome_,
          .health_counter = health_counter(),
          .core_clock_khz = params_.core_clock_khz,
          .clock = clock(),
          .command_queue = command_queue_};
}

std::uint32_t PcieEndpoint::health_counter() const {
  return status_ == DeviceStatus::fatal ? last_health_ : static_cast<std::uint32_t>(now().ps / kPsPerMs);
}

void PcieEndpoint::fail(HealthSyndrome why) {
  last_health_ = health_counter();
  status_ = DeviceStatus::fatal;
  syndrome_ = why;
}

void PcieEndpoint::internal_error(HealthSyndrome why) {
  if (config_space_.bus_master()) failed(HealthSyndrome{why});
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
  status_ = DeviceStatus::initializing;
  syndrome_ = HealthSyndrome::none;
  was_reset({});
  function_reset();
}

}  // namespace rnicsim::nic
