// SPDX-License-Identifier: Apache-2.0
// The connection of a client: a UNIX stream of messages. A message is a header of 16 bytes and a body; the header tells
// the length of the body. File descriptors travel with a message. No function waits, except await().
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// The connection has to be closed; the text tells why.
class ConnectionLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct GuestMessage {
  static constexpr std::size_t kHeaderBytes = 16;
  std::array<std::byte, kHeaderBytes> header{};
  std::vector<std::byte> body;
  std::vector<Descriptor> descriptors;
};

class GuestConnection {
 public:
  static constexpr std::size_t kMostDescriptors = 8;

  // `body_bytes(header)` returns the length of the body. ConnectionLost: the header is not one of the protocol.
  using BodyBytes = std::size_t (*)(std::span<const std::byte, GuestMessage::kHeaderBytes> header);
  GuestConnection(Descriptor socket, BodyBytes body_bytes) : socket_(std::move(socket)), body_bytes_(body_bytes) {}

  int descriptor() const { return socket_.get(); }
  // The events for poll().
  short events() const;

  // The next message, when all its bytes have arrived. ConnectionLost: the client closed the connection, or broke the
  // protocol.
  std::optional<GuestMessage> receive();
  // Sends now what the socket takes; flush() sends the rest. Sends no descriptors.
  void send(std::span<const std::byte> message);
  void flush();
  // Waits until the socket can be read or written; false: not until `deadline`.
  bool await(std::chrono::steady_clock::time_point deadline) const;

 private:
  bool fill(std::span<std::byte> bytes);
  void keep_descriptors(const msghdr& message);

  Descriptor socket_;
  const BodyBytes body_bytes_;
  GuestMessage incoming_;
  std::size_t come_ = 0;  // bytes of incoming_ that have arrived, header and body
  bool header_read_ = false;
  std::vector<std::byte> outgoing_;
};

}  // namespace rnicsim::sim
