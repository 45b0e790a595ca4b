// SPDX-License-Identifier: Apache-2.0
// The responder of a queue pair, chosen by its transport.
#pragma once

#include <cstdint>
#include <variant>

#include "model/roce/responders/raw_responder.h"
#include "model/roce/responders/responder.h"
#include "model/roce/responders/uc_responder.h"
#include "model/roce/responders/ud_responder.h"

namespace rnicsim::roce {

class QpResponder {
 public:
  explicit QpResponder(Transport transport) {
    if (transport == Transport::uc) of_.emplace<UcResponder>();
    if (transport == Transport::ud) of_.emplace<UdResponder>();
    if (transport == Transport::raw) of_.emplace<RawResponder>();
  }

  void start(const ResponderAttributes& attributes, Psn expected) {
    if (auto* ud = std::get_if<UdResponder>(&of_)) return ud->start(attributes);
    if (auto* uc = std::get_if<UcResponder>(&of_)) return uc->start(attributes, expected);
    if (auto* raw = std::get_if<RawResponder>(&of_)) return raw->start(attributes);
    std::get<Responder>(of_).start(attributes, expected);
  }
  void update(const ResponderAttributes& attributes) {
    std::visit([&](auto& responder) { responder.update(attributes); }, of_);
  }
  Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer) {
    if (auto* rc = std::get_if<Responder>(&of_)) return rc->receive(headers, payload, offer);
    if (auto* uc = std::get_if<UcResponder>(&of_)) return uc->receive(headers, payload, offer);
    if (auto* raw = std::get_if<RawResponder>(&of_)) return raw->receive(payload, offer);
    return std::get<UdResponder>(of_).receive(headers, payload, offer);
  }
  // RC and UC only.
  Verdict go_on(const Headers& headers, std::uint32_t payload, const Offer& offer) {
    if (auto* uc = std::get_if<UcResponder>(&of_)) return uc->go_on(headers, payload, offer);
    return std::get<Responder>(of_).go_on(headers, payload, offer);
  }
  void atomic_done(Psn psn, std::uint64_t original) { std::get<Responder>(of_).atomic_done(psn, original); }
  // UD and raw queue pairs have no order of packets: 0.
  Psn expected_psn() const {
    if (std::holds_alternative<UdResponder>(of_) || std::holds_alternative<RawResponder>(of_)) return {};
    if (const auto* uc = std::get_if<UcResponder>(&of_)) return uc->expected_psn();
    return std::get<Responder>(of_).expected_psn();
  }
  std::uint32_t msn() const {
    return std::visit([](const auto& responder) { return responder.msn(); }, of_);
  }

 private:
  std::variant<Responder, UcResponder, UdResponder, RawResponder> of_;
};

}  // namespace rnicsim::roce
