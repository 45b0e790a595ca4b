// SPDX-License-Identifier: Apache-2.0
// Protocol between the launcher of virtual machines and the agent in a guest: frames on one byte stream in each
// direction. A frame is a header of 12 bytes, little-endian, and its payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicsim::sim {

enum class FrameKind : std::uint8_t {
  // To the agent.
  start = 1,   // payload: a command line for the guest's shell
  signal = 2,  // payload: the signal's number, for the command and its children
  power_off = 3,
  // payload: standard output of the command
  ready = 16,    // payload: standard error of the command
  output = 17,   // all processes of the command sleep, for example a server that waits for its client
  errors = 18,   // payload: the exit status, as of a shell
  settled = 19,  // the command's processes sleep: a server waits for its client
  ended = 20,    // payload: the exit status, as a shell has it
};

struct Frame {
  FrameKind kind{};
  std::uint32_t command = 0;  // number given by the launcher; 0: the frame is about no command
  std::string payload;
};

inline constexpr std::size_t kFrameHeaderBytes = 12;
inline constexpr std::size_t kMostPayloadBytes = 64 * 1024;

// `payload` has kMostPayloadBytes at most.
std::string encode_frame(FrameKind kind, std::uint32_t command, std::string_view payload);
std::string number_payload(std::uint32_t number);
std::optional<std::uint32_t> payload_number(std::string_view payload);

class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // The next whole frame.
  std::optional<Frame> next();
  // The stream contains something else than frames; reading has ended.
  bool is_broken() const { return broken_; }

 private:
  std::string bytes_;
  std::size_t start_ = 0;
  bool broken_ = false;
};

}  // namespace rnicsim::sim
