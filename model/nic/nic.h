// SPDX-License-Identifier: Apache-2.0
// The NIC: a module with sockets to the host and frames to the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>

#include "model/base/frame.h"
#include "model/base/stream.h"
#include "model/base/units.h"
#include "model/nic/blocks.h"
#include "model/nic/engine/engine_factory.h"

namespace rnicsim::nic {

class NicParts;
class Personality;
struct NicCounters;
struct NicParams;
enum class HealthSyndrome : std::uint32_t;
const Personality& rnic_personality();

class Nic : public sc_core::sc_module {
 public:
  // Uses the model's engine.
  Nic(sc_core::sc_module_name name, const NicParams& params);
  // `personality` must outlive the NIC.
  Nic(sc_core::sc_module_name name, const NicParams& params, const EngineFactory& make_engine,
      const Personality& personality = rnic_personality());
  ~Nic() override;

  // --- To the host: PCIe.
  tlm::tlm_target_socket<>& bar();
  tlm::tlm_target_socket<>& config();
  tlm::tlm_initiator_socket<>& dma();
  // --- To the network.
  Output<Frame>& frame_out();
  // Receives a frame: its last bit arrives after `delay`, not before that of the frame before it.
  void receive(Frame&& frame, Duration delay = {});

  // Sets the cable's signal: events port_active and port_error (docs/device.md).
  void set_link(bool up);
  // Makes the device fail: event device_fatal. The device does nothing until its function is reset.
  void fail(HealthSyndrome why);

  NicCounters counters() const;
  // The time before which no write reaches host memory, provided that no event comes to the NIC before `next`.
  Duration quiet_until(Duration next) const;
  void describe_state(std::string& out) const;
  std::size_t sends_outstanding() const;
  QpEngine& engine();
  // Seed of random replacement in the caches. Call before the first access; the default is 1.
  void seed(std::uint64_t seed);
  const NicBlocks& blocks() const { return blocks_; }

 private:
  const std::unique_ptr<NicParts> parts_;
  const NicBlocks blocks_;
};

}  // namespace rnicsim::nic
