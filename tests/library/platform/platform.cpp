// SPDX-License-Identifier: Apache-2.0
// A virtual platform without rnicsim's simulator: two bare hosts, a NIC in each, a cable. One host writes its buffer to
// the other. A driver check observes its driver, and must find nothing.
#include <iostream>

#include "bare_host.h"
#include "model/device/cable.h"
#include "model/driver_check/driver_check.h"
#include "sim/config/nic_profile.h"

namespace bare {

struct Machine : sc_core::sc_module {
  Machine(sc_core::sc_module_name name, std::uint8_t number, const rnicsim::nic::NicParams& params)
      : sc_module(name), nic("nic", params), host("host", number) {
    host.config.bind(nic.config);
    host.bar.bind(nic.bar);
    nic.dma.bind(host.memory);
    check.tell([](const rnicsim::driver_check::Finding& finding) { std::cerr << finding.line() << '\n'; });
  }
  rnicsim::device::Device nic;
  BareHost host;
  rnicsim::driver_check::DriverCheck check{nic.nic()};
};

struct Platform : sc_core::sc_module {
  Platform(sc_core::sc_module_name name, const rnicsim::nic::NicParams& params)
      : sc_module(name), a("a", 1, params), b("b", 2, params) {
    cable.connect(a.nic, b.nic);
    sc_core::sc_spawn([this] { run(); }, "cpu");
  }

  void run() {
    for (auto* machine : {&a, &b}) machine->host.bring_up();
    a.host.connect(b.host);
    b.host.connect(a.host);
    for (std::size_t i = 0; i < BareHost::kBufferBytes; ++i)
      a.host.bytes[BareHost::kBuffer + i] = static_cast<unsigned char>(i * 131 >> 3);
    const auto posted = sc_core::sc_time_stamp();
    const abi::Cqe cqe = a.host.write_buffer();
    const auto took = sc_core::sc_time_stamp() - posted;
    const auto* sent = &a.host.bytes[BareHost::kBuffer];
    done = cqe.opcode_owner == 0 && cqe.syndrome == abi::CqeSyndrome::success && a.host.interrupts == 1 &&
           std::equal(sent, sent + BareHost::kBufferBytes, &b.host.bytes[BareHost::kBuffer]);
    for (auto* machine : {&a, &b}) {
      machine->check.finish();
      done = done && machine->check.findings().empty() && machine->check.accesses() != 0;
    }
    std::cout << BareHost::kBufferBytes << " bytes written, completed and interrupted after " << took << "; "
              << a.nic.counters().tx.packets << " packets\n";
  }

  Machine a, b;
  rnicsim::device::Cable cable{"cable"};
  bool done = false;
};

}  // namespace bare

int sc_main(int argc, char* argv[]) try {
  const std::vector<std::string> sets(argv + std::min(argc, 2), argv + argc);
  bare::Platform platform("platform", rnicsim::sim::load_nic_profile(argc > 1 ? argv[1] : "", sets));
  sc_core::sc_start();
  return platform.done ? 0 : 1;
} catch (const rnicsim::sim::ConfigError& error) {
  std::cerr << "platform: " << error.what() << '\n';
  return 2;
}
