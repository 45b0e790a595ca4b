// The NIC for anybody's virtual platform: one SystemC module with TLM-2.0 sockets and a frame port. What a driver does
// with it is docs/device.md, what happens inside docs/architecture.md. C++20, SystemC 2.3.4 at its resolution of 1 ps.
//
// PCI Express has address spaces that a generic payload can't tell apart, so each is a socket of its own:
//   config     requests of configuration space: address = offset in the function's 4 KiB (PCIe 4.0, 7.2), little-endian
//   bar        memory requests that hit BAR0: address = offset in the BAR, which the platform's decoder takes off
//   dma        requests of the device to host memory, with a PasidExtension (PCIe 4.0, 6.20); MSI-X messages are writes
//              of 4 bytes in PASID 0 to the address that the driver put into the table (PCIe 4.0, 6.1.4)
//
// Loosely timed: b_transport only, no DMI, no debug transport. To config and bar it may be called from anywhere with no
// delay, also between two sc_start(); with a delay from an SC_THREAD only, which is waited for, so that what the device
// does has the time of its cause. An answer takes no further time: the way from the CPU is the platform's.
//   TLM_ADDRESS_ERROR_RESPONSE      an unsupported request: no such register, wrong width, memory space not enabled; a
//                                   root complex then reads ones
//   TLM_BYTE_ENABLE_ERROR_RESPONSE, TLM_BURST_ERROR_RESPONSE, TLM_COMMAND_ERROR_RESPONSE  what the device does not take
//   TLM_GENERIC_ERROR_RESPONSE      a request without a data pointer
//
// On dma any answer but TLM_OK_RESPONSE is a completer abort. The time of the way to memory is the parameters'
// (pcie.read_latency, write_latency), so an annotated delay is not added, and the target had better not wait; one that
// does may, and the whole model waits with it. A TLM_IGNORE_COMMAND with a TranslationExtension asks for a physical
// address (ATS), and may be refused: atomics then are atomic within a PASID. Posted writes are in order. A check of the
// driver (model/driver_check/driver_check.h) looks at memory by transport_dbg, where the target has it.
//
// The model keeps step with the kernel under sc_start(). It goes ahead of it only under rnicsim::run_until() and
// run_on() (model/base/kernel.h), which are for simulations that have no modules but ours.
//
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
  // sc_report of severity SC_ERROR: the kernel's resolution is not 1 ps.
  explicit Device(sc_core::sc_module_name name, const nic::NicParams& params = {});

  tlm_utils::simple_target_socket<Device> config{"config"};
  tlm_utils::simple_target_socket<Device> bar{"bar"};
  tlm::tlm_initiator_socket<> dma{"dma"};
  // Frames out are given as their last bit leaves; without a peer they are lost. In: from any process, one behind the
  // other; sc_report of severity SC_ERROR, and the frame is lost: it has no bytes, or its last bit comes before that of
  // the one ahead of it.
  sc_core::sc_port<FrameIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> frame_out{"frame_out"};
  sc_core::sc_export<FrameIf> frame_in{"frame_in"};

  nic::NicCounters counters() const { return nic_.counters(); }
  // `see(path, value, unit, meaning)` for each of them, "nic.tx.packets" and its like.
  using CounterSink =
      std::function<void(const std::string& path, std::uint64_t value, const char* unit, const char* meaning)>;
  void each_counter(const CounterSink& see) const;
  // Its blocks, for their trace points.
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

  AgendaThread agenda_;  // before every module
  tlm_utils::simple_initiator_socket<Device> to_config_{"to_config"};
  tlm_utils::simple_initiator_socket<Device> to_bar_{"to_bar"};
  nic::Nic nic_;
  FrameInput frame_input_;
  std::vector<std::byte> sending_;
};

}  // namespace rnicsim::device
