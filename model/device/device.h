// SPDX-License-Identifier: Apache-2.0
// The NIC for any virtual platform: one SystemC module with TLM-2.0 sockets and a frame port. The driver's interface is
// described in docs/device.md, the implementation in docs/architecture.md. C++20, SystemC 2.3.4 with a resolution of 1
// ps.
//
// A generic payload cannot distinguish PCI Express' address spaces, so each has its own socket:
//   config     configuration requests: address = offset in the function's 4 KiB (PCIe 4.0, 7.2), little-endian
//   bar        memory requests to BAR0: address = offset in the BAR; the platform's decoder subtracts the base
//   dma        requests of the device to host memory, with a PasidExtension (PCIe 4.0, 6.20); an MSI-X message is a
//              write of 4 bytes in PASID 0 to the address that the driver put into the table (PCIe 4.0, 6.1.4)
//
// Loosely timed: b_transport only, no DMI, no debug transport. With delay 0, b_transport of config and bar may be
// called from any process, and between two sc_start(). With a delay it may be called only from an SC_THREAD, and waits
// for the delay, so that effects in the device have the time of their cause. The answer takes no further time: the
// platform models the path from the CPU.
//   TLM_ADDRESS_ERROR_RESPONSE      unsupported request: no such register, wrong width, memory space not enabled; a
//                                   root complex then reads ones
//   TLM_BYTE_ENABLE_ERROR_RESPONSE, TLM_BURST_ERROR_RESPONSE, TLM_COMMAND_ERROR_RESPONSE  features not supported
//   TLM_GENERIC_ERROR_RESPONSE      a request without a data pointer
//
// On dma, any answer except TLM_OK_RESPONSE is a completer abort. The parameters (pcie.read_latency, write_latency) set
// the time to memory, so an annotated delay is not added, and the target should not wait; if it does, the whole model
// waits. TLM_IGNORE_COMMAND with a TranslationExtension asks for a physical address (ATS); if the target refuses,
// atomics are atomic only within a PASID. Posted writes stay in order. A driver check
// (model/driver_check/driver_check.h) reads memory by transport_dbg, if the target has it.
//
// Under sc_start() the model keeps step with the SystemC kernel. It runs ahead of the kernel only under
// rnicsim::run_until() and run_on() (model/base/kernel.h), for simulations that consist only of rnicsim's modules.
// Reset is function-level (PCIe 4.0, 6.6.2): bit 15 of Device Control.
#pragma once

#if __cplusplus < 202002L
#error "rnicsim needs C++20: -std=c++20"
#endif

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <systemc>
#include <vector>

#include "model/base/agenda.h"
#include "model/base/pcie.h"
#include "model/device/frame_if.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "model/nic/nic_params.h"

namespace rnicsim::device {

class Device : public sc_core::sc_module {
 public:
  // Reports SC_ERROR if the kernel's resolution is not 1 ps.
  explicit Device(sc_core::sc_module_name name, const nic::NicParams& params = {});

  tlm_utils::simple_target_socket<Device> config{"config"};
  tlm_utils::simple_target_socket<Device> bar{"bar"};
  tlm::tlm_initiator_socket<> dma{"dma"};
  // Out: a frame is delivered when its last bit leaves; without a peer it is lost. In: may be called from any process.
  // Reports SC_ERROR and drops the frame if it has no bytes, or if its last bit would arrive before that of the
  // preceding frame.
  sc_core::sc_port<FrameIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> frame_out{"frame_out"};
  sc_core::sc_export<FrameIf> frame_in{"frame_in"};

  nic::NicCounters counters() const { return nic_.counters(); }
  // Calls `see(path, value, unit, meaning)` for each counter; paths are like "nic.tx.packets".
  using CounterSink =
      std::function<void(const std::string& path, std::uint64_t value, const char* unit, const char* meaning)>;
  void each_counter(const CounterSink& see) const;
  // Access to the NIC's blocks, for their trace points.
  nic::Nic& nic() { return nic_; }

 private:
  struct FrameInput : FrameIf {
    explicit FrameInput(nic::Nic& nic) : nic(nic) {}
    void receive(std::span<const std::byte> frame, const sc_core::sc_time& last_bit) override;
    nic::Nic& nic;
    Duration last_arrival;
  };

  void access_config(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void send(const Frame& frame);

  AgendaThread agenda_;  // must be constructed before every other module
  tlm_utils::simple_initiator_socket<Device> to_config_{"to_config"};
  tlm_utils::simple_initiator_socket<Device> to_bar_{"to_bar"};
  nic::Nic nic_;
  FrameInput frame_input_;
  std::vector<std::byte> sending_;
};

}  // namespace rnicsim::device
