// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace rnicsim::sim::replay {
namespace {

template <class M, class T>
struct Field {
  const char* name;
  T M::*member;
};

template <class M>
struct FieldsOf;

template <>
struct FieldsOf<cm::RequestedPath> {
  using M = cm::RequestedPath;
  static constexpr std::tuple kList{Field{"local_lid", &M::local_lid},
                                    Field{"remote_lid", &M::remote_lid},
                                    Field{"local_gid", &M::local_gid},
                                    Field{"remote_gid", &M::remote_gid},
                                    Field{"flow_label", &M::flow_label},
                                    Field{"packet_rate", &M::packet_rate},
                                    Field{"traffic_class", &M::traffic_class},
                                    Field{"hop_limit", &M::hop_limit},
                                    Field{"service_level", &M::service_level},
                                    Field{"subnet_local", &M::subnet_local},
                                    Field{"local_ack_timeout", &M::local_ack_timeout}};
};

template <>
struct FieldsOf<cm::ConnectRequest> {
  using M = cm::ConnectRequest;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id},
                                    Field{"service_id", &M::service_id},
                                    Field{"local_ca_guid", &M::local_ca_guid},
                                    Field{"local_qkey", &M::local_qkey},
                                    Field{"local_qpn", &M::local_qpn},
                                    Field{"responder_resources", &M::responder_resources},
                                    Field{"local_eecn", &M::local_eecn},
                                    Field{"initiator_depth", &M::initiator_depth},
                                    Field{"remote_eecn", &M::remote_eecn},
                                    Field{"remote_response_timeout", &M::remote_response_timeout},
                                    Field{"transport", &M::transport},
                                    Field{"end_to_end_flow_control", &M::end_to_end_flow_control},
                                    Field{"starting_psn", &M::starting_psn},
                                    Field{"local_response_timeout", &M::local_response_timeout},
                                    Field{"retry_count", &M::retry_count},
                                    Field{"pkey", &M::pkey},
                                    Field{"path_mtu", &M::path_mtu},
                                    Field{"rdc_exists", &M::rdc_exists},
                                    Field{"rnr_retry_count", &M::rnr_retry_count},
                                    Field{"max_cm_retries", &M::max_cm_retries},
                                    Field{"srq", &M::srq},
                                    Field{"extended_transport", &M::extended_transport},
                                    Field{"primary", &M::primary},
                                    Field{"alternate", &M::alternate},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::MessageReceiptAck> {
  using M = cm::MessageReceiptAck;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id},
                                    Field{"subject", &M::subject}, Field{"service_timeout", &M::service_timeout},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::ConnectReject> {
  using M = cm::ConnectReject;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id},
                                    Field{"remote_id", &M::remote_id},
                                    Field{"subject", &M::subject},
                                    Field{"information_length", &M::information_length},
                                    Field{"reason", &M::reason},
                                    Field{"information", &M::information},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::ConnectReply> {
  using M = cm::ConnectReply;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id},
                                    Field{"remote_id", &M::remote_id},
                                    Field{"local_qkey", &M::local_qkey},
                                    Field{"local_qpn", &M::local_qpn},
                                    Field{"local_eecn", &M::local_eecn},
                                    Field{"starting_psn", &M::starting_psn},
                                    Field{"responder_resources", &M::responder_resources},
                                    Field{"initiator_depth", &M::initiator_depth},
                                    Field{"target_ack_delay", &M::target_ack_delay},
                                    Field{"failover_accepted", &M::failover_accepted},
                                    Field{"end_to_end_flow_control", &M::end_to_end_flow_control},
                                    Field{"rnr_retry_count", &M::rnr_retry_count},
                                    Field{"srq", &M::srq},
                                    Field{"local_ca_guid", &M::local_ca_guid},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::ReadyToUse> {
  using M = cm::ReadyToUse;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::DisconnectRequest> {
  using M = cm::DisconnectRequest;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id},
                                    Field{"remote_qpn", &M::remote_qpn}, Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::DisconnectReply> {
  using M = cm::DisconnectReply;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::ServiceIdRequest> {
  using M = cm::ServiceIdRequest;
  static constexpr std::tuple kList{Field{"request_id", &M::request_id}, Field{"pkey", &M::pkey},
                                    Field{"service_id", &M::service_id}, Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::ServiceIdReply> {
  using M = cm::ServiceIdReply;
  static constexpr std::tuple kList{Field{"request_id", &M::request_id},
                                    Field{"status", &M::status},
                                    Field{"information_length", &M::information_length},
                                    Field{"qpn", &M::qpn},
                                    Field{"service_id", &M::service_id},
                                    Field{"qkey", &M::qkey},
                                    Field{"information", &M::information},
                                    Field{"private_data", &M::private_data}};
};

template <>
struct FieldsOf<cm::LoadAlternatePath> {
  using M = cm::LoadAlternatePath;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id}};
};

template <>
struct FieldsOf<cm::AlternatePathResponse> {
  using M = cm::AlternatePathResponse;
  static constexpr std::tuple kList{Field{"local_id", &M::local_id}, Field{"remote_id", &M::remote_id},
                                    Field{"information_length", &M::information_length}, Field{"status", &M::status}};
};

class Comparer {
 public:
  template <class M>
  void compare(const M& ours, const M& theirs, const std::string& prefix = {}) {
    std::apply([&](const auto&... field) { (one(prefix + field.name, ours.*field.member, theirs.*field.member), ...); },
               FieldsOf<M>::kList);
  }
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void one(const std::string& name, T ours, T theirs) {
    if (ours != theirs) found.push_back({name, text_of(ours), text_of(theirs)});
  }
  template <std::size_t Bytes>
  void one(const std::string& name, const std::array<std::uint8_t, Bytes>& ours,
           const std::array<std::uint8_t, Bytes>& theirs) {
    const auto [a, b] = std::ranges::mismatch(ours, theirs);
    if (a == ours.end()) return;
    const auto show = [at = a - ours.begin()](std::uint8_t byte) {
      return fmt::format("{:#04x} at byte {}", byte, at);
    };
    found.push_back({name, show(*a), show(*b)});
  }
  void one(const std::string& name, const cm::RequestedPath& ours, const cm::RequestedPath& theirs) {
    compare(ours, theirs, name + ".");
  }

  std::vector<FieldDifference> found;

 private:
  // Wide fields are identifiers, in hexadecimal; narrow fields are counts.
  template <class T>
  static std::string text_of(T value) {
    const auto number = static_cast<std::uint64_t>(value);
    return sizeof(T) > 2 ? fmt::format("{:#x}", number) : fmt::format("{}", number);
  }
};

}  // namespace

std::vector<FieldDifference> fields_of(const cm::Envelope& ours, const cm::Envelope& theirs) {
  Comparer comparer;
  comparer.one("transaction_id", ours.transaction_id, theirs.transaction_id);
  std::visit(
      [&](const auto& message) {
        using M = std::remove_cvref_t<decltype(message)>;
        if (const auto* other = std::get_if<M>(&theirs.message))
          comparer.compare(message, *other);
        else
          comparer.found.push_back(
              {"message", std::string(cm::name_of(ours.message)), std::string(cm::name_of(theirs.message))});
      },
      ours.message);
  return std::move(comparer.found);
}

}  // namespace rnicsim::sim::replay
