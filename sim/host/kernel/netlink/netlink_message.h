// SPDX-License-Identifier: Apache-2.0
// Netlink messages as bytes: reads requests from any source, and builds answers.
#pragma once

#include <linux/netlink.h>
#include <string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace rnicsim::clock {

using NetlinkBytes = std::span<const std::byte>;

// The value at the start of `bytes`; nullopt: too few bytes.
template <class Value>
std::optional<Value> read_value(NetlinkBytes bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (bytes.size() < sizeof(Value)) return std::nullopt;
  Value value;
  memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The attributes behind a message's own header. Reading stops at an attribute that is not whole, as in the kernel.
class NetlinkAttributes {
 public:
  explicit NetlinkAttributes(NetlinkBytes bytes) : bytes_(bytes) {}
  // The last attribute of that type; nullopt: none.
  std::optional<NetlinkBytes> find(unsigned type) const;
  // The value of an attribute with exactly this size; nullopt: none.
  template <class Value>
  std::optional<Value> get(unsigned type) const {
    const auto found = find(type);
    return found && found->size() == sizeof(Value) ? read_value<Value>(*found) : std::nullopt;
  }

 private:
  const NetlinkBytes bytes_;
};

// take_message() takes the next message from `bytes`; nullopt: the rest is no message, and the kernel drops it.
struct NetlinkMessage {
  nlmsghdr header;
  NetlinkBytes whole;
  NetlinkBytes payload() const { return whole.subspan(NLMSG_HDRLEN); }
  NetlinkAttributes attributes_behind(std::size_t header_bytes) const;
};
std::optional<NetlinkMessage> take_message(NetlinkBytes& bytes);

// The messages of one datagram. A message that does not fit is left out.
class NetlinkDatagram {
 public:
  // Size of the kernel's own datagrams, for readers with a buffer of one page.
  static constexpr std::size_t kMostBytes = 3776;

  // begin() starts a message, the functions below add to it, end() completes it; false: no room.
  void begin(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint32_t port);
  bool end();

  template <class Header>
  void put_header(const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header>);
    append(&header, sizeof header);
  }
  template <class Value>
  void put(std::uint16_t type, const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value> && !std::is_pointer_v<Value>);
    put_bytes(type, &value, sizeof value);
  }
  void put_bytes(std::uint16_t type, const void* bytes, std::size_t count);
  void put_text(std::uint16_t type, const char* text) { put_bytes(type, text, strlen(text) + 1); }
  void append(const void* bytes, std::size_t count);

  bool empty() const { return begun_ == 0; }
  NetlinkBytes bytes() const { return {bytes_, begun_}; }

 private:
  std::size_t used_ = 0;
  std::size_t begun_ = 0;  // bytes of complete messages
  bool overflowed_ = false;
  alignas(nlmsghdr) std::byte bytes_[kMostBytes];
};

}  // namespace rnicsim::clock
