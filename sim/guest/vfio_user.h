// The vfio-user protocol, served: QEMU from 10.1 on, and whatever else speaks it. From the published specification,
// version 0.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "sim/guest/guest_connection.h"
#include "sim/guest/guest_client.h"
#include "sim/guest/vector_table.h"
#include "sim/guest/vfio_user_messages.h"

namespace rnicsim::sim {

class GuestPort;

class VfioUser : public GuestClient {
 public:
  // `patience`: how long the client may take to answer a request of ours.
  VfioUser(GuestPort& port, Descriptor socket, std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~VfioUser() override;

  void watch(std::vector<pollfd>& watched) const override;
  void serve() override;

 private:
  using Bytes = std::span<const std::byte>;

  void execute(GuestMessage& message);
  // What goes behind the reply's header; RequestError.
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

  // --- Memory that has no descriptor is reached by messages of ours, which the client answers: the one time that we
  // wait for it. They come from within the simulation, and throw nothing.
  bool read_memory(std::uint64_t address, std::span<std::byte> bytes);
  bool write_memory(std::uint64_t address, Bytes bytes);
  // The body of the client's reply; false: it refused, or did not answer in time.
  bool ask(vfio_user::Command command, Bytes body, std::vector<std::byte>& answer);
  bool await_reply(std::uint16_t id, vfio_user::Command command, std::vector<std::byte>& answer);

  GuestPort& port_;
  GuestConnection connection_;
  VectorTable vectors_;
  const std::chrono::milliseconds patience_;
  bool agreed_ = false;                 // on a version
  std::uint64_t most_data_;             // of a message
  std::uint16_t next_id_ = 0;
  std::deque<GuestMessage> deferred_;   // commands that came while we waited
  std::string broken_;                  // why the connection is to be closed
  std::uint64_t resets_seen_;
};

}  // namespace rnicsim::sim
