// SPDX-License-Identifier: Apache-2.0
// Reads and makes the bodies of vfio-user messages.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rnicsim::sim::vfio_user {

// The reply to the command is an errno.
class RequestError : public std::runtime_error {
 public:
  RequestError(int error, const std::string& why) : std::runtime_error(why), error(error) {}
  const int error;
};

// Reads the beginning of a body.
template <class Body>
Body body_of(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Body))
    throw RequestError(EINVAL, fmt::format("a body of {} bytes instead of {}", bytes.size(), sizeof(Body)));
  Body body;
  std::memcpy(static_cast<void*>(&body), bytes.data(), sizeof body);
  return body;
}

// The same for a body whose first word, argsz, is the room for the reply.
template <class Body>
Body query_of(std::span<const std::byte> bytes) {
  const auto body = body_of<Body>(bytes);
  if (body.argsz < sizeof(Body))
    throw RequestError(EINVAL, fmt::format("argsz is {}, less than {}", body.argsz, sizeof(Body)));
  return body;
}

template <class Body>
std::vector<std::byte> bytes_of(const Body& body) {
  const auto bytes = std::as_bytes(std::span(&body, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace rnicsim::sim::vfio_user
