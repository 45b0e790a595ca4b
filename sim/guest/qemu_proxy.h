// The protocol of QEMU 7.2's x-pci-proxy-dev: the machine sends each access to the function and waits for its answer,
// and shares its memory as a list of files. Little-endian, as the machines that run it.
#pragma once

#include <poll.h>

#include <span>
#include <string>
#include <vector>

#include "sim/guest/guest_connection.h"
#include "sim/guest/guest_client.h"
#include "sim/guest/qtest.h"

namespace rnicsim::sim {

class GuestPort;

class QemuProxy : public GuestClient {
 public:
  // `qtest_path`: for interrupts.
  QemuProxy(GuestPort& port, Descriptor socket, const std::string& qtest_path);
  ~QemuProxy() override;

  void watch(std::vector<pollfd>& watched) const override;
  void serve() override;

 private:
  void execute(const GuestMessage& message);
  void share_memory(const GuestMessage& message);
  void access_config(const GuestMessage& message, bool write);
  void access_bar(const GuestMessage& message, bool write);
  void answer(std::uint64_t value);

  GuestPort& port_;
  GuestConnection connection_;
  Qtest qtest_;
};

}  // namespace rnicsim::sim
