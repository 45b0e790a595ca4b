// SPDX-License-Identifier: Apache-2.0
// A hostile virtual machine: bytes and descriptors at the sockets of both protocols, with simulated time in between.
// After each script a well-behaved machine connects to each socket and must find the device.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "model/abi/device.h"
#include "model/base/kernel.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/config/loader.h"
#include "sim/guest/nic_function.h"
#include "sim/guest/transactor/guest_connection.h"
#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/transactor/qemu_proxy.h"
#include "sim/guest/transactor/vfio_user.h"
#include "sim/guest/transactor/vfio_user_messages.h"
#include "sim/simulated_host.h"
#include "sim/system.h"
#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

using namespace sim;
namespace vfio = sim::vfio_user;

enum Step : std::uint8_t { raw, to_qemu, to_vfio, silent, run, shrink, hang_up, kinds };

constexpr std::uint64_t kMemory = 0x10000000;
constexpr std::size_t kMemoryBytes = 1 << 20;
constexpr int kMostSteps = 200;

// One of the two hosts; its machine speaks one of the protocols.
class Machine {
 public:
  Machine(const char* name, Adapter& adapter, bool speaks_qemu)
      : port_(name, nic_function(adapter)), speaks_qemu_(speaks_qemu) {
    connect_to_guest(adapter, port_);
    port_.say = [](const std::string&) {};
  }

  void connect() {
    client_.reset();
    port_.clear();
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    far_ = Descriptor(ends[1]);
    if (speaks_qemu_)
      client_ = std::make_unique<QemuProxy>(port_, Descriptor(ends[0]), "");
    else
      client_ = std::make_unique<VfioUser>(port_, Descriptor(ends[0]), std::chrono::milliseconds(0));
  }

  void send(std::span<const std::uint8_t> bytes, std::span<const int> descriptors = {}) {
    if (!client_) connect();
    iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      auto* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    if (!bytes.empty()) ::sendmsg(far_.get(), &message, MSG_NOSIGNAL);
  }

  void serve() {
    if (!client_) return;
    try {
      for (int i = 0; i < 4; ++i) client_->serve();
    } catch (const ConnectionLost&) {
      client_.reset();
      port_.clear();
    }
    std::byte answers[4096];
    while (far_ && ::recv(far_.get(), answers, sizeof answers, MSG_DONTWAIT) > 0) continue;
  }

  void hang_up() {
    far_.reset();
    serve();
  }

  // A well-behaved machine must find an unchanged device.
  void check() {
    connect();
    std::uint32_t identity = 0;
    if (speaks_qemu_) {
      struct {
        std::int32_t command = 3;
        std::uint32_t padding = 0;
        std::uint64_t bytes = 12;
        std::uint32_t offset = 0, value = 0, size = 4;
      } read;
      static_assert(sizeof read == 32);
      say(&read, 28);
      client_->serve();
      std::uint64_t answer[3] = {};
      require(::recv(far_.get(), answer, sizeof answer, MSG_DONTWAIT) == sizeof answer, "no answer to a good machine");
      identity = std::uint32_t(answer[2]);
    } else {
      agree();
      struct {
        vfio::Header header{7, vfio::Command::region_read, 32, 0, 0};
        vfio::RegionAccess access{0, vfio::kConfig, 4};
      } read;
      say(&read, sizeof read);
      client_->serve();
      std::uint8_t answer[4096];
      const auto bytes = ::recv(far_.get(), answer, sizeof answer, MSG_DONTWAIT);
      require(bytes >= 36, "no answer to a good machine");
      std::memcpy(&identity, answer + bytes - 4, sizeof identity);
    }
    require(identity == (std::uint32_t{abi::kPciDeviceId} << 16 | abi::kPciVendorId), "the device is another one");
  }

  void agree() {
    const vfio::Header header{1, vfio::Command::version, 20, 0, 0};
    say(&header, sizeof header);
    const vfio::Version version;
    say(&version, sizeof version);
  }

 private:
  void say(const void* bytes, std::size_t size) { send({static_cast<const std::uint8_t*>(bytes), size}); }

  GuestPort port_;
  const bool speaks_qemu_;
  Descriptor far_;
  std::unique_ptr<GuestClient> client_;
};

struct World {
  System system{"system", load_config("cx5-100g", "back-to-back", {}), 1, {}, nullptr, {0, 1}};
  Machine qemu{"qemu", *system.host(0).adapters().front(), true};
  Machine vfio{"vfio", *system.host(1).adapters().front(), false};
};

World& fresh_world() {
  static std::unique_ptr<World> world;
  static int uses = 0;
  if (!world || ++uses % 64 == 0) {
    world.reset();
    sc_core::sc_get_curr_simcontext()->reset();
    world = std::make_unique<World>();
    // A system of two guests has no processes to start.
    sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
    world->system.start();
  }
  return *world;
}

// Descriptors that the first byte of a body selects.
std::vector<int> chosen(std::uint8_t which, const Descriptor& memory, const Descriptor& event) {
  std::vector<int> all;
  for (unsigned i = 0; i < (which & 0xfu); ++i) all.push_back((which & 0x10) != 0 ? event.get() : memory.get());
  return all;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto qemu_says = [](Script& script, std::uint8_t descriptors, std::int32_t command, const auto&... body) {
    script.step(Step::to_qemu, descriptors, command, body...);
  };
  const auto vfio_says = [](Script& script, std::uint8_t descriptors, vfio::Command command, const auto&... body) {
    script.step(Step::to_vfio, descriptors, std::uint16_t(command), std::uint32_t{0}, body...);
  };
  const auto bar_write = [&](Script& script, std::uint32_t offset, std::uint32_t value) {
    qemu_says(script, 0, 4, std::uint64_t{offset}, std::uint64_t{__builtin_bswap32(value)}, std::uint32_t{4},
              std::uint32_t{1});
    vfio_says(script, 0, vfio::Command::region_write, std::uint64_t{offset}, vfio::kBar0, std::uint32_t{4},
              __builtin_bswap32(value));
  };
  Script machine;
  qemu_says(machine, 0, 7);
  std::uint64_t shared[24] = {kMemory};
  shared[8] = kMemoryBytes;
  qemu_says(machine, 1, 0, shared);
  vfio_says(machine, 1, vfio::Command::dma_map, vfio::DmaMap{32, 3, 0, kMemory, kMemoryBytes});
  vfio_says(machine, 0, vfio::Command::dma_map, vfio::DmaMap{32, 3, 0, kMemory + kMemoryBytes, kMemoryBytes});
  vfio_says(machine, 0x18, vfio::Command::set_irqs, vfio::IrqSet{20, 0x24, 2, 0, 8});
  qemu_says(machine, 0, 2, std::uint32_t{abi::config::kCommand}, std::uint32_t{6}, std::int32_t{2});
  vfio_says(machine, 0, vfio::Command::region_write, std::uint64_t{abi::config::kCommand}, vfio::kConfig,
            std::uint32_t{2}, std::uint16_t{6});
  for (const auto queue : {kMemory, kMemory + kMemoryBytes, std::uint64_t{0}}) {
    bar_write(machine, abi::reg::kCommandQueueBase, std::uint32_t(queue >> 32));
    bar_write(machine, abi::reg::kCommandQueueBase + 4, std::uint32_t(queue));
    bar_write(machine, abi::reg::kCommandDoorbell, 0xff);
    machine.step(Step::run, std::uint16_t{20});
  }
  all.push_back(machine);
  machine.step(Step::shrink);
  bar_write(machine, abi::reg::kCommandDoorbell, 1);
  machine.step(Step::run, std::uint16_t{20}).step(Step::hang_up, std::uint8_t{0}).step(Step::hang_up, std::uint8_t{1});
  all.push_back(machine);

  Script questions;
  for (std::uint16_t command = 0; command < 20; ++command)
    questions.step(Step::to_vfio, std::uint8_t{0}, command, std::uint32_t{0}, std::uint32_t{32}, std::uint32_t{0},
                   std::uint32_t{2}, std::uint32_t{0}, std::uint64_t{0}, std::uint64_t{0});
  for (std::int32_t command = 0; command < 9; ++command) qemu_says(questions, 0, command, shared);
  all.push_back(questions);

  Script versions;
  const std::string text = "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":4096}}";
  versions.step(Step::raw, std::uint8_t{1}, std::uint16_t{1}, std::uint16_t{1}, std::uint32_t(17 + text.size()),
                std::uint64_t{0}, std::vector<char>(text.begin(), text.end()), std::uint8_t{0});
  versions.step(Step::raw, std::uint8_t{0}, std::vector<char>(64, 'x'));
  all.push_back(versions);
  // A reply before its request.
  Script answers;
  vfio_says(answers, 0, vfio::Command::dma_map, vfio::DmaMap{32, 3, 0, 0, kMemoryBytes});
  vfio_says(answers, 0, vfio::Command::region_write, std::uint64_t{abi::config::kCommand}, vfio::kConfig,
            std::uint32_t{2}, std::uint16_t{6});
  vfio_says(answers, 0, vfio::Command::region_write, std::uint64_t{abi::reg::kCommandDoorbell}, vfio::kBar0,
            std::uint32_t{4}, std::uint32_t{0x01000000});
  answers.step(Step::silent, vfio::Header{0, vfio::Command::dma_read, 16 + 16 + 64, 1, 0}, std::uint64_t{0},
               std::uint64_t{64}, std::vector<std::uint8_t>(64, 1));
  answers.step(Step::run, std::uint16_t{50});
  all.push_back(answers);
  return all;
}

}  // namespace rnicsim::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  auto& world = fresh_world();
  const Descriptor memory(::memfd_create("guest", MFD_CLOEXEC)), event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  require(::ftruncate(memory.get(), kMemoryBytes) == 0, "no memory");
  world.qemu.connect();
  world.vfio.connect();
  world.vfio.agree();
  Input input(data, size);
  for (int i = 0; i < kMostSteps && !input.empty(); ++i) {
    const auto [kind, body] = input.take_step();
    Input step(body);
    switch (kind % kinds) {
      case raw: {
        auto& machine = step.take<std::uint8_t>() == 0 ? world.qemu : world.vfio;
        machine.connect();
        machine.send(step.take_span(body.size()));
        break;
      }
      case to_qemu: {
        const auto descriptors = chosen(step.take<std::uint8_t>(), memory, event);
        const auto command = step.take<std::int32_t>();
        const auto rest = step.take_span(body.size());
        Bytes message(16);
        const std::uint64_t bytes = rest.size();
        std::memcpy(message.data(), &command, sizeof command);
        std::memcpy(message.data() + 8, &bytes, sizeof bytes);
        message.insert(message.end(), rest.begin(), rest.end());
        world.qemu.send(message, descriptors);
        break;
      }
      case to_vfio: {
        const auto descriptors = chosen(step.take<std::uint8_t>(), memory, event);
        sim::vfio_user::Header header{9, sim::vfio_user::Command(step.take<std::uint16_t>()), 16,
                                      step.take<std::uint32_t>(), 0};
        const auto rest = step.take_span(body.size());
        header.bytes += std::uint32_t(rest.size());
        Bytes message(sizeof header);
        std::memcpy(message.data(), &header, sizeof header);
        message.insert(message.end(), rest.begin(), rest.end());
        world.vfio.send(message, descriptors);
        break;
      }
      case silent: world.vfio.send(body); continue;  // arrives while the device waits for a reply, if it waits
      case run: run_until(now() + Duration{std::int64_t{step.take<std::uint16_t>() % 100 + 1} * 1'000'000}); break;
      case shrink: require(::ftruncate(memory.get(), 0) == 0, "a file that keeps its length"); break;
      case hang_up: (step.take<std::uint8_t>() == 0 ? world.qemu : world.vfio).hang_up(); break;
    }
    world.qemu.serve();
    world.vfio.serve();
  }
  run_until(now() + Duration{20'000'000});
  world.qemu.check();
  world.vfio.check();
  return 0;
}
