// SPDX-License-Identifier: Apache-2.0
#include "model/nic/nic.h"

#include <utility>

#include "model/nic/parts.h"

namespace rnicsim::nic {

Nic::Nic(sc_core::sc_module_name name, const NicParams& params) : Nic(name, params, make_model_engine) {}

Nic::Nic(sc_core::sc_module_name name, const NicParams& params, const EngineFactory& make_engine,
         const Personality& personality)
    : sc_module(name),
      parts_(std::make_unique<NicParts>(params, make_engine, personality)),
      blocks_(parts_->blocks()) {}

Nic::~Nic() = default;

tlm::tlm_target_socket<>& Nic::bar() { return parts_->pcie.bar; }
tlm::tlm_target_socket<>& Nic::config() { return parts_->pcie.config; }
tlm::tlm_initiator_socket<>& Nic::dma() { return parts_->pcie.dma; }
Output<Frame>& Nic::frame_out() { return parts_->port.frame_out; }
void Nic::receive(Frame&& frame, Duration delay) {
  if (parts_->pcie.status() != DeviceStatus::fatal) parts_->port.receive(std::move(frame), delay);
}
void Nic::set_link(bool up) { parts_->set_link(up); }
void Nic::fail(HealthSyndrome why) { parts_->fail(why); }
NicCounters Nic::counters() const { return parts_->counters(); }
Duration Nic::quiet_until(Duration next) const { return parts_->dma_unit.quiet_until(next); }
void Nic::describe_state(std::string& out) const { std::as_const(*parts_).engine().describe_state(out); }
std::size_t Nic::sends_outstanding() const { return std::as_const(*parts_).engine().sends_outstanding(); }
QpEngine& Nic::engine() { return blocks_.engine; }
void Nic::seed(std::uint64_t seed) { parts_->seed(seed); }

}  // namespace rnicsim::nic
