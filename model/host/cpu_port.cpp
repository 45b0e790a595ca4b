// SPDX-License-Identifier: Apache-2.0
#include "model/host/cpu_port.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "model/host/memory/page_faults.h"
#include "model/host/root_complex.h"

namespace rnicsim::host {
namespace {

constexpr std::size_t kArenaBytes = 256 << 20;  // reserved, not resident

// CPU time that a thread may use before it waits for it: keeps the kernel's clock near the thread's. Memory that the
// thread reads is at most so much older than its clock.
constexpr Duration kMostCharged{100'000};
constexpr Duration kMostChargedAlone{1'000'000};

bool is_ready(int fd, short events) {
  pollfd entry{fd, events, 0};
  return poll(&entry, 1, 0) == 1;
}

std::optional<ContextFile> file_behind(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return ContextFile{status.st_dev, status.st_ino};
}

}  // namespace

CpuPort::CpuPort(const HostParams& params, KernelAgent& agent)
    : params_(params),
      simulation_(*sc_core::sc_get_curr_simcontext()),
      agent_(agent),
      kernel_(agent.kernel()),
      root_complex_(agent.root_complex()),
      memory_(kArenaBytes),
      pasid_(kernel_.attach(memory_)) {
  followed_ = bool(agent.software);
  const auto& arena = memory_.arena();
  kernel_.pin(pasid_, reinterpret_cast<std::uint64_t>(arena.begin()), arena.size());
  root_complex_.dma_written.subscribe([this](const DmaWrite& write) {
    if (write.pasid == pasid_) written();
  });
}

CpuPort::~CpuPort() {
  for (const auto& [channel, fd] : channels_) close(fd);
  for (const auto& [domain, fd] : domains_) close(fd);
}

void CpuPort::look_up(const sc_core::sc_process_b* process) {
  last_process_ = process;
  last_thread_ = &threads_[process];
}

void CpuPort::settle() { settle(current_thread()); }

void CpuPort::settle(Thread& thread) {
  if (thread.charged == Duration{}) return;
  const std::uint64_t before = visible_writes_;
  thread.sleep.until(now() + std::exchange(thread.charged, Duration{}));
  if (visible_writes_ != before) thread.seen_meanwhile = true;
}

void CpuPort::wait_until(Duration at) {
  Thread& thread = current_thread();
  settle(thread);
  thread.sleep.until(at);
}

void CpuPort::leave() {
  settle();
  if (auto* agenda = Agenda::current()) agenda->release();
  last_thread_ = nullptr;
  threads_.erase(sc_core::sc_get_current_process_b());
}

void CpuPort::exit() {
  settle();
  bool forgotten = false;
  sc_core::sc_event done("done");
  kernel_.detach(pasid_, [&] {
    forgotten = true;
    wake(done);
  });
  while (!forgotten) sleep_on(done);
}

void CpuPort::system_call() {
  charge(abi::CpuCost::system_call, 1);
  settle();
}

// A single thread ahead of the simulation cannot disturb other threads; only the kernel can affect it.
bool CpuPort::alone() const { return threads_.size() == 1 && kernel_.processes() == 1; }

void CpuPort::work(Thread& thread, Duration time) {
  thread.charged += time;
  if (thread.meter != nullptr) *thread.meter += time;
}

// A CPU with full write buffers goes on later.
void CpuPort::mmio_write(std::uint32_t offset, std::span<const std::byte> data) {
  Thread& thread = current_thread();
  if (!alone()) {
    settle(thread);
    const Duration room = root_complex_.mmio_room(data.size());
    agent_.mmio_write(pasid_, offset, Payload::copy_of(data));
    return work(thread, std::max(room - now(), Duration{}));
  }
  const Duration at = now() + thread.charged;
  path_.free = std::max(path_.free, root_complex_.path().free);
  work(thread, std::max(path_.room(data.size(), params_), at) - at);
  path_.occupy(at, data.size(), params_);
  stores_.push(at, {offset, Payload::copy_of(data)});
}

void CpuPort::store_due() {
  Store store;
  while (stores_.pop_due(store)) agent_.mmio_write(pasid_, store.offset, std::move(store.data));
}

std::uint64_t CpuPort::mmio_read(std::uint32_t offset, std::uint32_t bytes) {
  settle();
  store_due();  // earlier stores go ahead of the read
  return agent_.mmio_readable(pasid_, offset, bytes) ? root_complex_.mmio_read(offset, bytes) : ~0ull;
}

std::byte* CpuPort::allocate(std::size_t bytes, std::size_t alignment) {
  return memory_.arena().allocate(bytes, alignment);
}
void CpuPort::release(std::byte* memory, std::size_t bytes) { memory_.arena().release(memory, bytes); }

int CpuPort::pin(const void* address, std::size_t bytes, bool writable, std::uint64_t& bus_address) {
  system_call();
  bus_address = reinterpret_cast<std::uint64_t>(address);
  return kernel_.pin(pasid_, bus_address, bytes, writable);
}
int CpuPort::unpin(std::uint64_t bus_address, std::size_t bytes, bool writable) {
  system_call();
  return kernel_.unpin(pasid_, bus_address, bytes, writable);
}
int CpuPort::make_present(std::uint32_t region, std::uint64_t address, std::size_t bytes, bool writable, bool waits) {
  system_call();
  if (!waits) return agent_.make_present(pasid_, region, address, bytes, writable, [](int) {});
  std::optional<int> error;
  sc_core::sc_event brought_in("brought_in");
  const int refused = agent_.make_present(pasid_, region, address, bytes, writable, [&](int result) {
    error = result;
    wake(brought_in);
  });
  if (refused != 0) return refused;
  while (!error) sleep_on(brought_in);
  return *error;
}
void CpuPort::withdraw(std::span<const std::byte> memory) {
  settle();
  bool gone = false;
  sc_core::sc_event withdrawn("withdrawn");
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const bool any = kernel_.page_faults().withdraw(pasid_, address, memory.size(), [&] {
    gone = true;
    wake(withdrawn);
  });
  while (any && !gone) sleep_on(withdrawn);
}
int CpuPort::alloc_pd(std::uint32_t& number) {
  system_call();
  return agent_.alloc_pd(pasid_, number);
}
int CpuPort::dealloc_pd(std::uint32_t number) {
  system_call();
  return agent_.dealloc_pd(pasid_, number);
}
int CpuPort::alloc_uar(std::uint32_t& page) {
  system_call();
  return agent_.alloc_uar(pasid_, page);
}
int CpuPort::free_uar(std::uint32_t page) {
  system_call();
  return agent_.free_uar(pasid_, page);
}
int CpuPort::alloc_dm(std::uint64_t bytes, std::uint32_t log_alignment, std::uint32_t& offset) {
  system_call();
  return agent_.alloc_dm(pasid_, bytes, log_alignment, offset);
}
int CpuPort::free_dm(std::uint32_t offset) {
  system_call();
  return agent_.free_dm(pasid_, offset);
}
int CpuPort::import_dm(std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) {
  system_call();
  return agent_.import_dm(pasid_, context, offset, bytes);
}

int CpuPort::open_context(int fd, std::uint32_t& number) {
  const auto file = file_behind(fd);
  return file ? agent_.open_context(pasid_, *file, number) : EINVAL;
}
int CpuPort::import_context(int fd, std::uint32_t& number) {
  system_call();
  const auto file = file_behind(fd);
  return file ? agent_.import_context(pasid_, *file, number) : EINVAL;
}
int CpuPort::close_context(std::uint32_t number) { return agent_.close_context(pasid_, number); }
int CpuPort::import_pd(std::uint32_t context, std::uint32_t number) {
  system_call();
  return agent_.import_pd(pasid_, context, number);
}

int CpuPort::open_xrcd(int fd, int flags, std::uint32_t& number) {
  system_call();
  if (fd == -1) return agent_.open_xrcd(pasid_, std::nullopt, flags, number);
  const auto file = file_behind(fd);
  const int mine = file ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
  if (mine < 0) return EBADF;
  const int error = agent_.open_xrcd(pasid_, *file, flags, number);
  error == 0 ? void(domains_.emplace(number, mine)) : void(close(mine));
  return error;
}
int CpuPort::close_xrcd(std::uint32_t number) {
  system_call();
  const int error = agent_.close_xrcd(pasid_, number);
  const auto file = error == 0 ? domains_.find(number) : domains_.end();
  if (file == domains_.end()) return error;
  close(file->second);
  domains_.erase(file);
  return 0;
}
int CpuPort::open_qp(std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) {
  system_call();
  return agent_.open_qp(pasid_, xrcd, qpn, events);
}

int CpuPort::command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) {
  charge(abi::CpuCost::command, 1);
  settle();
  std::optional<int> error;
  sc_core::sc_event answered("answered");
  agent_.command(pasid_, events, {input.begin(), input.end()}, [&](int refused, std::span<const std::byte> answer) {
    std::ranges::copy(answer.first(std::min(answer.size(), output.size())), output.begin());
    error = refused;
    wake(answered);
  });
  while (!error) sleep_on(answered);
  charge(abi::CpuCost::command, 1);
  return *error;
}

int CpuPort::open_channel(int fd, std::uint32_t& channel) {
  system_call();
  const int mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (mine < 0) return errno;
  channel = agent_.open_channel(pasid_, [this, mine](const abi::EventRecord& record) {
    // A write to a full pipe would block the whole simulation.
    const bool written = is_ready(mine, POLLOUT) && write(mine, &record, sizeof record) == sizeof record;
    wake(readable_);
    return written;
  });
  channels_.emplace(channel, mine);
  return 0;
}

int CpuPort::close_channel(std::uint32_t channel) {
  system_call();
  const int error = agent_.close_channel(pasid_, channel);
  if (error == 0) {
    close(channels_.at(channel));
    channels_.erase(channel);
  }
  return error;
}

int CpuPort::bind_completions(std::uint32_t cqn, std::uint32_t channel) {
  system_call();
  return agent_.bind_completions(pasid_, cqn, channel);
}
int CpuPort::bind_events(std::uint32_t channel) {
  system_call();
  return agent_.bind_events(pasid_, channel);
}
int CpuPort::refill_channel(std::uint32_t channel) { return agent_.refill_channel(pasid_, channel); }

int CpuPort::port_info(abi::NetworkInterface& interface) {
  system_call();
  interface = agent_.interface();
  return 0;
}
int CpuPort::gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) {
  system_call();
  return agent_.gid_entry(port, index, entry);
}
int CpuPort::lid_route(std::uint16_t lid, abi::GidEntry& route) {
  system_call();
  return agent_.lid_route(lid, route);
}
int CpuPort::resolve_path(abi::AddressVector& path) {
  system_call();
  const int error = agent_.resolve_path(path);
  if (error != ETIMEDOUT) return error;
  bool given_up = false;
  sc_core::sc_event answered("answered");
  agent_.await_neighbour(pasid_, [&] {
    given_up = true;
    wake(answered);
  });
  while (!given_up) sleep_on(answered);
  return error;
}
std::uint32_t CpuPort::completion_vectors() const { return agent_.completion_vectors(); }

int CpuPort::rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
                     std::span<std::byte> output) {
  system_call();
  return kernel_.rdma_cm(pasid_, channel, command, input, output);
}

void CpuPort::charge(abi::CpuCost cost, std::uint32_t times) {
  Thread& thread = current_thread();
  work(thread, params_.cpu.cost(cost) * times);
  if (thread.charged >= kMostCharged && (thread.charged >= kMostChargedAlone || !alone())) settle(thread);
}

void CpuPort::wait_visible() {
  Thread& thread = current_thread();
  const Duration detect = params_.cpu.cost(abi::CpuCost::detect);
  if (std::exchange(thread.seen_meanwhile, false)) {
    thread.charged += detect;
    return settle(thread);
  }
  thread.busy_until = now() + std::exchange(thread.charged, Duration{});
  sleeping_.push_back(&thread);
  thread.sleep.until(thread.busy_until + params_.poll_interval + detect);
  std::erase(sleeping_, &thread);
}

// A thread that is still busy sees the write at the end of its work.
void CpuPort::written() {
  ++visible_writes_;
  const Duration seen = now() + params_.cpu.cost(abi::CpuCost::detect);
  for (auto* thread : sleeping_) thread->sleep.end(std::max(seen, thread->busy_until));
}

void CpuPort::wait_unlocked(const void*) {
  Thread& thread = current_thread();
  // A lock that was taken at the simulation's time may be free at the thread's time.
  if (thread.charged != Duration{}) return settle(thread);
  sleep_on(unlocked_);
  thread.charged += params_.cpu.cost(abi::CpuCost::detect);
}

bool CpuPort::hand_over(const void*) {
  settle();
  wake(unlocked_);
  return true;
}

void CpuPort::pass_lock(TimedLock& lock, abi::CpuCost held) {
  Thread& thread = current_thread();
  if (!alone()) settle(thread);
  const auto cost = [&](abi::CpuCost which) { return std::uint64_t(params_.cpu.cost(which).ps); };
  const std::uint64_t has_it =
      lock.take(std::uint64_t((now() + thread.charged).ps),
                {cost(abi::CpuCost::doorbell_lock), cost(abi::CpuCost::doorbell_lock_contended),
                 cost(abi::CpuCost::doorbell_lock_waiting), cost(held)});
  work(thread, Duration{std::int64_t(has_it)} - now() - thread.charged);
}

std::uint64_t CpuPort::time() { return std::uint64_t((now() + current_thread().charged).ps); }
void CpuPort::tell(const abi::Milestone& milestone) { agent_.software({pasid_, milestone}); }

bool CpuPort::wait_for_event(std::uint32_t, int fd, bool) {
  system_call();
  if (is_ready(fd, POLLIN)) return true;
  while (!is_ready(fd, POLLIN)) sleep_on(readable_);
  charge(abi::CpuCost::wakeup, 1);
  return true;
}

}  // namespace rnicsim::host
