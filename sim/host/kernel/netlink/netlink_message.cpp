// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/netlink_message.h"

#include <algorithm>

namespace rnicsim::clock {

std::optional<NetlinkBytes> NetlinkAttributes::find(unsigned type) const {
  std::optional<NetlinkBytes> found;
  NetlinkBytes rest = bytes_;
  while (const auto head = read_value<nlattr>(rest)) {
    if (head->nla_len < sizeof *head || head->nla_len > rest.size()) break;
    if ((head->nla_type & NLA_TYPE_MASK) == type) found = rest.first(head->nla_len).subspan(NLA_HDRLEN);
    rest = rest.subspan(std::min<std::size_t>(NLA_ALIGN(head->nla_len), rest.size()));
  }
  return found;
}

NetlinkAttributes NetlinkMessage::attributes_behind(std::size_t header_bytes) const {
  const NetlinkBytes bytes = payload();
  return NetlinkAttributes(bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header_bytes), bytes.size())));
}

std::optional<NetlinkMessage> take_message(NetlinkBytes& bytes) {
  const auto header = read_value<nlmsghdr>(bytes);
  if (!header || header->nlmsg_len < NLMSG_HDRLEN || header->nlmsg_len > bytes.size()) return std::nullopt;
  const NetlinkMessage message{*header, bytes.first(header->nlmsg_len)};
  bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(std::size_t{header->nlmsg_len}), bytes.size()));
  return message;
}

void NetlinkDatagram::begin(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint32_t port) {
  used_ = begun_;
  overflowed_ = false;
  put_header(nlmsghdr{0, type, flags, sequence, port});
}

bool NetlinkDatagram::end() {
  if (overflowed_) return false;
  const auto length = std::uint32_t(used_ - begun_);
  memcpy(bytes_ + begun_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  begun_ = used_ = NLMSG_ALIGN(used_);
  return true;
}

void NetlinkDatagram::put_bytes(std::uint16_t type, const void* bytes, std::size_t count) {
  const nlattr head{std::uint16_t(NLA_HDRLEN + count), type};
  append(&head, sizeof head);
  append(bytes, count);
}

// Pads the bytes to a multiple of 4, because messages and attributes are aligned to that.
void NetlinkDatagram::append(const void* bytes, std::size_t count) {
  const std::size_t padded = NLMSG_ALIGN(count);
  if (overflowed_ || padded > kMostBytes - used_) {
    overflowed_ = true;
    return;
  }
  if (count > 0) memcpy(bytes_ + used_, bytes, count);
  memset(bytes_ + used_ + count, 0, padded - count);
  used_ += padded;
}

}  // namespace rnicsim::clock
