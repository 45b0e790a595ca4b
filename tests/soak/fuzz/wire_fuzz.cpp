// SPDX-License-Identifier: Apache-2.0
// A hostile peer of a live wire: bytes in the stream, frames to the NIC and to the IP stack, ends at any place. After
// each script a well-behaved peer connects and must get an answer to ARP.
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "model/base/kernel.h"
#include "sim/config/config.h"
#include "sim/config/loader.h"
#include "sim/guest/transactor/path_socket.h"
#include "sim/guest/wire/ethernet.h"
#include "sim/guest/wire/live_wire.h"
#include "sim/guest/wire/stream_framing.h"
#include "sim/system.h"
#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

using namespace sim;

enum Step : std::uint8_t { raw, framed, run, hang_up, kinds };

constexpr int kMostSteps = 200;
constexpr ethernet::Mac kPeer{2, 0, 0, 0, 1, 1}, kHost{2, 0, 0, 0, 0, 1};
constexpr ethernet::Ipv4 kPeerIp{10, 0, 1, 1}, kHostIp{10, 0, 0, 1};

class World {
 public:
  World() { system_.start(); }
  ~World() { ::rmdir(folder_.c_str()); }

  void connect() {
    far_ = connect_to_path(path_);
    require(static_cast<bool>(far_), "nobody listens");
    work();
  }
  void send(std::span<const std::byte> bytes) {
    if (!far_) connect();
    ::send(far_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    work();
  }
  void send_frame(std::span<const std::byte> frame) {
    std::vector<std::byte> bytes;
    StreamFraming::append(bytes, frame);
    send(bytes);
  }
  void run(Duration time) { run_until(now() + time); }
  void hang_up() {
    far_.reset();
    for (int i = 0; i < 64; ++i) work();
  }

  // Uses a new connection.
  void check() {
    hang_up();
    connect();
    send_frame(ethernet::arp_request(kPeer, kPeerIp, kHostIp));
    for (int i = 0; i < 1000; ++i) {
      run(Duration{10'000'000});
      work();
      if (hears_reply()) return;
    }
    fail("no answer to a good peer");
  }

 private:
  // Polls the sockets, then lets 1 us pass.
  void work() {
    wire_.work();
    run(Duration{1'000'000});
  }
  bool hears_reply() {
    std::byte bytes[65536];
    const auto came = ::recv(far_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (came > 0) answers_.add(std::span(bytes).first(static_cast<std::size_t>(came)));
    while (const auto frame = answers_.next())
      if (ethernet::is_arp(*frame) && ethernet::mac_at(*frame, ethernet::kSource) == kHost &&
          ethernet::ipv4_at(*frame, ethernet::kArpTargetIp) == kPeerIp)
        return true;
    require(!answers_.broken(), "an answer that is not framed");
    return false;
  }

  std::string folder_ = [] {
    std::string name = "/tmp/rnicsim-fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr, "no folder");
    return name;
  }();
  const std::string path_ = folder_ + "/wire";
  System system_{"system", load_config("cx5-100g", "back-to-back", {}), 1, {}, nullptr, {}, {1}};
  LiveWire wire_{system_, {{1, WireChoice::Kind::listen, path_}}, [](const std::string&) {}};
  Descriptor far_;
  StreamFraming answers_;
};

World& world() {
  static World made;
  return made;
}

// The frames must be the same for every division of the stream.
void check_framing(std::span<const std::byte> bytes, std::size_t piece) {
  const auto frames_of = [bytes](std::size_t most) {
    StreamFraming framing;
    std::vector<std::vector<std::byte>> frames;
    for (std::size_t at = 0; at < bytes.size(); at += most) {
      framing.add(bytes.subspan(at, std::min(most, bytes.size() - at)));
      while (const auto frame = framing.next()) frames.emplace_back(frame->begin(), frame->end());
    }
    return std::pair(frames, framing.broken());
  };
  require(frames_of(bytes.size()) == frames_of(piece), "the frames depend on how the stream is cut");
}

std::vector<std::byte> with_header(std::uint8_t choice, std::span<const std::uint8_t> body) {
  using namespace ethernet;
  static constexpr std::array<Mac, 4> kMacs{kHost, kPeer, kBroadcast, Mac{0x33, 0x33, 0, 0, 0, 1}};
  static constexpr std::array<std::array<std::uint8_t, 2>, 4> kTypes{{{8, 0}, {8, 6}, {0x86, 0xdd}, {0x81, 0}}};
  std::vector<std::byte> frame(kHeaderBytes);
  set_field(std::span(frame), kDestination, kMacs[choice & 3]);
  set_field(std::span(frame), kSource, kMacs[1 + (choice >> 2 & 1)]);
  set_field(std::span(frame), kType, kTypes[choice >> 3 & 3]);
  const auto bytes = std::as_bytes(body);
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

}  // namespace

std::vector<Bytes> seeds() {
  const auto big16 = [](unsigned value) { return static_cast<std::uint16_t>(__builtin_bswap16(value)); };
  std::vector<Bytes> all;
  Script frames;
  // An echo request, a SYN, a RoCE packet, ARP in both directions, IPv6.
  const auto ip = [&](Script& script, std::uint8_t protocol, const std::vector<std::uint8_t>& payload) {
    script.step(Step::framed, std::uint8_t{0}, std::uint16_t{0x45}, big16(unsigned(20 + payload.size())),
                std::uint32_t{0}, std::uint8_t{64}, protocol, std::uint16_t{0}, kPeerIp, kHostIp, payload);
  };
  ip(frames, 1, {8, 0, 0xf7, 0xfd, 0, 1, 0, 1});
  ip(frames, 6, {0x9c, 0x40, 0x48, 0x55, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x20, 0, 0, 0, 0, 0});
  ip(frames, 17, {0xc0, 0, 0x12, 0xb7, 0, 28, 0, 0, 4, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4});
  const auto question = ethernet::arp_request(kPeer, kPeerIp, kHostIp);
  frames.step(Step::framed, std::uint8_t{8 + 2}, std::vector<std::byte>(question.begin() + 14, question.end()));
  frames.step(Step::framed, std::uint8_t{16 + 3}, std::vector<std::uint8_t>{0x60, 0, 0, 0, 0, 8, 58, 255},
              std::vector<std::uint8_t>(32, 1), std::vector<std::uint8_t>{135, 0, 0, 0, 0, 0, 0, 0});
  frames.step(Step::run, std::uint16_t{50});
  all.push_back(frames);

  Script stream;
  stream.step(Step::raw, std::uint32_t{0}, std::uint32_t{0x01000000}, std::uint8_t{7});
  stream.step(Step::raw, std::uint32_t{0x0e000000}, std::vector<std::uint8_t>(14, 2), std::uint16_t{0});
  stream.step(Step::hang_up).step(Step::raw, std::uint32_t{0x00000100}, std::vector<std::uint8_t>(100, 3));
  stream.step(Step::raw, std::uint32_t{0xffffffff}).step(Step::raw, std::uint32_t{0});
  all.push_back(stream);
  return all;
}

}  // namespace rnicsim::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  const auto whole = std::as_bytes(std::span(data, size));
  if (size != 0) check_framing(whole, data[0] % 7 + 1);
  Input input(data, size);
  for (int i = 0; i < kMostSteps && !input.empty(); ++i) {
    const auto [kind, body] = input.take_step();
    Input step(body);
    switch (kind % kinds) {
      case raw: world().send(std::as_bytes(body)); break;
      case framed: {
        const auto choice = step.take<std::uint8_t>();
        world().send_frame(with_header(choice, step.take_span(body.size())));
        break;
      }
      case run: world().run(Duration{std::int64_t{step.take<std::uint16_t>() % 100 + 1} * 1'000'000}); break;
      case hang_up: world().hang_up(); break;
    }
  }
  world().check();
  return 0;
}
