// A client's connection: a UNIX stream of messages, each a header of 16 bytes and a body whose length the header says,
// with file descriptors beside them. Nobody waits here, but await().
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

#include "sim/descriptor.h"

namespace rnicsim::sim {

// The connection is of no use any more: why.
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

  // `body_bytes(header)`: how long the body is; ConnectionLost for a header that makes no sense.
  using BodyBytes = std::size_t (*)(std::span<const std::byte, GuestMessage::kHeaderBytes> header);
  GuestConnection(Descriptor socket, BodyBytes body_bytes) : socket_(std::move(socket)), body_bytes_(body_bytes) {}

  int descriptor() const { return socket_.get(); }
  // What poll() is to look for.
  short events() const;

  // The next message, once all of it is here. ConnectionLost: the client has gone, or sent nonsense.
  std::optional<GuestMessage> receive();
  // Goes out now, or when the client takes it: flush(). Descriptors are not sent.
  void send(std::span<const std::byte> message);
  void flush();
  // Until something has come or can go; false: not by `deadline`.
  bool await(std::chrono::steady_clock::time_point deadline) const;

 private:
  bool fill(std::span<std::byte> bytes);
  void keep_descriptors(const msghdr& message);

  Descriptor socket_;
  const BodyBytes body_bytes_;
  GuestMessage incoming_;
  std::size_t come_ = 0;              // of incoming_, header and body
  bool header_read_ = false;
  std::vector<std::byte> outgoing_;
};

}  // namespace rnicsim::sim
