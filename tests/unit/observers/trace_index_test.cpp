// SPDX-License-Identifier: Apache-2.0
// Schema and index of a trace: unknown kinds and fields, blocks by time and queue pair, and both when they lie.
#include <gmock/gmock.h>
#include <zstd.h>

#include <algorithm>
#include <sstream>

#include "sim/trace_file/trace_diff.h"
#include "sim/trace_file/trace_reader.h"
#include "sim/trace_file/trace_trailer.h"
#include "sim/trace_file/trace_writer.h"

namespace rnicsim::sim::trace_index_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TraceHeader some_header() { return {.program = "1", .seed = 7, .time = "sim", .hosts = {"h0", "h1"}}; }

// One packet per microsecond: 50,000 of each of four queue pairs, one pair after the other, on both hosts.
std::vector<TraceEvent> some_events(std::uint32_t count = 200'000) {
  std::vector<TraceEvent> events;
  for (std::uint32_t i = 0; i < count; ++i)
    events.push_back(make_event({std::int64_t{i} * 1'000'000}, i % 2, EventKind::packet_sent,
                                {0x40 + i / 50'000, 0x0a, i, 0x80, 1, 0, 64, i * 0x9e3779b9u}));
  return events;
}

std::string file_of(const std::vector<TraceEvent>& events) {
  std::ostringstream out;
  TraceWriter writer(out, some_header());
  for (const auto& event : events) writer.write(event);
  writer.finish(events.empty() ? Duration{} : events.back().at);
  return out.str();
}

std::string compressed(std::span<const std::byte> content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1));
  return out;
}

// A file that counts the bytes that are read.
class CountingBuffer : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;
  std::uint64_t read = 0;

 protected:
  std::streamsize xsgetn(char* to, std::streamsize most) override {
    const auto got = std::stringbuf::xsgetn(to, most);
    read += std::uint64_t(got);
    return got;
  }
};

struct Reading {
  std::vector<TraceEvent> events;
  std::uint64_t bytes;
  Duration end;
};

// Reads the blocks that the choice names, or everything.
template <class Choice>
Reading read(const std::string& file, Choice wanted) {
  CountingBuffer buffer(file);
  std::istream in(&buffer);
  TraceReader reader(in, "file");
  if (const auto* index = reader.read_index())
    reader.read_only([index, wanted](std::size_t block) { return wanted(*index, block); });
  Reading reading{};
  for (TraceEvent event; reader.next(event);) reading.events.push_back(event);
  reading.end = reader.end();
  reading.bytes = buffer.read;
  return reading;
}

std::vector<TraceEvent> read_all(const std::string& file) {
  std::istringstream in(file);
  TraceReader reader(in, "file");
  std::vector<TraceEvent> events;
  for (TraceEvent event; reader.next(event);) events.push_back(event);
  return events;
}

TEST(TraceIndex, OneQueuePairNeedsItsBlocksOnly) {
  const auto events = some_events();
  const auto file = file_of(events);
  EXPECT_EQ(read_all(file), events);
  const auto reading = read(file, [](const auto& index, auto block) { return index.has(block, 1, 0x42); });
  EXPECT_LT(reading.bytes, file.size() / 3);
  EXPECT_EQ(reading.end, events.back().at);
  std::vector<TraceEvent> wanted, got;
  const auto is_wanted = [](const TraceEvent& event) { return event.host == 1 && event.fields[0] == 0x42; };
  std::ranges::copy_if(events, std::back_inserter(wanted), is_wanted);
  std::ranges::copy_if(reading.events, std::back_inserter(got), is_wanted);
  EXPECT_EQ(got, wanted);
}

TEST(TraceIndex, ATimeNeedsItsBlocksOnly) {
  const auto file = file_of(some_events());
  constexpr Duration kFrom{150'000'000'000}, kTo{150'100'000'000};
  const auto reading = read(file, [=](const auto& index, auto block) {
    return index.blocks()[block].last >= kFrom && index.blocks()[block].first <= kTo;
  });
  EXPECT_LT(reading.bytes, file.size() / 10);
  EXPECT_EQ(std::ranges::count_if(reading.events, [=](const auto& e) { return e.at >= kFrom && e.at <= kTo; }), 101);
}

TEST(TraceIndex, AllBlocksAreTheWholeTrace) {
  const auto events = some_events(20'000);
  EXPECT_EQ(read(file_of(events), [](const auto&, auto) { return true; }).events, events);
  EXPECT_THAT(read(file_of(events), [](const auto&, auto) { return false; }).events, IsEmpty());
}

// A trace that is cut has no index at its end: everything is read, up to the error.
TEST(TraceIndex, WhereverItIsCut) {
  const auto file = file_of(some_events(1000));
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_THROW(read(file.substr(0, length), [](const auto&, auto) { return true; }), TraceError) << length;
}

TEST(TraceIndex, EachBitFlipped) {
  const auto events = some_events(300);
  const auto file = file_of(events);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    auto damaged = file;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      EXPECT_EQ(read(damaged, [](const auto&, auto) { return true; }).events, events) << bit;
      EXPECT_EQ(read_all(damaged), events) << bit;
    } catch (const TraceError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

// The same file with another index.
template <class Change>
std::string with_index(const std::string& file, Change change) {
  std::array<std::byte, TraceTrailer::kBytes> last;
  std::memcpy(last.data(), file.data() + file.size() - last.size(), last.size());
  auto trailer = TraceTrailer::of(last).value();
  std::vector<std::byte> content(1 << 20);
  content.resize(ZSTD_decompress(content.data(), content.size(), file.data() + trailer.offset, trailer.bytes));
  change(content);
  const auto frame = compressed(content);
  trailer.bytes = frame.size();
  last = trailer.encoded();
  return file.substr(0, trailer.offset) + frame + std::string(reinterpret_cast<const char*>(last.data()), last.size());
}

// Bytes of the index: magic, 1, number of blocks; for each: bytes, events, two times; number of queue pairs; for each:
// host, number, ranges.
TEST(TraceIndex, ThatLies) {
  const auto file = file_of(some_events(100));
  const auto lies = [&](std::size_t place, int change) {
    return with_index(
        file, [=](auto& content) { content[place] = std::byte(std::to_integer<int>(content[place]) + change); });
  };
  const auto all = [](const auto&, auto) { return true; };
  constexpr std::size_t kStart = 14;
  EXPECT_EQ(read_all(lies(kStart, 0)).size(), 100u);
  EXPECT_THAT([&] { read_all(lies(0, 1)); }, ThrowsMessage<TraceError>(HasSubstr("no index follows the end mark")));
  for (std::size_t place = kStart; place < kStart + 12; ++place)
    for (const int change : {-1, 1}) {
      EXPECT_THROW(read_all(lies(place, change)), TraceError) << place;
      EXPECT_THROW(read(lies(place, change), all), TraceError) << place;
    }
  // Another queue pair in the place of 0x40 of h1, the last of the index.
  const auto other_pair = with_index(file, [](auto& content) { content[content.size() - 4] = std::byte{0x41}; });
  EXPECT_THAT([&] { read_all(other_pair); },
              ThrowsMessage<TraceError>(HasSubstr("the index does not describe the queue pairs of the blocks")));
  // A reader by the index notices in the blocks that it reads, and trusts the index for all others.
  EXPECT_THAT([&] { read(other_pair, all); },
              ThrowsMessage<TraceError>(HasSubstr("the index does not describe the queue pairs of block 0")));
  EXPECT_THAT(read(other_pair, [](const auto& index, auto block) { return index.has(block, 1, 0x40); }).events,
              IsEmpty());
}

// A comparison of two traces reads both whole: it finds an index that hides a queue pair, also where equal events are
// skipped without decoding.
TEST(TraceIndex, ThatLiesToAComparison) {
  const auto file = file_of(some_events(100));
  const auto hidden = with_index(file, [](auto& content) { content[content.size() - 4] = std::byte{0x41}; });
  for (const bool is_first : {true, false}) {
    std::istringstream in(is_first ? hidden : file), other(is_first ? file : hidden);
    TraceReader a(in, "a"), b(other, "b");
    EXPECT_THAT([&] { compare_traces(a, b); },
                ThrowsMessage<TraceError>(HasSubstr("the index does not describe the queue pairs of the blocks")));
  }
}

// --- Schema.

// A file of another program version: kinds and events as given.
std::string foreign_file(const std::vector<std::string>& kinds,
                         std::initializer_list<std::vector<std::uint64_t>> events) {
  std::string json = R"({"program":"2","seed":1,"time":"sim","hosts":["h0"],"configuration":{},"kinds":[)";
  for (const auto& kind : kinds) json += (&kind == kinds.data() ? "\"" : ",\"") + kind + '"';
  json += "]}";
  std::vector<std::byte> header, block;
  for (const char c : std::string("rnicsim trace\n\x02")) header.push_back(std::byte(c));
  append_number(header, json.size());
  for (const char c : json) header.push_back(std::byte(c));
  for (const auto& event : events) {
    std::vector<std::byte> body;
    for (const auto number : event) append_number(body, number);
    append_number(block, body.size());
    block.insert(block.end(), body.begin(), body.end());
  }
  const auto start = compressed(header), blocks = compressed(block);
  std::vector<std::byte> index;
  TraceIndex::encode_absent(index);
  const auto frame = compressed(index);
  const auto last = TraceTrailer{start.size() + blocks.size(), frame.size()}.encoded();
  return start + blocks + frame + std::string(reinterpret_cast<const char*>(last.data()), last.size());
}

// Kinds are found by their names; what this program does not know is named and left out.
TEST(TraceSchema, OfANewerProgram) {
  const auto file =
      foreign_file({"end: events number", "tea: leaves number, cup hex", "interrupt: colour number, vector number"},
                   {{1, 0, 5, 1, 2}, {2, 0, 1, 77, 3}, {2, 0, 1}, {0, 0, 0, 3}});
  std::istringstream in(file);
  TraceReader reader(in, "file");
  EXPECT_EQ(reader.next(), make_event({6}, 0, EventKind::interrupt, {3}));
  EXPECT_EQ(reader.next(), make_event({7}, 0, EventKind::interrupt, {0}));
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_THAT(
      reader.unknown(),
      ElementsAre("file: 1 events of the kind 'tea' (leaves, cup) are left out: this program does not know the kind",
                  "file: 2 events 'interrupt' are read without the fields colour: this program does not know these"));
}

TEST(TraceSchema, ThatLies) {
  const auto refusal = [](const std::vector<std::string>& kinds, const char* why) {
    EXPECT_THAT([&] { read_all(foreign_file(kinds, {{0, 0, 0, 0}})); }, ThrowsMessage<TraceError>(HasSubstr(why)));
  };
  refusal({}, "the schema in the header has no kind 'end'");
  refusal({"end: events hex"}, "kind 0 has a field 'events' of another type than 'number'");
  refusal({"end: events number", "frame_sent: bytes number"},
          "kind 1 has a field 'bytes' of another type than 'number B'");
  refusal({"end: events number", "end: events number"}, "kind 1 has the name of a kind before");
  refusal({"end: events number, events number"}, "kind 0 has the field 'events' twice");
  refusal({"end: events"}, "kind 0 has a field without a name or a type");
  refusal({"end:events number"}, "kind 0 has a field without a name or a type");
  refusal({"end"}, "kind 0 has no name");
  refusal(std::vector<std::string>(2000, "end: events number"), "has too many kinds");
  EXPECT_THAT(
      [] {
        read_all(foreign_file({"end: events number"}, {{0, 0, 0, 0, 0}}));
      },
      ThrowsMessage<TraceError>(HasSubstr("an event 'end' with too many fields")));
  EXPECT_THAT(
      [] {
        read_all(foreign_file({"end: events number"}, {{1, 0, 0, 0}}));
      },
      ThrowsMessage<TraceError>(HasSubstr("an event of unknown kind 1")));
}

TEST(TraceSchema, IsOwn) {
  const auto lines = own_schema();
  ASSERT_EQ(lines.size(), std::size_t(EventKind::count));
  EXPECT_EQ(lines[0], "end: events number");
  for (const auto& kind : TraceSchema(lines).kinds()) EXPECT_TRUE(kind.is_own && kind.is_whole) << kind.name;
}

}  // namespace
}  // namespace rnicsim::sim::trace_index_test
