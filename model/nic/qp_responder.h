// The responder of a queue pair, by its transport.
#pragma once

#include <cstdint>
#include <variant>

#include "model/roce/responder.h"
#include "model/roce/uc_responder.h"
#include "model/roce/ud_responder.h"

namespace rnicsim::nic {

class QpResponder {
 public:
  explicit QpResponder(roce::Transport transport) {
    if (transport == roce::Transport::uc) of_.emplace<roce::UcResponder>();
    if (transport == roce::Transport::ud) of_.emplace<roce::UdResponder>();
  }

  void start(const roce::ResponderAttributes& attributes, roce::Psn expected) {
    if (auto* ud = std::get_if<roce::UdResponder>(&of_)) return ud->start(attributes);
    if (auto* uc = std::get_if<roce::UcResponder>(&of_)) return uc->start(attributes, expected);
    std::get<roce::Responder>(of_).start(attributes, expected);
  }
  void update(const roce::ResponderAttributes& attributes) {
    std::visit([&](auto& responder) { responder.update(attributes); }, of_);
  }
  roce::Verdict receive(const roce::Headers& headers, std::uint32_t payload, const roce::Offer& offer) {
    return std::visit([&](auto& responder) { return responder.receive(headers, payload, offer); }, of_);
  }
  void atomic_done(roce::Psn psn, std::uint64_t original) { std::get<roce::Responder>(of_).atomic_done(psn, original); }
  // Datagrams have no order.
  roce::Psn expected_psn() const {
    if (std::holds_alternative<roce::UdResponder>(of_)) return {};
    if (const auto* uc = std::get_if<roce::UcResponder>(&of_)) return uc->expected_psn();
    return std::get<roce::Responder>(of_).expected_psn();
  }
  std::uint32_t msn() const {
    return std::visit([](const auto& responder) { return responder.msn(); }, of_);
  }

 private:
  std::variant<roce::Responder, roce::UcResponder, roce::UdResponder> of_;
};

}  // namespace rnicsim::nic
