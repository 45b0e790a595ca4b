// Netlink messages as bytes: how a request is read, whoever wrote it, and how answers are put together.
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

// The start of `bytes`; nothing: there are too few.
template <class Value>
std::optional<Value> read_value(NetlinkBytes bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (bytes.size() < sizeof(Value)) return std::nullopt;
  Value value;
  memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The attributes behind a message's own header. As the kernel does, whoever reads them stops where one is not whole.
class NetlinkAttributes {
 public:
  explicit NetlinkAttributes(NetlinkBytes bytes) : bytes_(bytes) {}
  // The last of that type; nothing: there is none.
  std::optional<NetlinkBytes> find(unsigned type) const;
  // Of a value of just this size; another is none.
  template <class Value>
  std::optional<Value> get(unsigned type) const {
    const auto found = find(type);
    return found && found->size() == sizeof(Value) ? read_value<Value>(*found) : std::nullopt;
  }

 private:
  const NetlinkBytes bytes_;
};

// Takes the next message from `bytes`; nothing: what is left is none, and the kernel drops it.
struct NetlinkMessage {
  nlmsghdr header;
  NetlinkBytes whole;
  NetlinkBytes payload() const { return whole.subspan(NLMSG_HDRLEN); }
  NetlinkAttributes attributes_behind(std::size_t header_bytes) const;
};
std::optional<NetlinkMessage> take_message(NetlinkBytes& bytes);

// The messages of one datagram. One that finds no room is no part of it.
class NetlinkDatagram {
 public:
  // What the kernel puts into one: a reader with a buffer of a page gets it whole.
  static constexpr std::size_t kMostBytes = 3776;

  // Between these two a message grows; `end` is false if it found no room.
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
  std::size_t begun_ = 0;  // of whole messages
  bool overflowed_ = false;
  alignas(nlmsghdr) std::byte bytes_[kMostBytes];
};

}  // namespace rnicsim::clock
