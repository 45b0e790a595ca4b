// SPDX-License-Identifier: Apache-2.0
// Recorded traces: writing and reading, damaged files, and the first difference of two traces.
#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include "sim/config/config_error.h"
#include "sim/trace_file/trace_diff.h"
#include "sim/trace_file/trace_reader.h"
#include "sim/trace_file/trace_writer.h"

namespace rnicsim::sim::recording_test {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TraceHeader some_header() {
  return {.program = "1.2.3",
          .title = "a test",
          .seed = 7,
          .time = "sim",
          .hosts = {"h0", "h1"},
          .commands = {"h0: ib_write_bw"},
          .configuration = {{"nic.tx.latency", "170 ns"}, {"link.latency", "15 ns"}}};
}

std::string file_of(const std::vector<TraceEvent>& events, const TraceHeader& header = some_header(),
                    Duration end = Duration{INT64_MAX}) {
  std::ostringstream out;
  TraceWriter writer(out, header);
  for (const auto& event : events) writer.write(event);
  writer.finish(end);
  return out.str();
}

std::vector<TraceEvent> read(const std::string& file) {
  std::istringstream in(file);
  TraceReader reader(in, "file");
  std::vector<TraceEvent> events;
  while (const auto event = reader.next()) events.push_back(*event);
  return events;
}

// JSON of a header, with the bytes before it.
std::string header_of(const std::string& json) {
  std::string file = "rnicsim trace\n\x01";
  for (auto length = json.size();; length >>= 7) {
    file += char(length < 128 ? length : (length & 127) | 128);
    if (length < 128) break;
  }
  return file + json;
}

TraceDifference compare(const std::string& a, const std::string& b) {
  std::istringstream first(a), second(b);
  TraceReader left(first, "a"), right(second, "b");
  return compare_traces(left, right);
}

// Packets of two QPs of each host, one per microsecond.
std::vector<TraceEvent> some_events(std::uint32_t count = 100) {
  std::vector<TraceEvent> events;
  for (std::uint32_t i = 0; i < count; ++i)
    events.push_back(make_event({std::int64_t{i} * 1'000'000}, i % 2, EventKind::packet_sent,
                                {0x40 + i / 2 % 2, 0x0a, i, 0x80, 1, 0, 64, 0x1234}));
  return events;
}

std::string compressed(const std::string& content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1));
  return out;
}

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TraceFormat, WhatIsWrittenIsRead) {
  EXPECT_TRUE(rc::check([] {
    std::vector<TraceEvent> events;
    Duration at;
    const auto count = *rc::gen::inRange(0, 6000);
    rc::Random random(*rc::gen::arbitrary<std::uint64_t>());
    for (int i = 0; i < count; ++i) {
      const auto kind = EventKind(1 + random.next() % (std::size_t(EventKind::count) - 1));
      at += {std::int64_t(random.next() >> (24 + random.next() % 40))};
      TraceEvent event = make_event(at, std::uint32_t(random.next() % 2), kind, {});
      for (std::size_t field = 0; field < info(kind).fields.size(); ++field)
        event.fields[field] = random.next() % 3 == 0 ? 0 : random.next() >> random.next() % 64;
      events.push_back(event);
    }
    RC_ASSERT(read(file_of(events)) == events);
  }));
}

TEST(TraceFormat, TheHeaderIsKept) {
  std::istringstream in(file_of({}));
  TraceReader reader(in, "file");
  const auto expected = some_header();
  EXPECT_EQ(reader.header().program, expected.program);
  EXPECT_EQ(reader.header().title, expected.title);
  EXPECT_EQ(reader.header().seed, expected.seed);
  EXPECT_EQ(reader.header().time, expected.time);
  EXPECT_EQ(reader.header().hosts, expected.hosts);
  EXPECT_EQ(reader.header().commands, expected.commands);
  EXPECT_EQ(reader.header().configuration, expected.configuration);
}

TEST(TraceFormat, EveryKindHasItsRow) {
  for (std::size_t kind = 0; kind < std::size_t(EventKind::count); ++kind) {
    EXPECT_EQ(info(EventKind(kind)).kind, EventKind(kind));
    EXPECT_LE(info(EventKind(kind)).fields.size(), TraceEvent::kMostFields);
  }
}

TEST(TraceFormat, TheManualHasEveryKindAndField) {
  std::ifstream file(RNICSIM_SOURCE_DIR "/traces/README.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t kind = 0; kind < std::size_t(EventKind::count); ++kind) {
    const auto& row = info(EventKind(kind));
    std::string expected = "| " + std::to_string(kind) + " | " + row.name + " | ";
    for (const auto& field : row.fields) expected += std::string(&field == row.fields.data() ? "" : ", ") + field.name;
    EXPECT_THAT(manual, HasSubstr("\n" + expected + " |"));
  }
}

TEST(TraceFormat, AnEventAsText) {
  const std::vector<std::string> hosts{"h0"};
  EXPECT_EQ(to_text(make_event({1'234'567}, 0, EventKind::cqe, {0x40, 1, 5, 0xd, 7, 10, 64}), hosts),
            "1.234567 us  h0  cqe  qp 0x40  cq 0x1  index 5  opcode requester_error  wqe_counter 7  "
            "syndrome remote_access_error  byte_count 64");
}

// Names must equal the enumerators of model/abi; opcodes of WQEs are in capitals.
void expect_named(const char* header, const std::string& enumeration, FieldStyle style, bool in_capitals = false) {
  std::ifstream file(std::string(RNICSIM_SOURCE_DIR "/model/abi/") + header);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto begin = text.find("enum class " + enumeration + " ");
  ASSERT_NE(begin, text.npos) << enumeration;
  const std::string list = text.substr(begin, text.find("};", begin) - begin);
  const std::regex enumerator("\n  (\\w+) = (\\w+),");
  int count = 0;
  for (std::sregex_iterator at(list.begin(), list.end(), enumerator), end; at != end; ++at, ++count) {
    std::string name = (*at)[1];
    if (in_capitals) std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
    EXPECT_EQ(to_text({"", style}, std::stoull((*at)[2], nullptr, 0)), name) << enumeration;
  }
  EXPECT_GT(count, 5) << enumeration;
}

// The text of an event makes durations without floating point.
TEST(TraceFormat, DurationsAreThoseOfToString) {
  const std::vector<std::string> hosts{"h0", "h1"};
  const auto expect_text = [&](std::int64_t ps) {
    if (ps == 0) return;  // not shown
    const auto text = to_text(make_event({0}, 0, EventKind::frame_received, {64, std::uint64_t(ps)}), hosts);
    EXPECT_THAT(text, ::testing::EndsWith("  arrives_in " + to_string(Duration{ps}))) << ps;
  };
  for (const std::int64_t unit : {1ll, 1'000ll, 1'000'000ll, 1'000'000'000ll, 1'000'000'000'000ll})
    for (const std::int64_t times : {1, 2, 10, 999})
      for (const std::int64_t more : {-1, 0, 1, 500}) expect_text(unit * times + more);
  expect_text(999'999'999'999'999);
  expect_text(1'234'567'890'123'456'789);
  rc::Random random(1);
  for (int i = 0; i < 2000; ++i) expect_text(std::int64_t(random.next() >> (14 + random.next() % 50)));
}

TEST(TraceFormat, EveryValueThatTheDeviceKnowsHasItsName) {
  expect_named("command.h", "CommandOpcode", FieldStyle::command_opcode);
  expect_named("command.h", "CommandStatus", FieldStyle::command_status);
  expect_named("queue.h", "SendOpcode", FieldStyle::send_opcode, true);
  expect_named("queue.h", "CqeOpcode", FieldStyle::cqe_opcode);
  expect_named("queue.h", "CqeSyndrome", FieldStyle::cqe_syndrome);
  expect_named("queue.h", "EventType", FieldStyle::event_type);
}

TEST(BadTraces, ARunThatDiedIsReadAsFarAsItGot) {
  const auto events = some_events(20'000);
  std::ostringstream out;
  {
    TraceWriter writer(out, some_header());
    for (const auto& event : events) writer.write(event);
  }
  std::istringstream in(out.str());
  TraceReader reader(in, "file");
  for (const auto& event : events) ASSERT_EQ(reader.next(), event);
  EXPECT_THAT([&] { reader.next(); }, ThrowsMessage<TraceError>(HasSubstr("file: after 20000 events: the file ends "
                                                                          "without an end mark")));
}

TEST(BadTraces, WhereverItIsCut) {
  const auto whole = file_of(some_events(3000));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    try {
      read(whole.substr(0, length));
      ADD_FAILURE() << length << " bytes pass for all " << whole.size();
    } catch (const TraceError& error) {
      EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("ends"), HasSubstr("empty"), HasSubstr("not a trace")));
    }
  }
}

TEST(BadTraces, EveryDamagedByteIsNoticed) {
  const auto whole = file_of(some_events(300));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto damaged = whole;
    damaged[at] = char(damaged[at] ^ 0x10);
    // A bit that zstd does not use changes nothing.
    try {
      EXPECT_EQ(read(damaged), some_events(300)) << "byte " << at;
    } catch (const TraceError&) {}
  }
}

TEST(BadTraces, AnythingInTheFrames) {
  std::vector<std::byte> header;
  encode_header(some_header(), header);
  EXPECT_TRUE(rc::check([&](const std::vector<std::uint8_t>& bytes, bool with_header) {
    const std::string content(bytes.begin(), bytes.end());
    const auto file = with_header ? compressed(as_text(header)) + compressed(content) : compressed(content);
    try {
      read(file);
      RC_FAIL("it passes");
    } catch (const TraceError&) {}
  }));
}

// A header of a large system is larger than a frame of events may be.
TEST(Recording, ASystemOfTenThousandHosts) {
  auto header = some_header();
  header.hosts.clear();
  for (int i = 0; i < 10'000; ++i) {
    header.hosts.push_back("h" + std::to_string(i));
    for (const char* key : {"address", "address6", "mac", "cable"})
      header.configuration.emplace_back("topology.h" + std::to_string(i) + "." + key, "fd00:0:0:0:0:0:1234:1/64");
  }
  const auto file = file_of(some_events(), header);
  std::istringstream in(file);
  TraceReader reader(in, "file");
  EXPECT_EQ(reader.header().hosts.size(), 10'000u);
  EXPECT_EQ(reader.header().configuration.size(), header.configuration.size());
  EXPECT_LE(reader.held_bytes(), TraceReader::kMostHeld);
  EXPECT_EQ(read(file), some_events());
}

// A search of all members for each new member would take minutes.
TEST(Recording, ManyParameters) {
  auto header = some_header();
  header.configuration = {{"again", "1"}};
  for (int i = 0; i < 300'000; ++i) header.configuration.emplace_back("nic.parameter" + std::to_string(i), "1");
  header.configuration.emplace_back("again", "2");
  std::istringstream in(file_of({}, header));
  TraceReader reader(in, "file");
  header.configuration.pop_back();
  header.configuration.front().second = "2";
  EXPECT_EQ(reader.header().configuration, header.configuration);
}

TEST(Recording, AHeaderThatNoReaderTakes) {
  auto header = some_header();
  header.system = std::string(kMostHeader, 'x');
  EXPECT_THAT([&] { file_of(some_events(), header); }, ThrowsMessage<ConfigError>(HasSubstr("16777216 is the most")));
}

TEST(BadTraces, SayWhatTheyAre) {
  const auto refusal = [](const std::string& file, const char* why) {
    EXPECT_THAT([&] { read(file); }, ThrowsMessage<TraceError>(HasSubstr(why)));
  };
  refusal("", "file: an empty file");
  refusal("#!/bin/sh", "file: not a trace: it is not compressed with zstd");
  refusal(compressed("something else"), "file: not a trace of rnicsim");
  refusal(compressed(std::string("rnicsim trace\n\x63", 15)), "format version 99; this program reads versions 1 to 2");
  refusal(compressed(std::string("rnicsim trace\n\x01\x05{", 17)), "the length in the header is wrong");
  refusal(compressed(std::string("rnicsim trace\n\x01\x01{", 17)), "the header is not JSON");
  refusal(compressed(std::string("rnicsim trace\n\x01\x02{}", 18)), "the header has no valid 'program'");
  refusal(compressed(std::string(2 << 20, 'x')), "not a trace of rnicsim");
  refusal(compressed("rnicsim trace\n\x01" + std::string(17 << 20, 'x')), "the header has more than 16777216 bytes");
  std::string members = "{";
  for (int i = 0; i < 1'000'000; ++i) members += '"' + std::to_string(i) + "\":1,";
  refusal(compressed(header_of(members + "\"seed\":1}")), "the header has no valid 'program'");
  std::vector<std::byte> header;
  encode_header(some_header(), header);
  refusal(compressed(as_text(header)) + compressed(std::string(2 << 20, 'x')), "a frame is too large");
  refusal(file_of(some_events()) + "x", "unexpected bytes follow the index");
}

TEST(Diff, EqualTraces) {
  const auto file = file_of(some_events());
  const auto result = compare(file, file);
  EXPECT_TRUE(result.equal);
  EXPECT_THAT(result.header, IsEmpty());
  EXPECT_EQ(result.events, "equal: 100 events\n");
}

TEST(Diff, AConfigurationIsMentionedAndDoesNotDecide) {
  auto header = some_header();
  header.configuration[0].second = "171 ns";
  header.configuration.emplace_back("nic.new", "1");
  const auto result = compare(file_of(some_events()), file_of(some_events(), header));
  EXPECT_TRUE(result.equal);
  EXPECT_EQ(result.header, "  nic.new: (none) | 1\n  nic.tx.latency: 170 ns | 171 ns\n");
}

TEST(Diff, OneFieldOfOneEvent) {
  auto changed = some_events();
  changed[50].fields[2] = 999;
  changed[50].at += Duration{1000};
  const auto result = compare(file_of(some_events()), file_of(changed));
  EXPECT_FALSE(result.equal);
  EXPECT_THAT(result.events, HasSubstr("event 50: time +1 ns, psn 50 -> 999\n"));
  EXPECT_THAT(result.events, HasSubstr("the last events of QP 0x41 of h0"));
  EXPECT_THAT(result.events, HasSubstr("      46.000000 us  h0  packet_sent  qp 0x41"));
  EXPECT_THAT(result.events, ::testing::Not(HasSubstr("48.000000 us  h0  packet_sent  qp 0x40")));
  EXPECT_THAT(result.events, HasSubstr("  A:  50.000000 us  h0  packet_sent"));
  EXPECT_THAT(result.events, HasSubstr("  B:  50.001000 us  h0  packet_sent"));
}

TEST(Diff, AnEventThatIsMissing) {
  auto fewer = some_events();
  fewer.erase(fewer.begin() + 50);
  const auto result = compare(file_of(some_events()), file_of(fewer));
  EXPECT_THAT(result.events, HasSubstr("event 50: B lacks 1 event(s) of A\n"));
  EXPECT_THAT(result.events, HasSubstr("  A:  50.000000 us"));
  EXPECT_THAT(compare(file_of(fewer), file_of(some_events())).events,
              HasSubstr("event 50: B has 1 event(s) that A lacks\n"));
}

TEST(Diff, AnEndThatIsMissing) {
  auto fewer = some_events();
  fewer.resize(98);
  const auto result = compare(file_of(some_events()), file_of(fewer));
  EXPECT_THAT(result.events, HasSubstr("event 98: B lacks 2 event(s) of A\n"));
  EXPECT_THAT(result.events, HasSubstr("  B:  no event: the trace ends here\n"));
}

TEST(Diff, AnotherEnd) {
  const auto result = compare(file_of(some_events(), some_header(), {1'000'000'000}),
                              file_of(some_events(), some_header(), {2'000'000'000}));
  EXPECT_FALSE(result.equal);
  EXPECT_THAT(result.events, HasSubstr("A ends at 1 ms and B at 2 ms"));
}

// An event is encoded with the time since the previous event; here the previous event is missing.
TEST(Diff, EqualBytesAtAnotherTime) {
  const auto fetch = make_event({1000}, 0, EventKind::wqe_fetch, {0x40, 0, 64});
  const auto doorbell = [](std::int64_t at) { return make_event({at}, 0, EventKind::doorbell, {0x40, 1, 64, 1}); };
  const auto without = file_of({doorbell(1000), doorbell(2000)});
  std::istringstream first(without), once_more(without);
  std::istringstream second(file_of({doorbell(1000), fetch, doorbell(2000)}));
  std::istringstream third(file_of({doorbell(1000), make_event({2000}, 0, EventKind::wqe_fetch, {}), doorbell(3000)}));
  TraceReader a(first, "a"), again(once_more, "a"), b(second, "b"), c(third, "c");
  for (auto* reader : {&a, &again, &b, &c}) reader->leave_out(EventKind::wqe_fetch);
  EXPECT_EQ(compare_traces(a, b).events, "equal: 2 events\n");
  EXPECT_THAT(compare_traces(c, again).events, HasSubstr("event 1: time -1 ns\n"));
}

// Zeros at the end of an event may be present.
TEST(Diff, EqualEventsOfOtherBytes) {
  std::vector<std::byte> header, events;
  encode_header(some_header(), header);
  EventEncoder encoder;
  const auto event = make_event({1000}, 0, EventKind::interrupt, {0});
  encoder.encode(event, events);
  events.front() = std::byte(std::to_integer<unsigned>(events.front()) + 1);
  events.push_back(std::byte{0});
  encoder.encode(make_event({INT64_MAX}, 0, EventKind::end, {1}), events);
  // A trace of version 1, which has no index.
  auto start = as_text(header);
  start[std::string_view("rnicsim trace\n").size()] = 1;
  const auto longer = compressed(start) + compressed(as_text(events));
  EXPECT_EQ(read(longer), std::vector{event});
  EXPECT_EQ(compare(file_of({event}), longer).events, "equal: 1 events\n");
}

TEST(Diff, ATraceThatBreaksOffBehindTheDivergence) {
  auto changed = some_events(20'000);
  changed[50].fields[2] = 999;
  const auto cut = file_of(changed);
  EXPECT_THAT(compare(file_of(some_events(20'000)), cut.substr(0, cut.size() / 2)).events, HasSubstr("event 50: psn"));
  const auto same = file_of(some_events(20'000));
  EXPECT_THAT([&] { compare(same, same.substr(0, same.size() / 2)); },
              ThrowsMessage<TraceError>(HasSubstr("the file ends in the middle of a frame")));
}

}  // namespace
}  // namespace rnicsim::sim::recording_test
