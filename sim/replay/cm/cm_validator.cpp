// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sim/replay/cm/cm_fields.h"
#include "sim/replay/cm/cm_host.h"
#include "sim/replay/cm/cm_names.h"
#include "sim/replay/cm/cm_order.h"

namespace rnicsim::sim::replay {
namespace {

// Copies the fields that the host chooses and the manager only transports.
void take_hosts_words(cm::Message& ours, const cm::Message& theirs) {
  std::visit(
      [&](auto& message) {
        const auto* other = std::get_if<std::remove_cvref_t<decltype(message)>>(&theirs);
        if constexpr (requires { message.private_data; }) message.private_data = other->private_data;
        if constexpr (requires { message.information; }) {
          message.information_length = other->information_length;
          message.information = other->information;
        }
      },
      ours);
}

bool is_timeout(const cm::Message& message) {
  const auto* reject = std::get_if<cm::ConnectReject>(&message);
  return reject != nullptr && reject->reason == cm::RejectReason::timeout;
}

bool is_receipt(const cm::Message& message) { return std::holds_alternative<cm::MessageReceiptAck>(message); }

class Validator {
 public:
  Validator(const CmTraffic& traffic, const roce::Gid& address) : traffic_(traffic), host_(traffic, address) {}

  Comparison run() {
    for (const auto& message : traffic_.messages) {
      host_.advance(message.time);
      if (!message.sent) host_.receive(message);
      collect();
      if (message.sent) validate(message);
    }
    host_.finish();
    collect();
    for (const auto* request : host_.unanswered())
      only_ours(request->frame, fmt::format("an answer to {}", decoded(request->envelope)));
    for (const auto& ours : waiting_) validate_alone(ours);
    for (const auto& odd : traffic_.odd)
      if (odd.sent && odd.of_cm) only_theirs(odd.frame, odd.what);
    std::ranges::stable_sort(result_.differences, {}, &Difference::frame);
    return std::move(result_);
  }

 private:
  using Waiting = std::vector<CmSent>::iterator;

  void collect() {
    auto sent = host_.take();
    std::ranges::move(sent, std::back_inserter(waiting_));
  }

  void validate(const CmMessage& theirs) {
    if (is_receipt(theirs.envelope.message)) host_.acknowledged(theirs);
    if (const auto ours = same(theirs); ours != waiting_.end()) {
      pair(ours, theirs);
    } else if (host_.act(theirs)) {
      collect();
      const auto last =
          std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const CmSent& each) { return same_kind(each, theirs); });
      if (last == waiting_.rend()) return only_theirs(theirs.frame, decoded(theirs.envelope));
      if (!is_timeout(theirs.envelope.message)) take_hosts_words(last->envelope.message, theirs.envelope.message);
      pair(std::prev(last.base()), theirs);
    } else if (const auto alike = most_alike(theirs); alike != waiting_.end()) {
      pair(alike, theirs);
    } else if (const auto remaining = host_.until_again(theirs)) {
      result_.differences.push_back(
          {Subject::timer,
           theirs.frame,
           fmt::format("the same message again {} ms later, or no message", milliseconds(*remaining)),
           decoded(theirs.envelope),
           {}});
    } else if (is_receipt(theirs.envelope.message)) {
      result_.use(Equivalence::receipt_ack);
    } else {
      only_theirs(theirs.frame, decoded(theirs.envelope));
    }
  }

  static std::int64_t milliseconds(Duration time) { return time.ps / 1'000'000'000; }

  static bool same_kind(const CmSent& ours, const CmMessage& theirs) {
    return ours.peer == theirs.peer && ours.envelope.message.index() == theirs.envelope.message.index();
  }
  Waiting same(const CmMessage& theirs) {
    return std::ranges::find_if(waiting_, [&](const CmSent& ours) {
      return same_kind(ours, theirs) && fields_of(host_.names().in_theirs(ours.envelope), theirs.envelope).empty();
    });
  }
  // The waiting message of the same kind with the most equal IDs.
  Waiting most_alike(const CmMessage& theirs) {
    auto best = waiting_.end();
    int most = 0;
    for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
      if (!same_kind(*each, theirs)) continue;
      const auto ours = host_.names().in_theirs(each->envelope);
      const auto agree = [](std::uint32_t a, std::uint32_t b) { return a != 0 && a == b ? 1 : 0; };
      const int votes = (ours.transaction_id == theirs.envelope.transaction_id ? 1 : 0) +
                        agree(own_id(ours.message), own_id(theirs.envelope.message)) +
                        agree(other_id(ours.message), other_id(theirs.envelope.message));
      if (votes > most) {
        best = each;
        most = votes;
      }
    }
    return best;
  }

  void pair(Waiting ours, const CmMessage& theirs) {
    host_.names().learn(ours->envelope, theirs.envelope);
    auto envelope = host_.names().in_theirs(ours->envelope);
    allow_no_local_id(envelope.message, theirs.envelope.message);
    auto fields = fields_of(envelope, theirs.envelope);
    if (fields.empty())
      ++result_.matched;
    else
      result_.differences.push_back(
          {Subject::management, theirs.frame, decoded(envelope), decoded(theirs.envelope), std::move(fields)});
    waiting_.erase(ours);
  }
  // A host that rejects a REQ need not have chosen a local ID.
  void allow_no_local_id(cm::Message& ours, const cm::Message& theirs) {
    auto* const reject = std::get_if<cm::ConnectReject>(&ours);
    const auto* const other = std::get_if<cm::ConnectReject>(&theirs);
    const bool of_request = reject != nullptr && other != nullptr && reject->subject == cm::Subject::request;
    if (!of_request || reject->reason == cm::RejectReason::timeout || reject->local_id == other->local_id) return;
    if (reject->local_id != 0 && other->local_id != 0) return;
    reject->local_id = other->local_id;
    result_.use(Equivalence::reject_id);
  }

  void validate_alone(const CmSent& ours) {
    const auto& message = ours.envelope.message;
    if (is_receipt(message)) return result_.use(Equivalence::receipt_ack);
    if (ours.again && excused_.emplace(own_id(message), message.index()).second)
      return result_.use(Equivalence::sent_again);
    only_ours(ours.frame, decoded(host_.names().in_theirs(ours.envelope)));
  }
  void only_ours(std::uint32_t frame, std::string what) {
    result_.differences.push_back({Subject::management, frame, std::move(what), std::nullopt, {}});
  }
  void only_theirs(std::uint32_t frame, std::string what) {
    result_.differences.push_back({Subject::management, frame, std::nullopt, std::move(what), {}});
  }

  const CmTraffic& traffic_;
  CmHost host_;
  std::vector<CmSent> waiting_;  // our messages without a counterpart yet
  std::set<std::pair<cm::ConnectionId, std::size_t>> excused_;
  Comparison result_;
};

}  // namespace

Comparison validate_management(const CmTraffic& traffic, const roce::Gid& address) {
  const auto ordered = as_acted_upon(traffic);
  return Validator(ordered, address).run();
}

}  // namespace rnicsim::sim::replay
