// SPDX-License-Identifier: Apache-2.0
// A hostile program at the simulator's attach socket: hellos, and then arbitrary writes to its control region and
// socket. The fuzz target plays the threads. The process is real, and only sleeps.
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "model/abi/device.h"
#include "model/host/host_kernel.h"
#include "sim/adapter.h"
#include "sim/attached/attach_server.h"
#include "sim/attached/descriptor_budget.h"
#include "sim/attached/network/network.h"
#include "sim/attached/system_calls.h"
#include "sim/attached/time/time_keeper.h"
#include "sim/config/config.h"
#include "sim/simulated_host.h"
#include "sim/system.h"
#include "tests/soak/fuzz/device_objects.h"
#include "tests/soak/fuzz/fuzz.h"
#include "verbs/provider/commands.h"

namespace rnicsim::fuzz {
namespace {

using abi::Call;
using abi::ThreadSlot;
using sim::Descriptor;
using sim::Thread;
using sim::TurnEnd;

enum Step : std::uint8_t {
  call,
  scribble,
  post_mmio,
  advance,
  send_descriptors,
  send_message,
  hello,
  block,
  die,
  kinds
};

constexpr std::uint32_t kSomeChild = 0xc0;  // stands for the pid of a child that attaches

abi::NetAddress loopback(std::uint16_t port) {
  abi::NetAddress address{.port = port};
  address.ip[10] = address.ip[11] = 0xff;
  address.ip[12] = 127, address.ip[15] = 1;
  return address;
}

// Forks a process that sleeps until it is killed or the fuzzer dies. `server`: the process sends a hello there first.
pid_t sleeping_process(const std::string& server = {}, std::uint32_t flags = 0) {
  const pid_t pid = ::fork();
  require(pid >= 0, "no process can be made");
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!server.empty()) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, server.data(), server.size());
    ::connect(fd, reinterpret_cast<sockaddr*>(&address),
              socklen_t(offsetof(sockaddr_un, sun_path) + 1 + server.size()));
    abi::Hello greeting;
    greeting.pid = greeting.tid = std::uint32_t(::getpid());
    greeting.flags = flags;
    [[maybe_unused]] const auto sent = ::send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL);
  }
  for (;;) ::pause();
}

class World : public sim::Programs {
 public:
  World() {
    keeper_.on_standstill = [] { return false; };
    system_.start();
  }

  // Plays one process after the input, then a well-behaved process.
  void play(Input input) {
    input_ = input;
    steps_ = 0;
    run_process(false);
    run_process(true);
    while (take_stranger()) {}
  }

  // --- Interface Programs.
  void give_turn(Thread& thread) override {
    slot_of(thread).turn = ThreadSlot::kProcess;
    if (slot_of(thread).call != Call::exec_begin) return;
    // Within an exec no process waits for the turn: the exec failed.
    slot_of(thread).call = Call::exec_failed;
    slot_of(thread).turn = ThreadSlot::kKernel;
  }
  TurnEnd await_turn_end(Thread& thread, const Meanwhile&) override {
    if (has_ended(*thread.process)) return TurnEnd::died;
    const auto end = thread.process != main_ ? leave(thread) : good_ ? behave(thread) : misbehave(thread);
    ThreadSlot& slot = slot_of(thread);
    slot.turn = ThreadSlot::kKernel;
    return end;
  }
  void await_thread_end(const Thread&) override {}
  sim::SignalMasks signal_masks(const Thread& thread) const override {
    return {.blocked = thread.index % 2 != 0 ? ~sim::SignalSet{0} : 0, .caught = ~sim::SignalSet{0}};
  }
  void interrupt(const Thread&, std::uint32_t) override {}
  bool has_ended(const sim::Process& process) const override { return process.has_exited(); }
  bool is_stopped(const sim::Thread&) const override { return false; }
  bool sleeps(const sim::Thread&) const override { return false; }
  std::chrono::microseconds processor_time(const sim::Process&) const override { return {}; }
  std::string activity(const Thread&) const override { return "a step of the input"; }

 private:
  std::optional<sim::Guest> take_stranger() {
    return server_.take_stranger([](pid_t) { return false; });
  }

  void run_process(bool good) {
    good_ = good;
    good_step_ = 0;
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
    far_end_ = Descriptor(ends[0]);
    child_ = sleeping_process();
    sim::Guest guest{Descriptor(ends[1]), {}};
    guest.hello.pid = guest.hello.tid = std::uint32_t(child_);
    main_ = &calls_.admit(std::move(guest), 0, nullptr, now());
    do sc_core::sc_start(20, sc_core::SC_MS);
    while (good && good_step_ < kGoodSteps && keeper_.outlast_silence());
    require(!good || good_step_ == kGoodSteps, "a good process gets no further");
    const auto processes = keeper_.threads().processes().size();
    for (std::size_t i = 0; i < processes; ++i) {
      sim::Process& process = *keeper_.threads().processes()[i];
      if (!process.alive) continue;
      ::kill(process.identity().pid, SIGKILL);
      while (!process.has_exited()) {}
      calls_.process_died(process);
    }
    sc_core::sc_start(20, sc_core::SC_MS);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
    require(has_only_the_kernels(system_.adapter(0)), "an object of a dead process is left on the device");
  }

  TurnEnd leave(const Thread& thread) {
    ::kill(thread.process->identity().pid, SIGKILL);
    while (!thread.process->has_exited()) {}
    return TurnEnd::died;
  }

  TurnEnd misbehave(Thread& thread) {
    ThreadSlot& slot = slot_of(thread);
    for (;;) {
      if (input_.empty() || ++steps_ > kMostSteps) return leave(thread);
      const auto step = input_.take_step();
      Input body(step.body);
      switch (step.kind % kinds) {
        case call: return fill_call(thread, slot, body);
        case scribble: {
          const auto at = body.take<std::uint32_t>() % abi::kControlBytes;
          const auto bytes = body.take_span(abi::kControlBytes - at);
          std::memcpy(thread.process->control().data() + at, bytes.data(), bytes.size());
          continue;
        }
        case post_mmio: {
          auto& entry = slot.mmio[slot.mmio_produced % ThreadSlot::kMmioEntries];
          entry = body.take<abi::MmioWrite>();
          ++slot.mmio_produced;
          continue;
        }
        case advance: slot.now += body.take<std::uint32_t>(); continue;
        case send_descriptors: send(body); continue;
        case send_message: {
          const auto bytes = body.take_span(4096);
          ::send(far_end_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
          continue;
        }
        case hello: say_hello(body); continue;
        case block: slot.call = Call::sync; return TurnEnd::blocked;
        default: return leave(thread);
      }
    }
  }

  TurnEnd fill_call(Thread& thread, ThreadSlot& slot, Input& body) {
    slot.call = Call(body.take<std::uint8_t>());
    for (std::size_t i = 0; i < 4; ++i) slot.argument[i] = body.take<std::uint64_t>();
    const auto input = body.take_span(sizeof slot.input);
    std::memcpy(slot.input, input.data(), input.size());
    slot.input_bytes = std::uint32_t(input.size());
    ++slot.acted;
    // Small times count from now.
    const bool has_it_first = slot.call == Call::sleep || slot.call == Call::wait_descriptors;
    const bool timed = has_it_first || slot.call == Call::wait_address || slot.call == Call::set_timer ||
                       slot.call == Call::await_signal || slot.call == Call::sem_operate;
    auto& deadline = slot.argument[has_it_first ? 0 : 1];
    if (timed && deadline != 0 && deadline < 1'000'000'000'000) deadline += std::uint64_t(now().ps);
    const bool child = slot.call == Call::forked || slot.call == Call::spawned;
    // Waits in real time end at once: the event is present, or is known not to come.
    if (child)
      slot.argument[0] = slot.argument[0] == kSomeChild
                             ? std::uint64_t(sleeping_process(server_.name(), abi::Hello::kFork))
                             : 0x3fffffff;
    if (slot.call == Call::process_exit) leave(thread);
    return TurnEnd::given_back;
  }

  void send(Input& body) {
    std::vector<Descriptor> given;
    for (auto count = body.take<std::uint8_t>() % 66; count > 0; --count) {
      int ends[2] = {-1, -1};
      switch (body.take<std::uint8_t>() % 5) {
        case 0: ends[0] = ::open("/dev/null", O_RDWR | O_CLOEXEC); break;
        case 1: require(::pipe2(ends, O_CLOEXEC) == 0, "no pipe"); break;
        case 2: ends[0] = ::eventfd(7, EFD_CLOEXEC | EFD_SEMAPHORE); break;
        case 3: ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); break;
        default: ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
      }
      given.emplace_back(ends[0]);
      if (ends[1] >= 0) kept_.emplace_back(ends[1]);
    }
    abi::DescriptorMessage announcement{body.take<std::uint32_t>(), body.take<std::uint32_t>()};
    iovec part{&announcement, sizeof announcement};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(66 * sizeof(int))> ancillary{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!given.empty()) {
      message.msg_control = ancillary.data();
      message.msg_controllen = CMSG_SPACE(given.size() * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(given.size() * sizeof(int));
      for (std::size_t i = 0; i < given.size(); ++i) {
        const int fd = given[i].get();
        std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    ::sendmsg(far_end_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    // Some of these descriptors are written or closed while the simulator has the other end.
    if (kept_.size() > 8) kept_.erase(kept_.begin(), kept_.begin() + 4);
    const abi::DatagramHeader header{.address = loopback(7000), .time = std::uint64_t(now().ps)};
    for (const auto& fd : kept_) {
      ::send(fd.get(), "bytes", 5, MSG_DONTWAIT | MSG_NOSIGNAL);
      ::send(fd.get(), &header, sizeof header, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  }

  // A hello of an unknown process. A valid hello must be accepted afterwards.
  void say_hello(Input& body) {
    const auto flags = body.take<std::uint8_t>();
    const auto rest = body.take_span(4096);
    Bytes bytes(rest.begin(), rest.end());
    const auto own = std::uint32_t(::getpid());
    if ((flags & 1) == 0 && bytes.size() >= 16) std::memcpy(bytes.data() + offsetof(abi::Hello, pid), &own, sizeof own);
    const auto connect = [&] {
      Descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path + 1, server_.name().data(), server_.name().size());
      const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + server_.name().size());
      require(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0, "the simulator does not listen");
      return fd;
    };
    const auto stranger = connect();
    ::send(stranger.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    const auto first = take_stranger();
    if (!first && !bytes.empty()) {
      abi::Welcome answer;
      require(
          ::recv(stranger.get(), &answer, sizeof answer, MSG_DONTWAIT) == ssize_t(sizeof answer) && answer.error > 0,
          "a wrong hello is not answered");
    }
    if (first)
      require(std::memchr(first->hello.host, 0, sizeof first->hello.host) &&
                  std::memchr(first->hello.program, 0, sizeof first->hello.program),
              "a hello's names do not end");
    const auto visitor = connect();
    abi::Hello good;
    good.pid = good.tid = own;
    ::send(visitor.get(), &good, sizeof good, MSG_DONTWAIT | MSG_NOSIGNAL);
    require(take_stranger().has_value(), "a good hello is not taken");
  }

  // A well-behaved program: the result of each call is checked in the next turn.
  static constexpr int kGoodSteps = 7;
  TurnEnd behave(Thread& thread) {
    ThreadSlot& slot = slot_of(thread);
    const auto input = [&](const auto& mailbox) {
      const auto bytes = provider::encode(mailbox);
      std::memcpy(slot.input, bytes.data(), bytes.size());
      slot.input_bytes = std::uint32_t(bytes.size());
    };
    if (good_step_ > 0) require(slot.error == 0, "a good call is refused");
    if (good_step_ == 5) {
      abi::CommandResult result;
      std::memcpy(static_cast<void*>(&result), slot.output, sizeof result);
      require(result.status == abi::CommandStatus::ok, "a good command is refused");
    }
    slot.argument[0] = slot.argument[1] = 0;
    switch (good_step_++) {
      case 0: slot.call = Call::alloc_pd; break;
      case 1: slot.call = Call::alloc_uar; break;
      case 2: slot.call = Call::sleep, slot.argument[0] = slot.now + 1'000'000; break;
      case 3: slot.call = Call::port_info; break;
      case 4: slot.call = Call::command, input(provider::header(abi::CommandOpcode::query_device)); break;
      case 5: slot.call = Call::look; break;
      default: good_step_ = kGoodSteps; return leave(thread);
    }
    return TurnEnd::given_back;
  }

  static constexpr int kMostSteps = 200;

  sim::System system_{"system", sim::load_config("cx5-100g", "back-to-back", {})};
  sim::OutputRelay output_;
  sim::AttachServer server_{sim::AttachServer::random_name("rnicsim-")};
  sim::TimeKeeper keeper_{"time_keeper", {}, *this, output_};
  sim::Network network_{"network", system_.config().network, system_.config().topology.interfaces};
  sim::DescriptorBudget budget_;
  sim::SystemCalls calls_{{}, services(), keeper_, network_, server_, budget_};
  Input input_{nullptr, 0};
  int steps_ = 0;
  bool good_ = false;
  int good_step_ = 0;
  pid_t child_ = 0;
  sim::Process* main_ = nullptr;
  Descriptor far_end_;
  std::vector<Descriptor> kept_;

  std::vector<sim::HostServices> services() {
    std::vector<sim::HostServices> all;
    for (std::size_t i = 0; i < system_.hosts(); ++i) {
      auto& host = system_.host(i);
      all.push_back({host.name(), &host.kernel(), {&host.adapters().front()->agent()}, &system_.config().host});
    }
    return all;
  }
};

World& fresh_world() {
  static std::unique_ptr<World> world;
  static int uses = 0;
  if (!world || ++uses % 64 == 0) {
    world.reset();
    sc_core::sc_get_curr_simcontext()->reset();
    world = std::make_unique<World>();
  }
  return *world;
}

}  // namespace

std::vector<Bytes> seeds() {
  using enum Call;
  const auto plain = [](Script& script, Call which, std::uint64_t a = 0, std::uint64_t b = 0,
                        std::uint64_t c = 0) -> Script& {
    return script.step(Step::call, static_cast<std::uint8_t>(which), a, b, c, std::uint64_t{0});
  };
  const auto carrying = [](Script& script, Call which, std::uint64_t a, std::uint64_t b, const auto& input) -> Script& {
    return script.step(Step::call, static_cast<std::uint8_t>(which), a, b, std::uint64_t{0}, std::uint64_t{0}, input);
  };
  std::vector<Bytes> all;
  Script every;
  for (std::uint32_t which = 0; which <= std::uint32_t(count); ++which)
    if (Call(which) != process_exit) plain(every, Call(which), 1, 1);
  all.push_back(every);
  for (std::uint32_t which = 0; which < std::uint32_t(count); ++which) {
    Script script;
    plain(script, thread_new);
    plain(script, thread_start, 1);
    plain(plain(script, Call(which), 0, 1'000'000), Call(which), 1'000'000'000, abi::kForever);
    all.push_back(plain(script, thread_exit, 1));
  }
  {
    Script script;
    plain(plain(script, alloc_pd), alloc_uar);
    abi::Cqc cq;
    cq.uar_page = 1;
    cq.log_entries = 4;
    carrying(script, command, 0, 0, provider::create_cq(0, cq));
    script.step(send_descriptors, std::uint8_t{1}, std::uint8_t{1}, 1u, 0u);
    plain(plain(plain(script, open_channel), bind_channel, 0, 1, 1), bind_channel, 1, 0, 1);
    plain(plain(script, pin, abi::kMemoryAddress, 4096), unpin, abi::kMemoryAddress, 4096);
    abi::MmioWrite write;
    write.offset = abi::kUarBase + abi::kUarPageSize + abi::uar::kCqArm;
    write.length = 8;
    write.data[2] = 1;
    script.step(post_mmio, write).step(advance, 1'000'000u);
    plain(plain(script, mmio_read, abi::reg::kClock, 8), close_channel, 1);
    all.push_back(plain(script, process_exit));
  }
  {
    Script script;
    const abi::NetAddress address = loopback(7000);
    for (int i = 0; i < 2; ++i) {
      script.step(send_descriptors, std::uint8_t{1}, std::uint8_t{3}, 1u, 0u);
      plain(script, net_socket);
    }
    carrying(script, net_bind, 1, 7000, address);
    plain(script, net_listen, 1, 4);
    carrying(script, net_connect, 2, 7000, address);
    plain(plain(plain(script, net_accept, 1), net_name, 2), net_flush);
    all.push_back(plain(script, sleep, 1'000'000'000'000));
  }
  {
    Script script;
    const abi::NetAddress address = loopback(7000);
    for (int i = 0; i < 3; ++i) {
      script.step(send_descriptors, std::uint8_t{1}, std::uint8_t{4}, 1u, 0u);
      plain(script, dgram_socket, i < 2 ? 4 : 6);
      plain(script, dgram_option, i + 1, i, 1);
    }
    carrying(script, dgram_bind, 1, 0, address);
    carrying(carrying(script, dgram_connect, 2, 0, address), dgram_send, 3, 0, loopback(7001));
    // all received descriptors are written afterwards
    script.step(send_descriptors, std::uint8_t{1}, std::uint8_t{4}, 1u, 0u);
    plain(plain(script, dgram_disconnect, 2), dgram_name, 2);
    all.push_back(plain(script, sleep, 1'000'000'000'000));
  }
  all.push_back([&] {
    Script script;
    plain(plain(script, forked, kSomeChild), wait_child);
    return plain(plain(script, spawned, kSomeChild), wait_child, 0, 1);
  }());
  abi::Hello good;
  all.push_back(Script()
                    .step(hello, std::uint8_t{0}, good)
                    .step(hello, std::uint8_t{1}, good)
                    .step(hello, std::uint8_t{0})
                    .step(hello, std::uint8_t{0}, Bytes(200)));
  all.push_back(Script()
                    .step(scribble, std::uint32_t(abi::kThreadSlots), Bytes(64, 0xff))
                    .step(block)
                    .step(send_message, Bytes(8))
                    .step(die));
  // The clock of a waiting thread is set to the end of time. The thread is woken, or wakes by itself.
  constexpr auto kFirstClock = std::uint32_t(abi::kThreadSlots + offsetof(ThreadSlot, now));
  for (const auto which : {sleep, wait_address, spin, look, wait_descriptors}) {
    Script script;
    plain(plain(plain(script, thread_new), thread_start, 1), sync);
    plain(plain(script, which, 3'000'000, 1'000'000'000), sync);
    plain(script.step(advance, 2'000'000u), sync);
    script.step(scribble, kFirstClock, ~std::uint64_t{0} >> 1);
    plain(plain(script, wake_address, 3'000'000, 8), set_timer, 0, 1'000'000);
    all.push_back(plain(plain(script, sleep, 10'000'000'000), sleep, 20'000'000'000));
  }
  {
    Script script;
    all.push_back(plain(plain(script, set_timer, 0, 1), sleep, 10'000'000'000));
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  fresh_world().play(Input(data, size));
  return 0;
}
