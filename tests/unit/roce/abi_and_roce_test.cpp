// SPDX-License-Identifier: Apache-2.0
// model/abi and model/roce may not include each other, so each defines these values. The NIC's personality casts them
// from one to the other, and to the NIC's own, and passes masks unchanged: the values must be the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "model/abi/command.h"
#include "model/abi/context.h"
#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "model/nic/personality/values.h"
#include "model/roce/qp_state.h"
#include "model/roce/responders/responder.h"
#include "model/roce/types.h"

namespace rnicsim::abi_and_roce_test {
namespace {

struct Constant {
  const char* name;
  std::uint32_t in_abi;
  std::uint32_t in_roce;
};

constexpr bool all_equal(const auto& constants) {
  return std::ranges::all_of(constants, [](const Constant& c) { return c.in_abi == c.in_roce; });
}

constexpr auto kAttributes = std::to_array<Constant>({
    {"state", abi::qp_attr::kState, roce::attr::kState},
    {"current state", abi::qp_attr::kCurrentState, roce::attr::kCurrentState},
    {"SQD notify", abi::qp_attr::kSqdNotify, roce::attr::kSqdNotify},
    {"access flags", abi::qp_attr::kAccessFlags, roce::attr::kAccess},
    {"P_Key index", abi::qp_attr::kPkeyIndex, roce::attr::kPkeyIndex},
    {"port", abi::qp_attr::kPort, roce::attr::kPort},
    {"Q_Key", abi::qp_attr::kQkey, roce::attr::kQkey},
    {"path", abi::qp_attr::kPath, roce::attr::kPath},
    {"path MTU", abi::qp_attr::kPathMtu, roce::attr::kPathMtu},
    {"timeout", abi::qp_attr::kTimeout, roce::attr::kTimeout},
    {"retry count", abi::qp_attr::kRetryCount, roce::attr::kRetryCount},
    {"RNR retry", abi::qp_attr::kRnrRetry, roce::attr::kRnrRetry},
    {"receive PSN", abi::qp_attr::kReceivePsn, roce::attr::kReceivePsn},
    {"max rd atomic", abi::qp_attr::kMaxRdAtomic, roce::attr::kMaxRdAtomic},
    {"alternate path", abi::qp_attr::kAlternatePath, roce::attr::kAlternatePath},
    {"min RNR timer", abi::qp_attr::kMinRnrTimer, roce::attr::kMinRnrTimer},
    {"send PSN", abi::qp_attr::kSendPsn, roce::attr::kSendPsn},
    {"max dest rd atomic", abi::qp_attr::kMaxDestRdAtomic, roce::attr::kMaxDestRdAtomic},
    {"migration", abi::qp_attr::kPathMigrationState, roce::attr::kMigration},
    {"remote QPN", abi::qp_attr::kRemoteQpn, roce::attr::kRemoteQpn},
});
static_assert(all_equal(kAttributes));

constexpr auto kAccess = std::to_array<Constant>({
    {"remote write", abi::access::kRemoteWrite, roce::remote_access::kWrite},
    {"remote read", abi::access::kRemoteRead, roce::remote_access::kRead},
    {"remote atomic", abi::access::kRemoteAtomic, roce::remote_access::kAtomic},
});
static_assert(all_equal(kAccess));

// Names of enumerators, as the compiler spells them: "... values = {rnicsim::roce::QpState::reset, ...}; ...". Empty
// for a value without a name, which is spelled "(rnicsim::roce::QpState)9". New enumerators on either side are compared
// automatically.
constexpr std::size_t kValues = 256;
using Names = std::array<std::string_view, kValues>;

// One function for all values of an enum: one function per value would take the compiler half a minute.
template <auto... values>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}

template <class Enum, std::size_t... code>
constexpr Names split(std::index_sequence<code...>) {
  Names names;
  std::string_view text = spelled<static_cast<Enum>(code)...>();
  constexpr std::string_view kBefore = "values = {";
  text.remove_prefix(text.find(kBefore) + kBefore.size());
  const char* at = text.data();
  for (auto& name : names) {
    const char* begin = at;
    bool named = true;
    for (; *at != ',' && *at != '}'; ++at) {
      if (*at == ':') begin = at + 1;
      if (*at == ')') named = false;
    }
    if (named) name = std::string_view(begin, at);
    ++at;
  }
  return names;
}

template <class Enum>
constexpr Names kNamesOf = split<Enum>(std::make_index_sequence<kValues>());

template <class Enum>
constexpr const Names& names_of() {
  return kNamesOf<Enum>;
}

constexpr bool contains(const Names& all, const Names& some) {
  return std::ranges::equal(all, some, [](auto name, auto wanted) { return wanted.empty() || name == wanted; });
}
std::ptrdiff_t count(const Names& names) {
  return std::ranges::count_if(names, [](auto name) { return !name.empty(); });
}

static_assert(names_of<abi::QpState>() == names_of<roce::QpState>());
static_assert(names_of<abi::Transport>() == names_of<roce::Transport>());
// CQEs have syndromes that the transport never produces.
static_assert(contains(names_of<abi::CqeSyndrome>(), names_of<roce::Status>()));

// The NIC's enumerators, whose numbers recordings use. A layout has more: an invalid entry, events that no model
// raises.
static_assert(names_of<abi::SendOpcode>() == names_of<nic::SendOpcode>());
static_assert(contains(names_of<abi::CqeOpcode>(), names_of<nic::CqeOpcode>()));
static_assert(contains(names_of<abi::EventType>(), names_of<nic::EventType>()));
static_assert(names_of<abi::CommandStatus>() == names_of<nic::CommandStatus>());
static_assert(names_of<abi::DeviceStatus>() == names_of<nic::DeviceStatus>());
static_assert(names_of<abi::IcmTable>() == names_of<nic::IcmTable>());

template <std::size_t Count>
void expect_bits(const std::array<Constant, Count>& constants) {
  std::uint32_t seen = 0;
  for (const auto& [name, in_abi, in_roce] : constants) {
    EXPECT_EQ(in_abi, in_roce) << name;
    EXPECT_EQ(seen & in_abi, 0u) << name << " has another's bit";
    seen |= in_abi;
  }
}

TEST(AbiAndRoce, AttributesOfAQueuePair) { expect_bits(kAttributes); }

TEST(AbiAndRoce, AccessFlags) { expect_bits(kAccess); }

TEST(AbiAndRoce, QueuePairStates) {
  EXPECT_EQ(names_of<abi::QpState>(), names_of<roce::QpState>());
  EXPECT_EQ(count(names_of<roce::QpState>()), 7);
}

TEST(AbiAndRoce, Transports) {
  EXPECT_EQ(names_of<abi::Transport>(), names_of<roce::Transport>());
  EXPECT_EQ(names_of<roce::Transport>()[2], "rc");
}

TEST(AbiAndRoce, CompletionStatuses) {
  const auto statuses = names_of<roce::Status>();
  const auto syndromes = names_of<abi::CqeSyndrome>();
  for (std::size_t code = 0; code < statuses.size(); ++code) {
    if (!statuses[code].empty()) {
      EXPECT_EQ(syndromes[code], statuses[code]) << code;
    }
  }
  EXPECT_GE(count(statuses), 12);
}

}  // namespace
}  // namespace rnicsim::abi_and_roce_test
