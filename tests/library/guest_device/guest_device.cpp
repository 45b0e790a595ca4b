// SPDX-License-Identifier: Apache-2.0
// A PCI device of another model, given to a virtual machine with rnicsim's protocols. The device increments a number in
// the guest's memory: a driver writes the number's address to kAddress; 1 us later the number is larger by 1, and MSI-X
// vector 0 is raised.
//   guest_device qemu SOCKET QTEST_SOCKET  |  guest_device vfio-user SOCKET
#include <csignal>
#include <iostream>
#include <string>
#include <systemc>

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include "config_space.h"
#include "sim/config/config_error.h"
#include "sim/guest/transactor/function_server.h"

namespace {

struct Incrementer : sc_core::sc_module {
  static constexpr std::uint64_t kMagicRegister = 0, kAddressRegister = 8, kCountRegister = 16;
  static constexpr std::uint64_t kMagic = 0x696e6372;

  tlm_utils::simple_target_socket<Incrementer> config{"config"}, bar{"bar"};
  tlm_utils::simple_initiator_socket<Incrementer> dma{"dma"};

  SC_HAS_PROCESS(Incrementer);
  explicit Incrementer(sc_core::sc_module_name name) : sc_module(name) {
    config.register_b_transport(this, &Incrementer::access_config);
    bar.register_b_transport(this, &Incrementer::access_bar);
    space_.reset_function = [this] { address_ = count_ = 0; };
    SC_METHOD(increment);
    dont_initialize();
    sensitive << due_;
  }

 private:
  void access_config(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
    answer(request,
           space_.access(request.is_write(), request.get_address(), request.get_data_ptr(), request.get_data_length()));
  }

  void access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time&) {
    const auto offset = request.get_address();
    const auto length = request.get_data_length();
    if (!space_.memory_enabled() || offset > ConfigSpace::kBarBytes || length > ConfigSpace::kBarBytes - offset)
      return answer(request, false);
    std::memcpy(&registers_[kMagicRegister], &kMagic, sizeof kMagic);
    std::memcpy(&registers_[kCountRegister], &count_, sizeof count_);
    if (request.is_read()) {
      std::memcpy(request.get_data_ptr(), &registers_[offset], length);
    } else {
      std::memcpy(&registers_[offset], request.get_data_ptr(), length);
      if (offset == kAddressRegister && length == 8) {
        std::memcpy(&address_, &registers_[offset], sizeof address_);
        due_.notify(1, sc_core::SC_US);
      }
    }
    answer(request, true);
  }

  static void answer(tlm::tlm_generic_payload& request, bool done) {
    request.set_response_status(done ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }

  void increment() {
    std::uint64_t number = 0;
    if (!access_memory(tlm::TLM_READ_COMMAND, address_, &number, sizeof number)) return;
    ++number;
    if (!access_memory(tlm::TLM_WRITE_COMMAND, address_, &number, sizeof number)) return;
    ++count_;
    std::uint32_t entry[4];
    std::memcpy(entry, &registers_[ConfigSpace::kMsixTable], sizeof entry);
    if (space_.msix_enabled() && (entry[3] & 1) == 0)
      access_memory(tlm::TLM_WRITE_COMMAND, std::uint64_t{entry[1]} << 32 | entry[0], &entry[2], sizeof entry[2]);
  }

  bool access_memory(tlm::tlm_command command, std::uint64_t address, void* data, unsigned length) {
    tlm::tlm_generic_payload request;
    request.set_command(command);
    request.set_address(address);
    request.set_data_ptr(static_cast<unsigned char*>(data));
    request.set_data_length(length);
    request.set_streaming_width(length);
    auto delay = sc_core::SC_ZERO_TIME;
    dma->b_transport(request, delay);
    return request.is_response_ok();
  }

  ConfigSpace space_;
  std::array<unsigned char, ConfigSpace::kBarBytes> registers_{};
  std::uint64_t address_ = 0, count_ = 0;
  sc_core::sc_event due_;
};

volatile std::sig_atomic_t ended = 0;

}  // namespace

int sc_main(int argc, char* argv[]) try {
  using rnicsim::sim::GuestProtocol;
  const std::string protocol = argc > 2 ? argv[1] : "";
  if (protocol != "qemu" && protocol != "vfio-user") {
    std::cerr << "usage: guest_device qemu SOCKET QTEST_SOCKET | guest_device vfio-user SOCKET\n";
    return 2;
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { ended = 1; });
  Incrementer device("device");
  rnicsim::sim::FunctionServer server;
  server.add({"incrementer", device.config, device.bar, device.dma, ConfigSpace::kBarBytes, ConfigSpace::kBytes},
             {protocol == "qemu" ? GuestProtocol::qemu : GuestProtocol::vfio_user, argv[2], argc > 3 ? argv[3] : ""});
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  std::cout << "serving at " << argv[2] << std::endl;
  while (ended == 0) server.turn(std::chrono::milliseconds(100));
  std::cout << server.state();
  return 0;
} catch (const rnicsim::sim::ConfigError& error) {
  std::cerr << "guest_device: " << error.what() << '\n';
  return 2;
}
