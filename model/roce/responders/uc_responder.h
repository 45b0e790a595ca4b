// SPDX-License-Identifier: Apache-2.0
// The responder of UC (IBTA vol 1, 9.8.2): like that of RC, without answers. A message that lost a packet, or that
// cannot be executed, is dropped; the next message uses its receive WQE.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/verdict.h"

namespace rnicsim::roce {

class UcResponder {
 public:
  void start(const ResponderAttributes& attributes, Psn expected);
  void update(const ResponderAttributes& attributes) { attributes_ = attributes; }

  [[gnu::noinline]] Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer);
  // The rest of the chain, for a packet whose verdict was wants_access, and that takes no receive.
  [[gnu::noinline]] Verdict go_on(const Headers& headers, std::uint32_t payload, const Offer& offer);

  Psn expected_psn() const { return expected_; }
  std::uint32_t msn() const { return msn_; }

 private:
  using Kind = Verdict::Kind;

  struct InMessage {
    Operation operation;
    RemoteRange target;  // write
    std::uint32_t received = 0;
  };
  struct Packet {
    const Headers& headers;
    const OpcodeInfo& row;
    std::uint32_t payload;
    const Offer& offer;
    const InMessage* message;  // message that the packet continues; nullptr: none
  };

  std::optional<DropCause> check(const Packet& packet) const;
  bool length_fits(const Packet& packet) const;
  bool uses_receive(const Packet& packet) const;
  Verdict drop(const Packet& packet, DropCause cause);
  Verdict execute(const Packet& packet);

  ResponderAttributes attributes_;
  Psn expected_;
  std::uint32_t msn_ = 0;  // messages; not reported to the peer
  std::optional<InMessage> message_;
  bool holds_receive_ = false;  // a receive WQE was taken and no whole message has filled it yet
};

}  // namespace rnicsim::roce
