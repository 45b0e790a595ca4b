#include "model/nic/nic.h"

#include <utility>

#include "model/nic/blocks.h"

namespace rnicsim::nic {

Nic::Nic(sc_core::sc_module_name name, const NicParams& params) : Nic(name, params, make_model_engine) {}

Nic::Nic(sc_core::sc_module_name name, const NicParams& params, const EngineFactory& make_engine,
         const Personality& personality)
    : sc_module(name), blocks_(std::make_unique<NicBlocks>(params, make_engine, personality)) {}

Nic::~Nic() = default;

tlm::tlm_target_socket<>& Nic::bar() { return blocks_->pcie.bar; }
tlm::tlm_target_socket<>& Nic::config() { return blocks_->pcie.config; }
tlm::tlm_initiator_socket<>& Nic::dma() { return blocks_->pcie.dma; }
Output<Frame>& Nic::frame_out() { return blocks_->port.frame_out; }
void Nic::receive(Frame&& frame, Duration delay) { blocks_->port.receive(std::move(frame), delay); }
NicCounters Nic::counters() const { return blocks_->counters(); }
Duration Nic::quiet_until(Duration next) const { return blocks_->dma_unit.quiet_until(next); }
void Nic::describe_state(std::string& out) const { std::as_const(*blocks_).engine().describe_state(out); }
std::size_t Nic::sends_outstanding() const { return std::as_const(*blocks_).engine().sends_outstanding(); }
QpEngine& Nic::engine() { return blocks_->engine(); }
void Nic::seed(std::uint64_t seed) { blocks_->seed(seed); }

}  // namespace rnicsim::nic
