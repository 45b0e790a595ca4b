// What the launcher of virtual machines and the agent in a guest say to each other: frames on one stream of bytes each
// way. A frame is a header of 12 bytes, little-endian, and its payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicsim::sim {

enum class FrameKind : std::uint8_t {
  // To the agent.
  start = 1,      // payload: a command line for the guest's shell
  signal = 2,     // payload: the signal's number, for the command and its children
  power_off = 3,
  // From the agent.
  ready = 16,     // payload: the kernel's release
  output = 17,    // payload: what the command printed
  errors = 18,    // the same on its standard error
  settled = 19,   // the command's processes sleep: a server waits for its client
  ended = 20,     // payload: the exit status, as a shell has it
};

struct Frame {
  FrameKind kind{};
  std::uint32_t command = 0;  // the launcher's number; frames about no command have 0
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
  // The stream has something else than frames; nothing more can be read from it.
  bool is_broken() const { return broken_; }

 private:
  std::string bytes_;
  std::size_t start_ = 0;
  bool broken_ = false;
};

}  // namespace rnicsim::sim
