// SPDX-License-Identifier: Apache-2.0
// Messages of the communication manager (IBTA vol 1, 12.6 and 12.11), and the management datagrams that carry them
// (13.4.2). Each struct has the decoded fields of its table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace rnicsim::cm {

using Gid = std::array<std::uint8_t, 16>;
template <std::size_t Bytes>
using PrivateData = std::array<std::uint8_t, Bytes>;

inline constexpr std::size_t kMadBytes = 256;
using Mad = std::array<std::byte, kMadBytes>;

// Timeout or life time: 4.096 us x 2^code; the code has 5 bits.
using TimeCode = std::uint8_t;

enum class TransportService : std::uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };
inline constexpr std::uint8_t kExtendedXrc = 1;

// Path as a REQ describes it, from the point of view of the REQ's sender.
struct RequestedPath {
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  Gid local_gid{};
  Gid remote_gid{};
  std::uint32_t flow_label = 0;
  std::uint8_t packet_rate = 0;  // enum ibv_rate
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  bool subnet_local = false;
  TimeCode local_ack_timeout = 0;
  bool operator==(const RequestedPath&) const = default;
};

struct ConnectRequest {  // REQ
  static constexpr std::uint16_t kAttribute = 0x0010;
  std::uint32_t local_id = 0;
  std::uint64_t service_id = 0;
  std::uint64_t local_ca_guid = 0;
  std::uint32_t local_qkey = 0;
  std::uint32_t local_qpn = 0;
  std::uint8_t responder_resources = 0;
  std::uint32_t local_eecn = 0;
  std::uint8_t initiator_depth = 0;
  std::uint32_t remote_eecn = 0;
  TimeCode remote_response_timeout = 0;
  TransportService transport = TransportService::rc;
  bool end_to_end_flow_control = false;
  std::uint32_t starting_psn = 0;
  TimeCode local_response_timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint16_t pkey = 0;
  std::uint8_t path_mtu = 0;  // enum ibv_mtu
  bool rdc_exists = false;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t max_cm_retries = 0;
  bool srq = false;
  std::uint8_t extended_transport = 0;
  RequestedPath primary;
  RequestedPath alternate;  // local_lid 0: no alternate path
  PrivateData<92> private_data{};
  bool operator==(const ConnectRequest&) const = default;
};

// Kind of message that an MRA or REJ answers.
enum class Subject : std::uint8_t { request = 0, reply = 1, other = 2 };

struct MessageReceiptAck {  // MRA
  static constexpr std::uint16_t kAttribute = 0x0011;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  Subject subject = Subject::request;
  TimeCode service_timeout = 0;
  PrivateData<222> private_data{};
  bool operator==(const MessageReceiptAck&) const = default;
};

enum class RejectReason : std::uint16_t {  // 12.6.7.2
  no_qp = 1,
  no_resources = 3,
  timeout = 4,
  unsupported = 5,
  invalid_communication_id = 6,
  invalid_communication_instance = 7,
  invalid_service_id = 8,
  invalid_transport_type = 9,
  stale_connection = 10,
  invalid_gid = 12,
  consumer = 28,
};

struct ConnectReject {  // REJ
  static constexpr std::uint16_t kAttribute = 0x0012;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  Subject subject = Subject::request;
  std::uint8_t information_length = 0;
  RejectReason reason{};
  PrivateData<72> information{};
  PrivateData<148> private_data{};
  bool operator==(const ConnectReject&) const = default;
};

struct ConnectReply {  // REP
  static constexpr std::uint16_t kAttribute = 0x0013;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  std::uint32_t local_qkey = 0;
  std::uint32_t local_qpn = 0;
  std::uint32_t local_eecn = 0;  // XRC: number of the responder's QP
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  TimeCode target_ack_delay = 0;
  std::uint8_t failover_accepted = 0;
  bool end_to_end_flow_control = false;
  std::uint8_t rnr_retry_count = 0;
  bool srq = false;
  std::uint64_t local_ca_guid = 0;
  PrivateData<196> private_data{};
  // QPN in an answer to a REQ with that transport.
  std::uint32_t qpn(TransportService transport) const {
    return transport == TransportService::extended ? local_eecn : local_qpn;
  }
  bool operator==(const ConnectReply&) const = default;
};

struct ReadyToUse {  // RTU
  static constexpr std::uint16_t kAttribute = 0x0014;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  PrivateData<224> private_data{};
  bool operator==(const ReadyToUse&) const = default;
};

struct DisconnectRequest {  // DREQ
  static constexpr std::uint16_t kAttribute = 0x0015;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  std::uint32_t remote_qpn = 0;
  PrivateData<220> private_data{};
  bool operator==(const DisconnectRequest&) const = default;
};

struct DisconnectReply {  // DREP
  static constexpr std::uint16_t kAttribute = 0x0016;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  PrivateData<224> private_data{};
  bool operator==(const DisconnectReply&) const = default;
};

struct ServiceIdRequest {  // SIDR_REQ
  static constexpr std::uint16_t kAttribute = 0x0017;
  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0;
  std::uint64_t service_id = 0;
  PrivateData<216> private_data{};
  bool operator==(const ServiceIdRequest&) const = default;
};

enum class ServiceIdStatus : std::uint8_t {  // 12.11.2
  valid = 0,
  not_supported = 1,
  rejected = 2,
  no_qp = 3,
  redirect = 4,
  unsupported_version = 5,
};

struct ServiceIdReply {  // SIDR_REP
  static constexpr std::uint16_t kAttribute = 0x0018;
  std::uint32_t request_id = 0;
  ServiceIdStatus status = ServiceIdStatus::valid;
  std::uint8_t information_length = 0;
  std::uint32_t qpn = 0;
  std::uint64_t service_id = 0;
  std::uint32_t qkey = 0;
  PrivateData<72> information{};
  PrivateData<136> private_data{};
  bool operator==(const ServiceIdReply&) const = default;
};

struct LoadAlternatePath {  // LAP
  static constexpr std::uint16_t kAttribute = 0x0019;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  bool operator==(const LoadAlternatePath&) const = default;
};

struct AlternatePathResponse {  // APR
  static constexpr std::uint16_t kAttribute = 0x001a;
  static constexpr std::uint8_t kNotSupported = 2;
  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  std::uint8_t information_length = 0;
  std::uint8_t status = 0;
  bool operator==(const AlternatePathResponse&) const = default;
};

using Message =
    std::variant<ConnectRequest, MessageReceiptAck, ConnectReject, ConnectReply, ReadyToUse, DisconnectRequest,
                 DisconnectReply, ServiceIdRequest, ServiceIdReply, LoadAlternatePath, AlternatePathResponse>;

// Names by index of the variant.
inline constexpr std::array<std::string_view, std::variant_size_v<Message>> kMessageNames{
    "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
inline std::string_view name_of(const Message& message) { return kMessageNames[message.index()]; }

struct Envelope {
  std::uint64_t transaction_id = 0;
  Message message;
};

Mad encode(const Envelope& envelope);
// nullopt: not a message of the communication manager. Reserved bits are ignored (12.6).
std::optional<Envelope> decode(std::span<const std::byte> bytes);

}  // namespace rnicsim::cm
