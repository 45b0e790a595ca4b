// SPDX-License-Identifier: Apache-2.0
// A fault rule means the same in a file and on the command line; a mistake gives one clear line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "model/cm/messages.h"
#include "model/nic/packets/packet.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/describe.h"
#include "sim/frame_facts.h"

namespace rnicsim::sim {
namespace {

using namespace rnicsim::literals;
using fabric::FaultAction;
using fabric::NumberRange;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class ConfigFaults : public testing::Test {
 protected:
  ConfigFaults() : folder_(fs::temp_directory_path() / ("rnicsim-faults-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ConfigFaults() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  // Fault rules of a topology of h0 and h1.
  std::vector<FaultSetting> of_file(const std::string& rules, const std::vector<std::string>& options = {}) {
    return load_config("cx5-100g", file("test.toml", "base = \"back-to-back\"\n" + rules), {}, options).faults;
  }
  fabric::FaultRule of_table(const std::string& fields) { return of_file("[[fault]]\n" + fields).at(0).rule; }
  static FaultSetting of_option(const std::string& text) {
    return load_config("cx5-100g", "back-to-back", {}, std::vector{text}).faults.at(0);
  }

  template <class Action>
  static std::string error_of(Action&& action) {
    try {
      action();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string table_error(const std::string& fields) {
    return error_of([&] { of_table(fields); });
  }
  static std::string option_error(const std::string& text) {
    return error_of([&] { of_option(text); });
  }

  fs::path folder_;
};

TEST_F(ConfigFaults, EveryKey) {
  const auto rule = of_table(
      "action = \"delay\"\nprobability = 0.25\nhost = \"h1\"\nqp = 0x1c\nopcode = \"SEND_FIRST\"\npsn = \"100-200\"\n"
      "nth = [1, \"3-5\", 9]\ncount = 2\nby = \"2 us\"\n");
  EXPECT_EQ(rule.action, FaultAction::delay);
  EXPECT_EQ(rule.probability, 0.25);
  EXPECT_EQ(rule.host, 1u);
  EXPECT_EQ(rule.qp, 0x1cu);
  EXPECT_EQ(*rule.opcodes, std::bitset<256>().set(0));
  EXPECT_THAT(rule.psn, ElementsAre(NumberRange{100, 200}));
  EXPECT_THAT(rule.nth, ElementsAre(NumberRange{1, 1}, NumberRange{3, 5}, NumberRange{9, 9}));
  EXPECT_EQ(rule.count, 2u);
  EXPECT_EQ(rule.delay, 2_us);
}

TEST_F(ConfigFaults, OptionSaysTheSame) {
  const auto rule =
      of_option("delay=0.25,host=h1,qp=0x1c,opcode=SEND_FIRST,psn=100-200,nth=1+3-5+9,count=2,by=2us").rule;
  EXPECT_EQ(rule.action, FaultAction::delay);
  EXPECT_EQ(rule.probability, 0.25);
  EXPECT_EQ(rule.host, 1u);
  EXPECT_EQ(rule.qp, 0x1cu);
  EXPECT_EQ(*rule.opcodes, std::bitset<256>().set(0));
  EXPECT_THAT(rule.psn, ElementsAre(NumberRange{100, 200}));
  EXPECT_THAT(rule.nth, ElementsAre(NumberRange{1, 1}, NumberRange{3, 5}, NumberRange{9, 9}));
  EXPECT_EQ(rule.count, 2u);
  EXPECT_EQ(rule.delay, 2_us);
}

TEST_F(ConfigFaults, EveryAction) {
  EXPECT_EQ(of_option("drop").rule.action, FaultAction::drop);
  EXPECT_EQ(of_option("drop").rule.probability, 1);
  EXPECT_EQ(of_option("corrupt=1e-3").rule.probability, 1e-3);
  EXPECT_EQ(of_option("duplicate").rule.delay, Duration{});
  EXPECT_EQ(of_option("duplicate,by=1ms").rule.delay, 1_ms);
  EXPECT_EQ(of_option("reorder").rule.behind, 1u);
  const auto reorder = of_option("reorder=0.5,by=3,limit=20us").rule;
  EXPECT_EQ(reorder.action, FaultAction::reorder);
  EXPECT_EQ(reorder.behind, 3u);
  EXPECT_EQ(reorder.limit, 20_us);
}

TEST_F(ConfigFaults, OpcodesByFamilyAndInLists) {
  EXPECT_EQ(of_option("drop,opcode=SEND").rule.opcodes->count(), 8u);
  EXPECT_EQ(of_option("drop,opcode=WRITE").rule.opcodes->count(), 6u);
  EXPECT_EQ(of_option("drop,opcode=SEND_ONLY").rule.opcodes->count(), 1u);
  EXPECT_EQ(of_option("drop,opcode=READ_RESPONSE").rule.opcodes->count(), 4u);
  EXPECT_EQ(of_option("drop,opcode=ATOMIC").rule.opcodes->count(), 2u);
  // These opcodes belong to no family.
  EXPECT_EQ(*of_option("drop,opcode=CNP").rule.opcodes, std::bitset<256>().set(0x81));
  EXPECT_EQ(*of_option("drop,opcode=read_acknowledge").rule.opcodes, std::bitset<256>().set(0xc1));
  EXPECT_EQ(of_option("drop,opcode=read_request+acknowledge").rule.opcodes->count(), 2u);
  EXPECT_EQ(of_table("action = \"drop\"\nopcode = [\"SEND\", \"UC_SEND\"]\n").opcodes->count(), 14u);
}

TEST_F(ConfigFaults, MessagesOfConnectionManagement) {
  EXPECT_EQ(*of_option("drop,cm=REQ").rule.management, std::bitset<16>().set(0));
  EXPECT_EQ(*of_option("drop,cm=sidr_rep+Rtu").rule.management, std::bitset<16>().set(8).set(4));
  EXPECT_EQ(*of_table("action = \"drop\"\ncm = [\"DREQ\", \"DREP\"]\n").management, std::bitset<16>().set(5).set(6));
  EXPECT_EQ(fault_text(of_option("drop,nth=2,cm=REP")), "drop,cm=REP,nth=2");
}

TEST_F(ConfigFaults, OpenRanges) {
  EXPECT_THAT(of_option("drop,nth=10-").rule.nth, ElementsAre(NumberRange{10, ~0ull}));
  EXPECT_THAT(of_option("drop,psn=0xfffff0-0x10").rule.psn, ElementsAre(NumberRange{0xfffff0, 0x10}));
}

TEST_F(ConfigFaults, Outages) {
  const auto down = of_option("link_down,host=h1,at=10ms,for=2us");
  ASSERT_TRUE(down.outage);
  EXPECT_EQ(down.outage->kind, Outage::Kind::link_down);
  EXPECT_EQ(down.outage->interface, 1u);
  EXPECT_EQ(down.outage->at, 10_ms);
  EXPECT_EQ(down.outage->lasts, 2_us);
  EXPECT_EQ(fault_text(down), "link_down,host=h1,at=10ms,for=2us");
  // An outage's rule must not match frames of any host.
  EXPECT_NE(down.rule.host, 0u);
  EXPECT_NE(down.rule.host, 1u);
  EXPECT_FALSE(of_option("link_down,host=h0,at=0us").outage->lasts);
  EXPECT_EQ(of_file("[[fault]]\naction = \"fatal\"\nhost = \"h0\"\nat = \"1 s\"\n").at(0).outage->kind,
            Outage::Kind::fatal);
  EXPECT_FALSE(of_option("drop").outage);
  for (const char* text : {"link_down", "link_down,host=h0", "fatal,at=1ms"})
    EXPECT_THAT(option_error(text), HasSubstr("needs 'host' and 'at'")) << text;
  EXPECT_THAT(option_error("fatal,host=h0,at=1ms,for=1ms"), HasSubstr("for: unknown key of fatal"));
  EXPECT_THAT(option_error("link_down=0.5,host=h0,at=1ms"), HasSubstr("probability: unknown key of link_down"));
  EXPECT_THAT(option_error("link_down,host=h0,at=1"), HasSubstr("'1' is not a time with its unit"));
  EXPECT_THAT(option_error("link_down,host=h9,at=1ms"), HasSubstr("no host is called 'h9'"));
  EXPECT_THAT(option_error("drop,at=1ms"), HasSubstr("at: unknown key of drop"));
  EXPECT_THAT(option_error("link_dwn,host=h0,at=1ms"), HasSubstr("mean link_down?"));
}

TEST_F(ConfigFaults, RulesAddUp) {
  file("lower.toml", "base = \"back-to-back\"\n[[fault]]\naction = \"drop\"\n");
  const auto path = file("upper.toml", "base = \"lower\"\n[[fault]]\naction = \"corrupt\"\n");
  const auto nic = file("nic.toml", "base = \"cx5-100g\"\n[[fault]]\naction = \"duplicate\"\nhost = \"h1\"\n");
  const auto config = load_config(nic, path, {}, std::vector<std::string>{"reorder"});
  std::vector<FaultAction> actions;
  for (const auto& fault : config.faults) actions.push_back(fault.rule.action);
  EXPECT_THAT(actions,
              ElementsAre(FaultAction::duplicate, FaultAction::drop, FaultAction::corrupt, FaultAction::reorder));
}

TEST_F(ConfigFaults, TextIsAnOptionAgain) {
  const std::string text = "delay=1e-3,host=h1,opcode=SEND+WRITE_FIRST,psn=1-5,nth=3+4,count=7,by=2us";
  const auto fault = of_option(text);
  EXPECT_EQ(fault_text(fault), text);
  EXPECT_EQ(fault_text(of_file("[[fault]]\nnth = [3, 4]\naction = \"delay\"\nby = \"2 us\"\n").at(0)),
            "delay,nth=3+4,by=2us");
}

TEST_F(ConfigFaults, ResolvedConfigurationGivesTheSameRules) {
  const std::vector<std::string> options{"drop=1e-3,host=h0,opcode=ACKNOWLEDGE,nth=3+5-", "reorder=.5,by=2,limit=5us"};
  auto config = load_config("cx5-100g", "back-to-back", {}, options);
  const auto again = load_config("cx5-100g", file("resolved.toml", to_toml(config)), {});
  ASSERT_EQ(again.faults.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(fault_text(again.faults[i]), options[i]);
}

TEST_F(ConfigFaults, DescribeListsThem) {
  RunOptions options;
  options.faults = {"drop=1e-3", "delay,by=2us"};
  EXPECT_THAT(describe(DescribeTopic::topology, options),
              AllOf(HasSubstr("fault rule 1: drop=1e-3"), HasSubstr("fault rule 2: delay,by=2us")));
  EXPECT_THAT(describe(DescribeTopic::counters, options), HasSubstr("link.dropped"));
}

TEST_F(ConfigFaults, MistakesInAFile) {
  EXPECT_THAT(
      error_of([&] { of_file("[[fault]]\naction = \"drop\"\n[[fault]]\naction = \"drop\"\nprobabilty = 0.1\n"); }),
      AllOf(HasSubstr("test.toml:6: fault rule 2: "), HasSubstr("'probabilty'"), HasSubstr("probability?")));
  EXPECT_THAT(table_error("host = \"h0\"\n"), AllOf(HasSubstr("fault rule 1"), HasSubstr("needs an action")));
  EXPECT_THAT(table_error("action = \"dorp\"\n"), AllOf(HasSubstr("test.toml:3"), HasSubstr("mean drop?")));
  EXPECT_THAT(table_error("action = 3\n"), HasSubstr("'3' is none of drop, corrupt"));
  EXPECT_THAT(table_error("action = \"drop\"\nprobability = 1.5\n"),
              HasSubstr("'1.5' is out of range: at least 0, at most 1"));
  EXPECT_THAT(table_error("action = \"drop\"\nprobability = true\n"), HasSubstr("not a number"));
  EXPECT_THAT(table_error("action = \"drop\"\nprobability = nan\n"), HasSubstr("probability"));
  EXPECT_THAT(table_error("action = \"delay\"\n"), HasSubstr("delay needs 'by'"));
  EXPECT_THAT(table_error("action = \"delay\"\nby = 2\n"), HasSubstr("by: '2' is not a time with its unit"));
  EXPECT_THAT(table_error("action = \"reorder\"\nby = \"2 us\"\n"), HasSubstr("by: '2 us' is not a number"));
  EXPECT_THAT(table_error("action = \"reorder\"\nlimit = 3\n"), HasSubstr("limit: '3' is not a time"));
  EXPECT_THAT(table_error("action = \"drop\"\nby = \"2 us\"\n"), HasSubstr("by: unknown key of drop"));
  EXPECT_THAT(table_error("action = \"drop\"\nhost = \"h7\"\n"), HasSubstr("no host is called 'h7'"));
  EXPECT_THAT(table_error("action = \"drop\"\nopcode = \"ACKNOWLEGE\"\n"), HasSubstr("mean ACKNOWLEDGE?"));
  EXPECT_THAT(table_error("action = \"drop\"\nnth = 0\n"), HasSubstr("nth: '0' is out of range: at least 1"));
  EXPECT_THAT(table_error("action = \"drop\"\nnth = 1.5\n"), HasSubstr("'1.5' is neither a whole number"));
  EXPECT_THAT(table_error("action = \"drop\"\nnth = [1, [2]]\n"), HasSubstr("nth"));
  EXPECT_THAT(table_error("action = \"drop\"\nnth = []\n"), HasSubstr("nth"));
  EXPECT_THAT(table_error("action = \"drop\"\nnth = \"5-3\"\n"), HasSubstr("the end of the range is before its begin"));
  EXPECT_THAT(table_error("action = \"drop\"\nqp = 0x1000000\n"), HasSubstr("at most 16777215"));
  EXPECT_THAT(table_error("action = \"drop\"\nqp = \"1-2\"\n"), HasSubstr("one number"));
  EXPECT_THAT(table_error("action = \"drop\"\ncm = \"DEEP\"\n"), HasSubstr("mean DREP?"));
  EXPECT_THAT(table_error("action = \"drop\"\npsn = \"5-\"\n"), HasSubstr("psn"));
  EXPECT_THAT(table_error("action = \"drop\"\ncount = 0\n"), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([&] { of_file("[fault]\naction = \"drop\"\n"); }), HasSubstr("[[fault]]"));
  EXPECT_THAT(error_of([&] { of_file("fault = 3\n"); }), HasSubstr("[[fault]]"));
}

TEST_F(ConfigFaults, MistakesInAnOption) {
  EXPECT_THAT(option_error("drop=1.5"),
              HasSubstr("--fault drop=1.5: fault rule 1: probability: '1.5' is out of range"));
  EXPECT_THAT(option_error("delay=2us"), AllOf(HasSubstr("probability"), HasSubstr("such as by=2us")));
  EXPECT_THAT(option_error("delay=1e-2"), HasSubstr("delay needs 'by'"));
  EXPECT_THAT(option_error("delay,by=2"), HasSubstr("'2' is not a time with its unit"));
  EXPECT_THAT(option_error("drop,hots=h0"), HasSubstr("did you mean host?"));
  EXPECT_THAT(option_error("drop,host=h0,host=h1"), HasSubstr("'host=h1': the key is given twice"));
  EXPECT_THAT(option_error("drop,nth=3x"), HasSubstr("'3x' is neither a whole number nor a range"));
  for (const char* text :
       {"", ",", "=", "drop,", "drop=", "drop,nth", "drop,=3", "drop,nth=", "drop,nth=1+", "drop,nth=-3",
        "drop,nth=99999999999999999999", "drop,action=drop", "drop,probability=", "drop,qp=0x"})
    EXPECT_THAT(option_error(text), HasSubstr("--fault ")) << text;
  EXPECT_LT(option_error("drop,nth=" + std::string(1 << 20, '7')).size(), 600u);
}

// A frame as the NIC makes it.
Frame packet(std::uint32_t qp, std::uint32_t psn, bool ipv6) {
  roce::FrameAddresses addresses;
  if (ipv6) {
    addresses.source.fill(0xfd);
    addresses.destination.fill(0xfd);
  } else {
    addresses.source = addresses.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  }
  roce::Headers headers;
  headers.bth = {.opcode = roce::Opcode::write_only, .destination = {qp}, .psn = roce::Psn(psn)};
  headers.reth = roce::Reth{};
  std::array<std::byte, roce::kMaxFrameHeader> bytes;
  const auto size = roce::frame_header(addresses, headers, 64, bytes);
  const std::vector payload(64, std::byte{7});
  return Frame::of(Payload::copy_of(std::span(bytes).first(size)), Payload::copy_of(payload),
                   std::array<std::byte, 4>{});
}

TEST(FrameFacts, OfAPacket) {
  for (const bool ipv6 : {false, true}) {
    const auto facts = frame_facts(packet(0x123456, 0xfedcba, ipv6));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->opcode, 0x0a);
    EXPECT_EQ(facts->qp, 0x123456u);
    EXPECT_EQ(facts->psn, 0xfedcbau);
    EXPECT_EQ(facts->checked_from, 14u + (ipv6 ? 40 : 20) + 8 + 5);
  }
}

// Facts of the packet object equal facts of the frame's bytes.
TEST(FrameFacts, OfAPacketThatIsNotWritten) {
  const cm::Mad mad = cm::encode({1, cm::ReadyToUse{}});
  for (const bool ipv6 : {false, true})
    for (const auto opcode : {roce::Opcode::write_only, roce::Opcode::acknowledge, roce::Opcode::ud_send_only}) {
      const auto packet = nic::Packet::make();
      packet->addresses = {};
      if (!ipv6)
        packet->addresses.source = packet->addresses.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10};
      packet->headers = {};
      packet->headers.bth = {.opcode = opcode, .destination = {1}, .psn = roce::Psn(0x123456)};
      packet->put(Payload::copy_of(mad));
      packet->seal(1, false);
      const Frame frame(packet);
      const auto facts = frame_facts(frame);
      EXPECT_FALSE(frame.written());
      const auto parsed =
          frame_facts(Frame::of(Payload::copy_of(frame.header_span()), frame.payload(), frame.trailer_span()));
      ASSERT_TRUE(facts && parsed);
      EXPECT_EQ(std::tie(facts->opcode, facts->qp, facts->psn, facts->management, facts->checked_from),
                std::tie(parsed->opcode, parsed->qp, parsed->psn, parsed->management, parsed->checked_from));
      EXPECT_EQ(facts->management.has_value(), opcode == roce::Opcode::ud_send_only);
    }
}

TEST(FrameFacts, TheIcrcCoversWhatIsSaidToBeChecked) {
  for (const bool ipv6 : {false, true}) {
    const Frame frame = packet(1, 2, ipv6);
    const auto icrc = [](const Frame& of) {
      return roce::icrc(of.header_span().subspan(roce::kEthernetBytes), of.payload().bytes(), {});
    };
    const auto bits = (frame.header_bytes() + frame.payload().size()) * 8;
    for (auto bit = frame_facts(frame)->checked_from * 8; bit < bits; ++bit) {
      Frame damaged = frame;
      fabric::flip_bit(damaged, bit);
      ASSERT_NE(icrc(damaged), icrc(frame)) << bit;
    }
  }
}

TEST(FrameFacts, OfAManagementDatagram) {
  const cm::Mad mad = cm::encode({1, cm::ReadyToUse{}});
  const auto datagram = [&](roce::Opcode opcode, std::uint32_t qp, std::span<const std::byte> payload) {
    roce::FrameAddresses addresses;
    addresses.source = addresses.destination = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    roce::Headers headers;
    headers.bth = {.opcode = opcode, .destination = {qp}, .psn = roce::Psn(0)};
    if (opcode == roce::Opcode::ud_send_only) headers.deth = roce::Deth{};
    std::array<std::byte, roce::kMaxFrameHeader> bytes;
    const auto size = roce::frame_header(addresses, headers, std::uint32_t(payload.size()), bytes);
    return frame_facts(Frame::of(Payload::copy_of(std::span(bytes).first(size)), Payload::copy_of(payload),
                                 std::array<std::byte, 4>{}));
  };
  EXPECT_EQ(datagram(roce::Opcode::ud_send_only, 1, mad)->management, 4);
  EXPECT_EQ(datagram(roce::Opcode::ud_send_only, 2, mad)->management, std::nullopt);
  EXPECT_EQ(datagram(roce::Opcode::send_only, 1, mad)->management, std::nullopt);
  EXPECT_EQ(datagram(roce::Opcode::ud_send_only, 1, std::span(mad).first(252))->management, std::nullopt);
}

TEST(FrameFacts, OfAnotherProtocol) {
  auto header = Payload::copy_of(packet(1, 2, false).header_span());
  header.writable()[12] = std::byte{0x86};
  EXPECT_FALSE(frame_facts(Frame::of(std::move(header))));
  EXPECT_FALSE(frame_facts(Frame::of({})));
}

}  // namespace
}  // namespace rnicsim::sim
