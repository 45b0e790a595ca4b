// SPDX-License-Identifier: Apache-2.0
// The server of the vfio-user protocol, version 0, after the published specification. Clients are QEMU from 10.1 on and
// others.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "sim/guest/transactor/guest_client.h"
#include "sim/guest/transactor/guest_connection.h"
#include "sim/guest/transactor/vector_table.h"
#include "sim/guest/transactor/vfio_user_messages.h"

namespace rnicsim::sim {

class GuestPort;

class VfioUser : public GuestClient {
 public:
  // `patience`: the longest time for the client's answer to a request of the server.
  VfioUser(GuestPort& port, Descriptor socket, std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~VfioUser() override;

  void watch(std::vector<pollfd>& watched) const override;
  void serve() override;

 private:
  using Bytes = std::span<const std::byte>;

  void execute(GuestMessage& message);
  // The body of the reply; RequestError.
  std::vector<std::byte> answer_to(GuestMessage& message);
  void reply(const vfio_user::Header& request, Bytes body, std::uint32_t error);

  std::vector<std::byte> agree_on_version(Bytes body);
  std::vector<std::byte> map(const GuestMessage& message);
  std::vector<std::byte> unmap(Bytes body);
  std::vector<std::byte> region_info(Bytes body) const;
  std::vector<std::byte> irq_info(Bytes body) const;
  std::vector<std::byte> set_irqs(GuestMessage& message);
  std::vector<std::byte> read_region(Bytes body);
  std::vector<std::byte> write_region(Bytes body);
  std::vector<std::byte> write_regions(Bytes body);
  void write(std::uint32_t region, std::uint64_t offset, Bytes data);
  void find_reset();

  // --- Memory without a descriptor is accessed by requests to the client. The simulation waits for the answer. These
  // functions are called by the simulation and throw nothing.
  bool read_memory(std::uint64_t address, std::span<std::byte> bytes);
  bool write_memory(std::uint64_t address, Bytes bytes);
  // Returns the body of the reply in `answer`; false: the client refused, or did not answer in time.
  bool ask(vfio_user::Command command, Bytes body, std::vector<std::byte>& answer);
  bool await_reply(std::uint16_t id, vfio_user::Command command, std::vector<std::byte>& answer);

  GuestPort& port_;
  GuestConnection connection_;
  VectorTable vectors_;
  const std::chrono::milliseconds patience_;
  bool agreed_ = false;      // on a protocol version
  std::uint64_t most_data_;  // limit of the data of one message, bytes
  std::uint16_t next_id_ = 0;
  std::deque<GuestMessage> deferred_;  // commands that arrived during a wait
  std::string broken_;                 // the reason to close the connection
  std::uint64_t resets_seen_;
};

}  // namespace rnicsim::sim
