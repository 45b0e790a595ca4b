// SPDX-License-Identifier: Apache-2.0
#include "model/cm/messages.h"

#include <algorithm>
#include <type_traits>

namespace rnicsim::cm {
namespace {

// Common header of a management datagram (13.4.2).
namespace header {
constexpr std::size_t kBytes = 24;
constexpr std::uint8_t kBaseVersion = 1;
constexpr std::uint8_t kClass = 0x07;  // communication management
constexpr std::uint8_t kClassVersion = 2;
constexpr std::uint8_t kSend = 0x03;
constexpr std::size_t kTransactionId = 8;
constexpr std::size_t kAttributeId = 16;
}  // namespace header

template <class T>
struct Word {
  using Type = T;
};
template <class T>
requires std::is_enum_v<T>
struct Word<T> {
  using Type = std::underlying_type_t<T>;
};

// A field begins at bit `bit` of byte `byte`, counted from the most significant bit as in the tables of chapter 12.
class Writer {
 public:
  explicit Writer(std::byte* data) : data_(data) {}
  template <class T>
  void operator()(const T& field, unsigned byte, unsigned bit = 0, unsigned width = 8 * sizeof(T)) const {
    const auto value = std::uint64_t(typename Word<T>::Type(field));
    for (unsigned i = 0; i < width; ++i) {
      const unsigned at = bit + i;
      if ((value >> (width - 1 - i) & 1) != 0) data_[byte + at / 8] |= std::byte(0x80 >> at % 8);
    }
  }
  template <std::size_t Bytes>
  void operator()(const std::array<std::uint8_t, Bytes>& field, unsigned byte) const {
    std::ranges::transform(field, data_ + byte, [](std::uint8_t value) { return std::byte(value); });
  }

 private:
  std::byte* data_;
};

class Reader {
 public:
  explicit Reader(const std::byte* data) : data_(data) {}
  template <class T>
  void operator()(T& field, unsigned byte, unsigned bit = 0, unsigned width = 8 * sizeof(T)) const {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
      const unsigned at = bit + i;
      value = value << 1 | std::uint64_t(data_[byte + at / 8] >> (7 - at % 8) & std::byte{1});
    }
    field = T(typename Word<T>::Type(value));
  }
  template <std::size_t Bytes>
  void operator()(std::array<std::uint8_t, Bytes>& field, unsigned byte) const {
    std::transform(data_ + byte, data_ + byte + Bytes, field.begin(),
                   [](std::byte value) { return std::uint8_t(value); });
  }

 private:
  const std::byte* data_;
};

// Positions of the fields in the 232 bytes after the header, used by both Writer and Reader.
template <class Codec, class Path>
void path_fields(const Codec& field, Path& path, unsigned at) {
  field(path.local_lid, at);
  field(path.remote_lid, at + 2);
  field(path.local_gid, at + 4);
  field(path.remote_gid, at + 20);
  field(path.flow_label, at + 36, 0, 20);
  field(path.packet_rate, at + 36, 26, 6);
  field(path.traffic_class, at + 40);
  field(path.hop_limit, at + 41);
  field(path.service_level, at + 42, 0, 4);
  field(path.subnet_local, at + 42, 4, 1);
  field(path.local_ack_timeout, at + 43, 0, 5);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ConnectRequest>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.service_id, 8);
  field(m.local_ca_guid, 16);
  field(m.local_qkey, 28);
  field(m.local_qpn, 32, 0, 24);
  field(m.responder_resources, 35);
  field(m.local_eecn, 36, 0, 24);
  field(m.initiator_depth, 39);
  field(m.remote_eecn, 40, 0, 24);
  field(m.remote_response_timeout, 43, 0, 5);
  field(m.transport, 43, 5, 2);
  field(m.end_to_end_flow_control, 43, 7, 1);
  field(m.starting_psn, 44, 0, 24);
  field(m.local_response_timeout, 47, 0, 5);
  field(m.retry_count, 47, 5, 3);
  field(m.pkey, 48);
  field(m.path_mtu, 50, 0, 4);
  field(m.rdc_exists, 50, 4, 1);
  field(m.rnr_retry_count, 50, 5, 3);
  field(m.max_cm_retries, 51, 0, 4);
  field(m.srq, 51, 4, 1);
  field(m.extended_transport, 51, 5, 3);
  path_fields(field, m.primary, 52);
  path_fields(field, m.alternate, 96);
  field(m.private_data, 140);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, MessageReceiptAck>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.subject, 8, 0, 2);
  field(m.service_timeout, 9, 0, 5);
  field(m.private_data, 10);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ConnectReject>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.subject, 8, 0, 2);
  field(m.information_length, 9, 0, 7);
  field(m.reason, 10);
  field(m.information, 12);
  field(m.private_data, 84);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ConnectReply>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.local_qkey, 8);
  field(m.local_qpn, 12, 0, 24);
  field(m.local_eecn, 16, 0, 24);
  field(m.starting_psn, 20, 0, 24);
  field(m.responder_resources, 24);
  field(m.initiator_depth, 25);
  field(m.target_ack_delay, 26, 0, 5);
  field(m.failover_accepted, 26, 5, 2);
  field(m.end_to_end_flow_control, 26, 7, 1);
  field(m.rnr_retry_count, 27, 0, 3);
  field(m.srq, 27, 3, 1);
  field(m.local_ca_guid, 28);
  field(m.private_data, 36);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ReadyToUse> || std::is_same_v<std::remove_const_t<M>, DisconnectReply>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.private_data, 8);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, DisconnectRequest>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.remote_qpn, 8, 0, 24);
  field(m.private_data, 12);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ServiceIdRequest>
void fields(const Codec& field, M& m) {
  field(m.request_id, 0);
  field(m.pkey, 4);
  field(m.service_id, 8);
  field(m.private_data, 16);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, ServiceIdReply>
void fields(const Codec& field, M& m) {
  field(m.request_id, 0);
  field(m.status, 4);
  field(m.information_length, 5);
  field(m.qpn, 8, 0, 24);
  field(m.service_id, 12);
  field(m.qkey, 20);
  field(m.information, 24);
  field(m.private_data, 96);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, LoadAlternatePath>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
}

template <class Codec, class M>
requires std::is_same_v<std::remove_const_t<M>, AlternatePathResponse>
void fields(const Codec& field, M& m) {
  field(m.local_id, 0);
  field(m.remote_id, 4);
  field(m.information_length, 8);
  field(m.status, 9);
}

template <std::size_t Index = 0>
std::optional<Message> decode_attribute(std::uint16_t attribute, const Reader& reader) {
  if constexpr (Index < std::variant_size_v<Message>) {
    using Candidate = std::variant_alternative_t<Index, Message>;
    if (attribute != Candidate::kAttribute) return decode_attribute<Index + 1>(attribute, reader);
    Candidate message;
    fields(reader, message);
    return message;
  } else {
    return std::nullopt;
  }
}

}  // namespace

Mad encode(const Envelope& envelope) {
  Mad mad{};
  mad[0] = std::byte{header::kBaseVersion};
  mad[1] = std::byte{header::kClass};
  mad[2] = std::byte{header::kClassVersion};
  mad[3] = std::byte{header::kSend};
  const Writer head(mad.data());
  head(envelope.transaction_id, header::kTransactionId);
  std::visit(
      [&](const auto& message) {
        head(message.kAttribute, header::kAttributeId);
        fields(Writer(mad.data() + header::kBytes), message);
      },
      envelope.message);
  return mad;
}

std::optional<Envelope> decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kMadBytes || bytes[0] != std::byte{header::kBaseVersion} ||
      bytes[1] != std::byte{header::kClass} || bytes[2] != std::byte{header::kClassVersion} ||
      bytes[3] != std::byte{header::kSend})
    return std::nullopt;
  const Reader head(bytes.data());
  Envelope envelope;
  std::uint16_t attribute = 0;
  head(envelope.transaction_id, header::kTransactionId);
  head(attribute, header::kAttributeId);
  auto message = decode_attribute(attribute, Reader(bytes.data() + header::kBytes));
  if (!message) return std::nullopt;
  envelope.message = std::move(*message);
  return envelope;
}

}  // namespace rnicsim::cm
