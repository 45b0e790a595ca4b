// SPDX-License-Identifier: Apache-2.0
#include "model/device/device.h"

#include "model/base/kernel.h"
#include "model/base/stats.h"

namespace rnicsim::device {
namespace {

constexpr const char* kMessages = "/rnicsim/device";

const nic::NicParams& at_a_picosecond(const nic::NicParams& params) {
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS))
    SC_REPORT_ERROR(kMessages, "the kernel's time resolution has to be 1 ps, its default");
  return params;
}

bool is_thread() {
  const auto kind = sc_core::sc_get_current_process_handle().proc_kind();
  return kind == sc_core::SC_THREAD_PROC_ || kind == sc_core::SC_CTHREAD_PROC_;
}

// Checks the request. False: not valid; an error response is set.
bool sound(tlm::tlm_generic_payload& request) {
  const bool moves = request.is_read() || request.is_write();
  const bool has_data = request.get_data_ptr() != nullptr || request.get_data_length() == 0;
  if (moves && has_data && request.get_byte_enable_ptr() == nullptr &&
      request.get_streaming_width() >= request.get_data_length())
    return true;
  request.set_response_status(!moves                          ? tlm::TLM_COMMAND_ERROR_RESPONSE
                              : !has_data                     ? tlm::TLM_GENERIC_ERROR_RESPONSE
                              : request.get_byte_enable_ptr() ? tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE
                                                              : tlm::TLM_BURST_ERROR_RESPONSE);
  return false;
}

// Waits for the delay, and until no alarm of the agenda is in progress.
void synchronize(sc_core::sc_time& delay) {
  if (delay != sc_core::SC_ZERO_TIME) {
    if (!is_thread()) SC_REPORT_ERROR(kMessages, "b_transport with a delay has to come from an SC_THREAD");
    sc_core::wait(delay);
    delay = sc_core::SC_ZERO_TIME;
  }
  if (auto* agenda = Agenda::current()) agenda->await_idle();
}

class CounterWalk : public CounterVisitor {
 public:
  explicit CounterWalk(const Device::CounterSink& see) : see_(see) {}
  void counter(const char* name, const Counter& value, const char* unit, const char* meaning) override {
    see_(prefix_ + name, value, unit, meaning);
  }

 protected:
  void enter(const char* name) override { prefix_ += std::string(name) + '.'; }
  void leave() override {
    prefix_.pop_back();
    prefix_.erase(prefix_.rfind('.') + 1);
  }

 private:
  const Device::CounterSink& see_;
  std::string prefix_;
};

}  // namespace

Device::Device(sc_core::sc_module_name name, const nic::NicParams& params)
    : sc_module(name), nic_("nic", at_a_picosecond(params)), frame_input_(nic_) {
  config.register_b_transport(this, &Device::access_config);
  bar.register_b_transport(this, &Device::access_bar);
  to_config_.bind(nic_.config());
  to_bar_.bind(nic_.bar());
  nic_.dma().bind(dma);
  nic_.frame_out().bind([this](Frame&& frame) { send(frame); });
  frame_in.bind(frame_input_);
}

void Device::access_config(tlm::tlm_generic_payload& request, sc_core::sc_time& delay) {
  if (!sound(request)) return;
  synchronize(delay);
  to_config_->b_transport(request, delay);
}

void Device::access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time& delay) {
  if (!sound(request)) return;
  synchronize(delay);
  to_bar_->b_transport(request, delay);
}

void Device::send(const Frame& frame) {
  if (frame_out.size() == 0) return;
  sending_.clear();
  frame.append_to(sending_);
  frame_out->receive(sending_, sc_core::SC_ZERO_TIME);
}

void Device::FrameInput::receive(std::span<const std::byte> bytes, const sc_core::sc_time& last_bit) {
  // Limits the delay: the device must have time to act after the frame.
  const auto longest = static_cast<sc_dt::uint64>((Agenda::kNever - now()).ps) / 2;
  if (bytes.empty()) return SC_REPORT_ERROR(kMessages, "a frame has no bytes");
  if (last_bit.value() > longest) return SC_REPORT_ERROR(kMessages, "a frame arrives when simulated time has ended");
  const Duration delay{static_cast<std::int64_t>(last_bit.value())};
  if (now() + delay < last_arrival)
    return SC_REPORT_ERROR(kMessages, "a frame's last bit cannot arrive before that of the frame ahead of it");
  last_arrival = now() + delay;
  nic.receive(Frame::of(Payload::copy_of(bytes)), delay);
}

void Device::each_counter(const CounterSink& see) const {
  CounterWalk walk(see);
  walk.group("nic", counters());
}

}  // namespace rnicsim::device
