// SPDX-License-Identifier: Apache-2.0
// Headers of each segment, against frames that are built for each segment.
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/segmentation.h"
#include "tests/unit/nic/frames/raw_frames.h"

namespace rnicsim::nic {
namespace {

using namespace test;

constexpr std::size_t kLeastFrame = 60;
constexpr unsigned kFin = 0x01, kPsh = 0x08, kAck = 0x10, kCwr = 0x80;

unsigned ones_complement(const FrameBytes& bytes) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += std::to_integer<unsigned>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

// The program's headers, field by field.
struct Message {
  FrameBytes link = bytes({2, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15});  // addresses and VLAN tags
  bool v6 = false;
  bool udp = false;
  std::size_t ip_options = 0;   // words of IPv4 options
  std::size_t tcp_options = 0;  // words
  FrameBytes addresses = word32(0x0a000001) + word32(0x0a000002);
  unsigned identification = 0;
  std::uint32_t sequence = 0;
  unsigned flags = kAck;

  std::size_t ip() const { return link.size() + 2; }
  std::size_t least_ip_header() const { return v6 ? 40 : 20; }
  std::size_t transport() const { return ip() + least_ip_header() + (v6 ? 0 : 4 * ip_options); }
  std::size_t header_bytes() const { return transport() + (udp ? 8 : 20 + 4 * tcp_options); }

  // Headers without checksums; `ip_length` and `udp_length` are the length fields.
  FrameBytes headers(std::size_t ip_length, std::size_t udp_length) const {
    return link + word(v6 ? 0x86dd : 0x0800) + network_header(ip_length, 0) + transport_header(udp_length, 0);
  }
  // A frame with valid lengths and checksums.
  FrameBytes with(const FrameBytes& data) const {
    const auto frame_bytes = header_bytes() + data.size(), transport_bytes = frame_bytes - transport();
    const auto ip_length = frame_bytes - ip() - (v6 ? 40 : 0);
    const auto pseudo_header = addresses + word(udp ? 17 : 6) + word(static_cast<unsigned>(transport_bytes));
    auto checksum = ones_complement(pseudo_header + transport_header(transport_bytes, 0) + data);
    if (udp && checksum == 0) checksum = 0xffff;
    return link + word(v6 ? 0x86dd : 0x0800) +
           network_header(ip_length, ones_complement(network_header(ip_length, 0))) +
           transport_header(transport_bytes, checksum) + data;
  }

 private:
  static constexpr unsigned kNoOperation = 1;  // no-operation option of IP and TCP

  FrameBytes network_header(std::size_t length, unsigned checksum) const {
    const auto protocol = udp ? 17u : 6u, length_field = static_cast<unsigned>(length);
    if (v6) return bytes({0x61, 0xc2, 0x34, 0x56}) + word(length_field) + bytes({protocol, 62}) + addresses;
    return bytes({static_cast<unsigned>(0x45 + ip_options), 0x1c}) + word(length_field) + word(identification) +
           word(0x4000) + bytes({63, protocol}) + word(checksum) + addresses +
           FrameBytes(4 * ip_options, std::byte{kNoOperation});
  }
  FrameBytes transport_header(std::size_t length, unsigned checksum) const {
    const auto ports = word(40'001) + word(40'002);
    if (udp) return ports + word(static_cast<unsigned>(length)) + word(checksum);
    return ports + word32(sequence) + word32(0x01020304) +
           bytes({static_cast<unsigned>(0x50 + 0x10 * tcp_options), flags}) + word(0x1000) + word(checksum) + word(0) +
           FrameBytes(4 * tcp_options, std::byte{kNoOperation});
  }
};

// Segments as the device cuts them: headers and a slice of the data, padded to Ethernet's least frame.
std::vector<FrameBytes> segments(const FrameBytes& headers, const FrameBytes& data, std::size_t most) {
  std::vector<FrameBytes> frames;
  for (std::size_t offset = 0; offset < data.size(); offset += most) {
    const auto end = std::min(offset + most, data.size());
    auto frame = headers;
    frame.insert(frame.end(), data.begin() + static_cast<std::ptrdiff_t>(offset),
                 data.begin() + static_cast<std::ptrdiff_t>(end));
    const auto number = static_cast<std::uint32_t>(frames.size());
    adapt_headers(frame, static_cast<std::uint32_t>(offset), number, end == data.size());
    frame.resize(std::max(frame.size(), kLeastFrame));
    fill_checksums(frame);
    frames.push_back(std::move(frame));
  }
  return frames;
}

class AnyMessage {
 public:
  explicit AnyMessage(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t most) { return random_() % most; }
  bool one_in(std::size_t many) { return below(many) == 0; }
  std::uint32_t number() { return static_cast<std::uint32_t>(random_()); }
  FrameBytes noise(std::size_t count) {
    FrameBytes all(count);
    for (auto& one : all) one = std::byte(below(256));
    return all;
  }
  Message message() {
    Message any{.v6 = one_in(2), .udp = one_in(3)};
    any.link = bytes({2}) + noise(5) + bytes({6}) + noise(5);
    for (auto tags = one_in(3) ? 1 + below(4) : 0; tags > 0; --tags)
      any.link = any.link + word(one_in(2) ? 0x8100 : 0x88a8) + word(static_cast<unsigned>(1 + below(100)));
    any.ip_options = !any.v6 && one_in(3) ? below(11) : 0;
    any.tcp_options = one_in(3) ? below(11) : 0;
    any.addresses = any.v6 ? bytes({0xfd}) + noise(15) + bytes({0xfd}) + noise(15)
                           : bytes({10}) + noise(3) + bytes({10}) + noise(3);
    any.identification = (one_in(4) ? 0xffffu - number() % 4 : number()) & 0xffff;
    any.sequence = one_in(4) ? 0xffffffffu - number() % 256 : number();
    any.flags = number() & 0xff;
    return any;
  }

 private:
  std::mt19937 random_;
};

struct Cut {
  Message message;
  FrameBytes data;
  std::size_t most;
  std::vector<FrameBytes> frames;
};
Cut any_cut(AnyMessage& any) {
  Cut cut{.message = any.message()};
  cut.most = 1 + any.below(any.one_in(50) ? 1500 : 80);
  cut.data = any.noise(1 + any.below(7 * cut.most));
  // The program's lengths and checksums have no effect.
  const auto headers = cut.message.headers(any.number() & 0xffff, any.number() & 0xffff);
  cut.frames = segments(headers, cut.data, cut.most);
  return cut;
}

// Expected fields of segment `i`.
Message expected(const Message& message, std::size_t i, std::size_t offset, bool last) {
  auto one = message;
  one.identification = static_cast<unsigned>((message.identification + i) % 0x10000);
  one.sequence = static_cast<std::uint32_t>((message.sequence + std::uint64_t{offset}) % 0x1'0000'0000);
  if (!last) one.flags &= ~(kFin | kPsh);
  if (i != 0) one.flags &= ~kCwr;
  return one;
}

TEST(Segmentation, EachSegmentIsAFrameOfItsOwn) {
  AnyMessage any(1);
  for (int run = 0; run < 10'000; ++run) {
    const auto cut = any_cut(any);
    ASSERT_EQ(cut.frames.size(), (cut.data.size() + cut.most - 1) / cut.most);
    FrameBytes received;
    for (std::size_t i = 0; i < cut.frames.size(); ++i) {
      const auto offset = received.size(), bytes = std::min(cut.most, cut.data.size() - offset);
      const auto from = cut.data.begin() + static_cast<std::ptrdiff_t>(offset);
      const FrameBytes slice(from, from + static_cast<std::ptrdiff_t>(bytes));
      auto frame = expected(cut.message, i, offset, i + 1 == cut.frames.size()).with(slice);
      frame.resize(std::max(frame.size(), kLeastFrame));
      ASSERT_EQ(cut.frames[i], frame) << "run " << run << ", segment " << i;
      ASSERT_TRUE(checksums_right(frame));
      const auto at = cut.frames[i].begin() + static_cast<std::ptrdiff_t>(cut.message.header_bytes());
      received.insert(received.end(), at, at + static_cast<std::ptrdiff_t>(bytes));
    }
    ASSERT_EQ(received, cut.data);
  }
}

unsigned word_in(const FrameBytes& frame, std::size_t at) {
  return std::to_integer<unsigned>(frame.at(at)) << 8 | std::to_integer<unsigned>(frame.at(at + 1));
}
constexpr std::size_t kIp = 14, kTag = 4, kTcp = kIp + 20;

TEST(Segmentation, NumbersWrap) {
  const Message message{.link = bytes({2, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 0x81, 0, 0, 5}),
                        .identification = 0xfffe,
                        .sequence = 0xffffff00};
  const auto frames = segments(message.headers(0, 0), FrameBytes(600), 200);
  ASSERT_EQ(frames.size(), 3u);
  const unsigned identifications[] = {0xfffe, 0xffff, 0}, high[] = {0xffff, 0xffff, 0}, low[] = {0xff00, 0xffc8, 0x90};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(word_in(frames[i], kTag + kIp + 2), 20u + 20 + 200);
    EXPECT_EQ(word_in(frames[i], kTag + kIp + 4), identifications[i]);
    EXPECT_EQ(word_in(frames[i], kTag + kTcp + 4), high[i]);
    EXPECT_EQ(word_in(frames[i], kTag + kTcp + 6), low[i]);
  }
}

TEST(Segmentation, SomeFlagsAreOfTheFirstOrTheLastAlone) {
  const auto flags = [](std::size_t data) {
    const Message message{.flags = 0xff};
    std::vector<unsigned> all;
    for (const auto& frame : segments(message.headers(0, 0), FrameBytes(data), 100))
      all.push_back(std::to_integer<unsigned>(frame.at(kTcp + 13)));
    return all;
  };
  constexpr unsigned kInner = 0xff & ~(kFin | kPsh | kCwr);
  EXPECT_EQ(flags(300), (std::vector<unsigned>{kInner | kCwr, kInner, kInner | kFin | kPsh}));
  EXPECT_EQ(flags(101), (std::vector<unsigned>{kInner | kCwr, kInner | kFin | kPsh}));
  EXPECT_EQ(flags(100), std::vector<unsigned>{0xff});
}

// A header is changed only if all of it is present; bytes behind the frame are never changed.
TEST(Segmentation, HeadersCutShort) {
  AnyMessage any(2);
  for (int run = 0; run < 100; ++run) {
    auto message = any.message();
    message.tcp_options = 0;
    const auto whole = message.headers(0, 0);
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      const FrameBytes before(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      auto frame = before + FrameBytes(64, std::byte{0xa5});
      adapt_headers(std::span(frame).first(bytes), 7, 1, false);
      const bool has_ip = bytes >= message.ip() + message.least_ip_header(), has_transport = bytes == whole.size();
      auto one = expected(message, has_ip ? 1 : 0, 7, false);
      if (!has_transport) {
        one.sequence = message.sequence;
        one.flags = message.flags;
      }
      const auto length = has_ip ? bytes - message.ip() - (message.v6 ? 40 : 0) : 0;
      auto after = one.headers(length, has_transport ? bytes - message.transport() : 0);
      after.resize(bytes);
      ASSERT_EQ(frame, after + FrameBytes(64, std::byte{0xa5})) << "run " << run << ", " << bytes << " bytes";
    }
  }
}

TEST(Segmentation, AnyBytes) {
  AnyMessage any(3);
  for (int run = 0; run < 5'000; ++run) {
    auto frame = any.message().headers(0, 0);
    const auto bytes = any.below(frame.size() + 1);
    for (int changes = 0; changes < 3; ++changes) frame[any.below(frame.size())] = std::byte(any.below(256));
    const auto before = frame;
    adapt_headers(std::span(frame).first(bytes), any.number(), any.number(), any.one_in(2));
    const auto end = static_cast<std::ptrdiff_t>(bytes);
    ASSERT_TRUE(std::equal(frame.begin() + end, frame.end(), before.begin() + end)) << run;
  }
}

TEST(Segmentation, OtherProtocolsAreLeftAlone) {
  const auto arp = ethernet(0x0806, FrameBytes(46));
  auto frame = arp;
  adapt_headers(frame, 100, 1, true);
  EXPECT_EQ(frame, arp);
  auto esp = ethernet(0x0800, ipv4(50, 1, 2, FrameBytes(40)));
  auto expected = esp;
  std::ranges::copy(word(1), expected.begin() + kIp + 4);
  adapt_headers(esp, 100, 1, true);
  EXPECT_EQ(esp, expected);
}

// tshark verifies the checksums. The byte order of a pcap file is that of the machine that writes it.
TEST(Segmentation, TsharkFindsTheChecksumsRight) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is not installed";
  const auto folder = std::filesystem::temp_directory_path() / ("rnicsim_segments_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  AnyMessage any(4);
  int written = 0;
  {
    std::ofstream file(folder / "segments.pcap", std::ios::binary);
    const auto put = [&file](std::initializer_list<std::uint32_t> words) {
      for (const auto word : words) file.write(reinterpret_cast<const char*>(&word), sizeof(word));
    };
    put({0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65'535, 1});  // version 2.4, Ethernet
    for (int run = 0; run < 10'000; ++run)
      for (const auto& frame : any_cut(any).frames) {
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        put({0, 0, bytes, bytes});
        file.write(reinterpret_cast<const char*>(frame.data()), bytes);
        ++written;
      }
  }
  const auto command =
      "HOME=" + folder.string() + " tshark -n -r " + (folder / "segments.pcap").string() +
      " -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE"
      " -Y '(ipv6 || ip.checksum.status == 1) && (tcp.checksum.status == 1 || udp.checksum.status == 1)'"
      " -T fields -e frame.number 2>/dev/null";
  int right = 0;
  auto* output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  for (int c; (c = std::fgetc(output)) != EOF;) right += c == '\n';
  EXPECT_EQ(pclose(output), 0);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(right, written);
}

}  // namespace
}  // namespace rnicsim::nic
