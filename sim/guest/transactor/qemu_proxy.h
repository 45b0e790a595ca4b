// SPDX-License-Identifier: Apache-2.0
// The protocol of x-pci-proxy-dev in QEMU 7.2: QEMU sends each access to the function, waits for the answer, and shares
// the guest's memory as a list of files. Messages are little-endian.
#pragma once

#include <poll.h>

#include <span>
#include <utility>
#include <vector>

#include "sim/guest/transactor/guest_client.h"
#include "sim/guest/transactor/guest_connection.h"
#include "sim/guest/transactor/qtest.h"

namespace rnicsim::sim {

class GuestPort;

class QemuProxy : public GuestClient {
 public:
  // `qtest`: the socket for interrupts, or its path (qtest.h).
  template <class Socket>
  QemuProxy(GuestPort& port, Descriptor socket, Socket&& qtest)
      : QemuProxy(port, std::move(socket), Qtest(port, std::forward<Socket>(qtest))) {}
  ~QemuProxy() override;

  void watch(std::vector<pollfd>& watched) const override;
  void serve() override;

 private:
  QemuProxy(GuestPort& port, Descriptor socket, Qtest qtest);
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
