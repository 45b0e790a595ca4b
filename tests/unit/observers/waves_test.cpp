// SPDX-License-Identifier: Apache-2.0
// Waves of a trace, read with GTKWave's reader.
#include <gmock/gmock.h>
#include <gtkwave/fstapi.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/config/config_error.h"
#include "sim/trace/pair_progress.h"
#include "sim/trace/waves.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim::waves_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

struct Change {
  std::uint64_t at;
  std::string value;
};

// Changes of each signal, by its full name. Numbers are decimal.
class Waves {
 public:
  explicit Waves(const std::string& path) : context_(fstReaderOpen(path.c_str())) {
    if (context_ == nullptr) throw std::runtime_error("no waves in " + path);
    name_signals();
    fstReaderSetFacProcessMaskAll(context_);
    fstReaderIterBlocks2(context_, take_number, take_text, this, nullptr);
    timescale = fstReaderGetTimescale(context_);
    end = fstReaderGetEndTime(context_);
    fstReaderClose(context_);
  }

  std::map<std::string, std::vector<Change>> changes;
  int timescale;
  std::uint64_t end;

  std::vector<std::string> values(const std::string& signal) const {
    std::vector<std::string> values;
    for (const auto& change : changes.at(signal)) values.push_back(change.value);
    return values;
  }

 private:
  void name_signals() {
    std::vector<std::string> scopes;
    while (const auto* item = fstReaderIterateHier(context_)) {
      if (item->htyp == FST_HT_SCOPE) scopes.emplace_back(item->u.scope.name);
      if (item->htyp == FST_HT_UPSCOPE) scopes.pop_back();
      if (item->htyp != FST_HT_VAR) continue;
      std::string name;
      for (const auto& scope : scopes) name += scope + ".";
      names_[item->u.var.handle] = name + item->u.var.name;
      changes[name + item->u.var.name];
    }
  }

  static void take_number(void* self, std::uint64_t at, fstHandle signal, const unsigned char* value) {
    const auto* bits = reinterpret_cast<const char*>(value);
    static_cast<Waves*>(self)->take(at, signal, std::to_string(std::strtoull(bits, nullptr, 2)));
  }
  static void take_text(void* self, std::uint64_t at, fstHandle signal, const unsigned char* text, std::uint32_t size) {
    static_cast<Waves*>(self)->take(at, signal, {reinterpret_cast<const char*>(text), size});
  }
  void take(std::uint64_t at, fstHandle signal, std::string value) {
    auto& all = changes[names_.at(signal)];
    if (all.empty() || all.back().value != value) all.push_back({at, std::move(value)});
  }

  void* const context_;
  std::map<fstHandle, std::string> names_;
};

class WavesTest : public ::testing::Test {
 protected:
  WavesTest() {
    char folder[] = "/tmp/rnicsim-waves-XXXXXX";
    folder_ = ::mkdtemp(folder);
  }
  ~WavesTest() override { std::filesystem::remove_all(folder_); }

  std::string golden(const std::string& name) const { return RNICSIM_SOURCE_DIR "/traces/golden/" + name + ".trace"; }
  std::string bytes(const std::string& file) const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(WavesTest, ALostPacket) {
  const auto file = folder_ / "a.fst";
  export_waves(golden("sequence_error"), {}, file);
  const Waves waves(file);
  EXPECT_EQ(waves.timescale, -12);
  EXPECT_THAT(waves.values("h0.qp_0x40.state"), ElementsAre("?", "INIT", "RTR", "RTS", "RESET"));
  EXPECT_THAT(waves.values("h0.qp_0x40.outstanding_wqes"), ElementsAre("0", "1", "0"));
  // Four packets, then the NAK for the second; the three retransmitted packets use no new PSNs.
  EXPECT_THAT(waves.values("h0.qp_0x40.outstanding_psns"), ElementsAre("0", "1", "2", "3", "4", "3", "0"));
  EXPECT_THAT(waves.values("h0.qp_0x40.acknowledged_psn"), ElementsAre("0", "1193045", "1193046", "1193049", "0"));
  const auto& wqes = waves.changes.at("h0.qp_0x40.outstanding_wqes");
  EXPECT_EQ(wqes[1].at, 122'203'176u);
  EXPECT_EQ(wqes[2].at, 126'748'306u);
}

TEST_F(WavesTest, OfAFilter) {
  const auto file = folder_ / "a.fst";
  export_waves(golden("sequence_error"), {.hosts = {"h1"}}, file);
  const Waves waves(file);
  EXPECT_THAT(waves.changes, Contains(Key("h1.qp_0x40.state")));
  EXPECT_THAT(waves.changes, ::testing::Each(Key(::testing::StartsWith("h1."))));
}

TEST_F(WavesTest, AREADTakesThePsnsOfItsResponses) {
  export_waves(golden("rc_read"), {}, folder_ / "a.fst");
  EXPECT_EQ(Waves(folder_ / "a.fst").values("h0.qp_0x40.outstanding_psns").back(), "0");
}

TEST_F(WavesTest, EqualTracesGiveEqualFiles) {
  for (const auto* name : {"a.fst", "b.fst"}) export_waves(golden("rc_send"), {}, folder_ / name);
  EXPECT_EQ(bytes(folder_ / "a.fst"), bytes(folder_ / "b.fst"));
}

TEST_F(WavesTest, AFileStaysUnlessTheWavesAreWhole) {
  const auto file = folder_ / "a.fst";
  std::ofstream(file) << "kept";
  const auto cut = folder_ / "cut.trace";
  const auto whole = bytes(golden("rc_send"));
  std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() - 1);
  EXPECT_THROW(export_waves(cut, {}, file), TraceError);
  EXPECT_THAT([&] { export_waves("/dev/null", {}, file); }, ThrowsMessage<ConfigError>(HasSubstr("a regular file")));
  EXPECT_THAT([&] { export_waves(folder_ / "none", {}, file); }, ThrowsMessage<ConfigError>(HasSubstr("No such file")));
  EXPECT_THAT([&] { export_waves(golden("rc_send"), {}, folder_ / "no" / "such"); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be written")));
  EXPECT_EQ(bytes(file), "kept");
  EXPECT_THAT(std::vector(std::filesystem::directory_iterator(folder_), {}), SizeIs(2));
}

TEST(PairProgress, PsnsThatWrap) {
  constexpr std::uint32_t kLast = 0xffffff;
  constexpr std::uint64_t kWriteOnly = 0x0a, kAcknowledge = 0x11;
  PairProgress pair;
  for (const std::uint64_t psn : {std::uint64_t{kLast}, std::uint64_t{0}, std::uint64_t{1}})
    EXPECT_TRUE(pair.add(make_event({}, 0, EventKind::packet_sent, {0x40, kWriteOnly, psn})));
  EXPECT_EQ(pair.outstanding_psns(), 3u);
  EXPECT_FALSE(pair.add(make_event({}, 0, EventKind::packet_sent, {0x40, kWriteOnly, 0}))) << "sent again";
  EXPECT_TRUE(pair.add(make_event({}, 0, EventKind::packet_received, {0x40, kAcknowledge, 0})));
  EXPECT_EQ(pair.outstanding_psns(), 1u);
  EXPECT_EQ(pair.sent_psn(), 1u);
  EXPECT_EQ(pair.acknowledged_psn(), 0u);
}

}  // namespace
}  // namespace rnicsim::sim::waves_test
