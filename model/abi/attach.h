// The operating system's services: what a process of a simulated host asks of that host's kernel, and the shared
// memory and socket over which a real process asks it. docs/host-services.md is checked against this file.
//
// A process connects to the simulator's socket (SOCK_SEQPACKET, abstract name in kSocketVariable), sends Hello and
// receives Welcome with two descriptors: its control region and its DMA memory. From then on each of its threads owns
// one ThreadSlot of the control region and makes calls there. Descriptors travel over the socket beside a call.
//
// fork: the child inherits nothing; it connects anew with Hello::kFork. exec: the new image connects anew with
// Hello::kExec. Death, however it comes, closes the socket: the kernel destroys the process's objects, in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rnicsim::abi {

inline constexpr std::uint32_t kAttachMagic = 0x524e4f53;  // "RNOS"
inline constexpr std::uint16_t kAttachMajor = 18;          // refused if it differs
inline constexpr std::uint16_t kAttachMinor = 0;

inline constexpr char kSocketVariable[] = "RNICSIM_SOCKET";  // abstract socket's name, without the leading NUL
inline constexpr char kHostVariable[] = "RNICSIM_HOST";      // name of the host the process runs on
// The libraries are found through this descriptor (/proc/self/fd/900): a path of constant length, so that the folder in
// which they lie does not move a program's memory. kLibrariesVariable names the folder, for a program that closed it.
inline constexpr int kLibraryDescriptor = 900;
inline constexpr char kLibrariesVariable[] = "RNICSIM_LIBRARIES";
// With this signal the simulator asks a thread what it does that does not come back (ThreadSlot::asked).
inline constexpr int kLookSignal = 62;

// The memory behind huge pages of a simulated host is a file of this name (memfd_create(2)).
inline constexpr char kHugePagesName[] = "rnicsim-huge-pages";
inline constexpr std::size_t kHugePageBytes = 2 << 20;

namespace attach_feature {
inline constexpr std::uint64_t kSimulatedTime = 1ull << 0;  // threads take turns; ThreadSlot::now is their clock
inline constexpr std::uint64_t kMilestones = 1ull << 1;     // threads tell what they post and poll
inline constexpr std::uint64_t kEachLook = 1ull << 2;       // each look takes a turn, and no loop of looks is parked
}

struct Hello {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::uint32_t pid = 0;        // real, of this process; checked against SO_PEERCRED
  std::uint32_t tid = 0;        // real, of the thread that says hello: it gets slot 0
  std::uint32_t parent_pid = 0; // real; with kFork
  std::uint32_t flags = 0;
  char host[64] = {};
  char program[64] = {};        // for messages

  static constexpr std::uint32_t kFork = 1u << 0;
  static constexpr std::uint32_t kExec = 1u << 1;
  static constexpr std::uint32_t kRandomAddresses = 1u << 2;  // address randomisation is on
};
static_assert(sizeof(Hello) == 152);

struct Welcome {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::int32_t error = 0;       // 0, or the errno with which the hello was refused
  std::uint32_t reserved = 0;
  std::uint64_t control_bytes = 0;
  std::uint64_t memory_bytes = 0;
  char message[232] = {};       // why it was refused
};
static_assert(sizeof(Welcome) == 264);

// Every descriptor that travels is announced by this message on the socket (SCM_RIGHTS), just before its call, or
// just before the call's answer.
struct DescriptorMessage {
  std::uint32_t count = 0;      // descriptors in this message, at most kMaxDescriptors
  std::uint32_t slot = 0;
};
inline constexpr std::uint32_t kMaxDescriptors = 64;

// What the CPU charges for, in ControlHeader::cost.
enum class CpuCost : std::uint32_t {
  clock_read,        // clock_gettime, gettimeofday, time, rdtsc
  system_call,       // a call into the kernel that does nothing dear
  post_wqe,          // a send WQE built in its ring
  post_recv,         // a receive WQE built and published
  mmio_write,        // the store to the doorbell or BlueFlame window, until the CPU goes on
  mmio_read,
  poll_cq,           // one look at a CQ
  poll_cqe,          // one CQE taken
  detect,            // memory written by the device until a spinning CPU sees it
  wakeup,            // an event until a blocked thread runs again
  command,           // a verb that goes through the kernel, one way
  ring_doorbell,     // what was posted made visible: doorbell record and barrier, before the store
  doorbell_lock,     // the lock of a doorbell page that threads share, when it is free
  doorbell_lock_contended,  // the same when another thread has it, from when it becomes free
  doorbell_lock_waiting,    // the same, for each thread besides that waits before this one
  inline_receive,    // a payload copied from its CQE to where the receive says
  count
};

// Bit n of word n / 64 is processor n.
struct ProcessorSet {
  std::uint64_t bits[16] = {};
};

struct ControlHeader {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::uint64_t features = 0;        // attach_feature bits
  std::uint64_t epoch = 0;           // seconds since 1970 at simulated time 0
  std::uint64_t uptime = 0;          // seconds since the host's boot at simulated time 0
  std::uint64_t random_seed = 0;     // of this process
  std::uint32_t virtual_pid = 0;
  std::uint32_t virtual_parent_pid = 0;
  std::uint32_t host_index = 0;
  std::uint32_t interface_count = 0;
  char host[64] = {};
  std::uint32_t cost[std::size_t(CpuCost::count)] = {};  // picoseconds
  ProcessorSet processors;           // that the host has: this machine's, as far as the simulator may use them
  std::uint32_t signals_sent = 0;    // to other processes by the real kernel, counted by this one
  std::uint32_t real_call = 0;       // 1 + number of a system call that went to the real kernel and may tell of it
  std::uint32_t shared_waits = 0;    // threads of the host that wait in memory that processes share
  std::uint32_t no_child_stops = 0;  // written by the process; 1: SIGCHLD tells it of no stops (SA_NOCLDSTOP)
  std::uint64_t ended_threads_time = 0;  // of the CPU, in picoseconds: of this process's, in earlier images too
  std::uint64_t children_time = 0;       // written by the process: those that it has waited for, and theirs
};

// A signal as its receiver is told of it (siginfo_t).
struct SignalRecord {
  std::uint32_t number = 0;
  std::int32_t code = 0;             // SI_USER, SI_QUEUE, SI_TIMER ...
  std::uint32_t pid = 0;             // virtual, of who sent it; of a timer: its number
  std::uint32_t uid = 0;             // of who sent it; of a timer: its overruns
  std::uint64_t value = 0;           // of SIGCHLD: the child's status, as siginfo_t has it
};
static_assert(sizeof(SignalRecord) == 24);

// A network interface of a simulated host, at kInterfaceTable of the control region: that of one of its NICs, whose
// GIDs follow from it. The first of each host stand first, in the order of the hosts.
struct NetworkInterface {
  char name[64] = {};        // of the host
  std::uint8_t ipv4[4] = {};
  std::uint8_t ipv4_prefix = 0;
  std::uint8_t ipv6_prefix = 0;
  std::uint8_t mac[6] = {};
  std::uint8_t ipv6[16] = {};
  std::uint16_t lid = 0;     // of its port; 0 without host.lid_paths
  std::uint16_t host = 0;    // number; ControlHeader::host_index is the reader's own
  std::uint16_t device = 0;  // of that host: 0 is the first
};
static_assert(sizeof(NetworkInterface) == 98);
inline constexpr std::uint32_t kMaxDevices = 8;  // of a host

// A posted write to the BAR, to a UAR page or device memory of the process.
struct MmioWrite {
  std::uint64_t time = 0;   // of the thread, in picoseconds
  std::uint32_t offset = 0; // in BAR0
  std::uint16_t length = 0; // 4, 8, or a multiple of 64 up to 256
  std::uint16_t device = 0; // of the host
  std::uint8_t data[256] = {};
};

enum class MilestoneKind : std::uint16_t {
  posted,                     // send WQEs, about to be announced by one doorbell
  polled,                     // CQEs taken
};

// What a thread did with a queue, for whoever follows work requests through the system.
struct Milestone {
  std::uint64_t time = 0;     // of the thread, in picoseconds: the first WQE was begun; the last CQE was taken
  std::uint32_t queue = 0;    // qpn; cqn
  std::uint32_t position = 0; // index of the first WQE; consumer
  std::uint32_t count = 0;    // WQEs; CQEs
  MilestoneKind kind = MilestoneKind::posted;
  std::uint16_t device = 0;   // of the host
};
static_assert(sizeof(Milestone) == 24);

// What a thread knows that says it waits for memory to change.
enum class SpinProof : std::uint32_t {
  proved,   // it may have stored something before
  unmoved,  // it came round once more, and stored nothing since it was woken
  guessed,
};

// A loop of looks (empty polls, yields) that was proved to come round to the same state, in Call::spin's input: its
// looks, then the pages that its instructions read.
struct LoopLook {
  std::uint64_t begins = 0;  // picoseconds after the first look of the round began
  std::uint64_t ends = 0;
};
static_assert(sizeof(LoopLook) == 16);
inline constexpr std::uint32_t kMostLoopLooks = 192;  // of a round
inline constexpr std::uint32_t kMostLoopPages = 64;   // that a round reads
inline constexpr std::uint64_t kLoopPage = 4096;
static_assert(kMostLoopLooks * sizeof(LoopLook) + kMostLoopPages * sizeof(std::uint64_t) <= 4096);

enum class Call : std::uint32_t {
  none,
  // time
  sync,             // let the world reach ThreadSlot::now
  look,             // the thread looks at memory at ThreadSlot::now: the world comes to the time CpuCost::detect before
                    // that. argument[0] = 1: the thread is only as far ahead of the world as it may be
  spin,             // until the device wrote anywhere into the process or interrupted.
                    // argument[0] = SpinProof; value = 1: only because another thread of the process, or another
                    // process of its host, may have stored something. With argument[1] = period of a loop of looks in
                    // ps: until one of its looks can see something new, which the device wrote into DMA memory or into
                    // a page that the loop reads. argument[2] = looks, [3] = pages; kMostLoopPages + 1: any page; [4] =
                    // ThreadSlot::changes when the round that is over began, [5] = when that was, in ps. On return
                    // argument[2] = the look that is next, and ThreadSlot::now = when it begins; EAGAIN: something has
                    // changed in the round
  sleep,            // until argument[0]; EINTR when an alarm comes first
  wait_descriptors, // until one of the descriptors sent is ready, at most until argument[0] (kForever); argument[1] =
                    // how many; in: poll events a descriptor (u32). 0, ETIMEDOUT, EINTR; ENOMEM: no room for copies
  wait_address,     // until wake_address(argument[0]) or argument[1]; 0, ETIMEDOUT, or EINTR. argument[2] = 1: another
                    // process that has the memory mapped may wake it, too, and so does the death of any
  wake_address,     // argument[0], at most argument[1] waiters, first come first woken; argument[2] as above.
                    // argument[3] = 1: they go on after CpuCost::detect, not CpuCost::wakeup. value = how many
  set_timer,        // timer argument[0] ends at argument[1] (0: never), then every argument[2], 1 us at least. Timer 0
                    // sends SIGALRM. value = time left before, argument[3] = interval before; EINVAL
  get_timer,        // as set_timer, which it leaves as it is
  new_timer,        // argument[0] = 0: an event descriptor is sent, to which its ends are added; 1: sends the signal in
                    // the input to the process, 2: to the process's thread argument[1]; 3: nothing. argument[2] = its
                    // clock. value = its number; EAGAIN: the process has too many
  delete_timer,     // argument[0] = number: the process has it no more, and when nobody has it, it is gone; EINVAL
  // signals
  await_signal,     // one of the set argument[0] that waits, until argument[1]; out: SignalRecord. EAGAIN: none came;
                    // EINTR: another did; ERESTART: the real kernel has one, from outside
  take_signals,     // argument[0] = what the thread blocks from now on: what else waits is raised before it returns
  watch_signals,    // argument[0] = 0: a new watch, of the set argument[1]; else the one with that number, which gets
                    // that set if argument[2] = 1. If an event descriptor is sent it is the process's, and counts while
                    // one of the set waits for it. value = number; EINVAL, EAGAIN: the process has too many
  unwatch_signals,  // argument[0] = number: the process has it no more; EINVAL
  read_signals,     // of the set of watch argument[0] what waits, at most argument[1]; out: SignalRecord[value].
                    // argument[2] = the set; EINVAL
  find_event,       // an event descriptor is sent that came from another image or process. value = the number of the
                    // timer, with argument[1] = 1 and [2] = its clock, or watch, with argument[1] = 2, that has it, and
                    // from now on the process has it, too; [3] = 1: it counts for this process already. ENOENT
  // threads and processes
  thread_new,       // a slot for a thread about to start: value = its index
  thread_start,     // argument[0] = index: the real thread exists, and waits for its first turn
  thread_exit,      // argument[0] = index, or 0 = the caller's own; argument[1] = 1: it leaves robust mutexes locked
  forked,           // argument[0] = the child's real pid; value = its virtual pid; ECHILD if it died before, EAGAIN if
                    // there is no room for it
  spawned,          // as forked, for a child that runs another image
  check_image,      // a file's descriptor is sent: ENOEXEC if a process that runs it could not be simulated
  exec_begin,       // the next hello of this pid is a kExec
  exec_failed,
  process_exit,     // the process is about to end, with status argument[0]
  send_signal,      // in: SignalRecord, 0: is there somebody? To process argument[0] as kill(2) names it, or thread
                    // argument[1] of the caller's. value = 1: only the real kernel can, to real pid argument[2]; ESRCH,
                    // EAGAIN: too many wait
  find_process,     // argument[0] = virtual pid, of this host; value = its real pid; with argument[1] = 1 the other way
                    // round. argument[2] = its CPU time, in picoseconds. ESRCH
  affinity,         // of the thread, or the first one of the process, with virtual number argument[0]; 0 = the caller.
                    // out: ProcessorSet; argument[1] = 1: set first, to that in the input. ESRCH; EINVAL: the host has
                    // none of these
  wait_child,       // argument[0] = virtual pid or 0 = any; argument[1] = options of waitid(2): WEXITED, WSTOPPED,
                    // WCONTINUED, WNOHANG, WNOWAIT. value = virtual pid; 0 = none yet; argument[3] = its status, of one
                    // that stopped or goes on; 0: it has ended, and the real kernel knows, by its real pid argument[2];
                    // argument[4] = its CPU time and its children's, in picoseconds. ECHILD
  // memory
  pin,              // [argument[0], + argument[1]) becomes reachable by DMA, for writing if argument[2]; counted.
                    // value = its bus address; EFAULT: some of it is not there, or may not be used so
  unpin,            // bus address argument[0], + argument[1], argument[2] as it was pinned. out: AsideRange[value], to
                    // be unmapped: nobody needs them any more
  set_aside,        // the process is about to unmap [argument[0], + argument[1]), in the way SetAside argument[2].
                    // value = the first pages there that are pinned, argument[1] = their bytes, argument[2] = where it
                    // must first move them (mremap), and the device finds them from now on; ENOENT: none (left). What
                    // is there on demand the device has given up by then
  pages_moved,      // [argument[0], + argument[1]) lies at argument[2] now (mremap), for the device too
  huge_pages,       // value = how many huge pages the host has, argument[1] = how many of them are free. With
                    // argument[0] = 1: real System V segment argument[1] takes some from now on
  // objects of ThreadSlot::device that the kernel gives out
  alloc_pd,         // value = number
  dealloc_pd,
  alloc_uar,        // value = page
  free_uar,
  open_context,     // a descriptor is sent: whoever has it may import the context. value = its number; EINVAL, EEXIST
  close_context,    // argument[0] = number
  import_context,   // a context's descriptor is sent: its process's PDs and regions may be used. value = number; EINVAL
  import_pd,        // argument[0] = number of a context, [1] = PD; ENOENT if it is none of that context's process
  open_xrcd,        // a descriptor is sent: processes that send one of the same file share the domain; or none, with
                    // argument[1] = 1. argument[0] = O_CREAT, O_EXCL; value = number. EAGAIN: there is none, and
                    // it is not to be made; EINVAL: there is one, and it was to be new
  close_xrcd,       // argument[0] = number; EBUSY while an object of the process uses it
  open_qp,          // of an XRC receive QP, by its number argument[1] in domain argument[0], which any process has that
                    // opened it; argument[2] = channel as in `command`. destroy_qp closes it; EINVAL
  alloc_dm,         // argument[0] = bytes of the device's memory, [1] = log2 of their alignment; value = their offset;
                    // ENOMEM
  free_dm,          // argument[0] = offset; EBUSY while a region uses it; ENOENT
  import_dm,        // argument[0] = number of a context, [1] = offset in device memory; value = bytes; ENOENT
  make_present,     // [argument[0], + argument[1]) of on-demand region argument[2] = index; [3] = 1: for writing;
                    // [4] = 1: wait until it is. EFAULT: some of it is not there
  command,          // in: a command mailbox (command.h), out: its output mailbox. argument[0] = channel that hears
                    // the asynchronous events of an object that it makes, or 0
  open_channel,     // a descriptor is sent: event records are written there. value = channel number
  close_channel,
  bind_channel,     // argument[0] = 0 completions of CQ argument[1], 1 events of port and device; argument[2] =
                    // channel
  refill_channel,   // argument[0] = channel: of the records that found its pipe full, what fits now is written
  await_event,      // until the pipe of channel argument[0], found empty in this turn, holds a record; ENOENT, EINTR
  port_info,        // out: NetworkInterface of the device; value = completion vectors
  gid_entry,        // argument[0] = port, [1] = index; out: GidEntry; ENODATA for an empty slot
  lid_route,        // argument[0] = LID; out: GidEntry: the port's GID there and, by index, ours to reach it; ENOENT,
                    // always without host.lid_paths
  resolve_path,     // in: AddressVector; out: the same with its remote_mac, of a host or a group; ETIMEDOUT, after
                    // host.cm.neighbour_timeout: nobody on the link has it; EHOSTUNREACH, EINVAL
  rdma_cm,          // of channel argument[0] of device 0, for all devices: command argument[1] of
                    // <rdma/rdma_user_cm.h>; in: its structure, without header, what its pointers name behind it; out:
                    // its response. GET_EVENT never waits: EAGAIN
  mmio_read,        // argument[0] = offset, [1] = 4 or 8; value
  // the simulated out-of-band network (sim/host)
  net_socket,       // a descriptor is sent: the far end of a stream, or ENOTSOCK. argument[0] = 4 or 6, the version of
                    // IP; [1] = inode of the program's end. value = its number
  net_bind,         // argument[0] = number, [1] = port; in: address (16 bytes, v4 mapped). value = port; EADDRINUSE
  net_listen,       // argument[1] = backlog
  net_accept,       // a descriptor comes back; value = number, out: NetAddress of the peer; EAGAIN
  net_connect,      // argument[1] = port; in: address. value = local port; waits; ECONNREFUSED, EHOSTUNREACH
  net_flush,        // bytes written so far leave now
  net_name,         // out: NetAddress local, peer. value = to the peer and back, in picoseconds; 0: it has none
  net_option,       // argument[1] = DatagramOption: v6_only or reuse_port; [2] = value
  net_error,        // argument[0] = number of a stream that ended or takes no more; value = 0, or, once, ECONNRESET
  net_inherited,    // argument[0] = inode of a program's end that came from another image or process: value = number,
                    // argument[1] = 4 or 6, [2] = 1: of datagrams; ENOENT: it is none of this host
  // its datagrams: each message on the descriptor begins with a DatagramHeader
  dgram_socket,     // a descriptor is sent: the far end of a SOCK_SEQPACKET pair, or ENOTSOCK. argument[0] = 4 or 6,
                    // the version of IP, [1] = inode as above. value = its number
  dgram_bind,       // argument[0] = number; in: NetAddress, port 0 = any that is free. EADDRINUSE, EADDRNOTAVAIL
  dgram_connect,    // in: NetAddress of the peer. ENETUNREACH, EINVAL
  dgram_disconnect, // it has no peer any more
  dgram_send,       // before a message is written; in: NetAddress, port 0 = the peer's. out: NetAddress to be put
                    // before it; the socket has a port from now on. EDESTADDRREQ, ENETUNREACH, EINVAL
  dgram_option,     // argument[1] = DatagramOption, [2] = value
  dgram_name,       // out: NetAddress local, peer; port 0: it has none
  // System V semaphores and message queues, of the host; errors, flags, operations and structures are Linux's. Last
  // argument: the caller's effective user
  sem_get,          // argument[0] = key, [1] = how many, [2] = flags, [3] = user; value = number
  sem_operate,      // argument[0] = number, [1] = until when, [2] = user; in: struct sembuf, as many as input_bytes has
  sem_control,      // argument[0] = number, [1] = which of the set, [2] = operation, [3] = value of SETVAL, [4] = user;
                    // in, out: its structure; SETALL, GETALL: the values fill input and output. argument[1] = how many;
                    // SETALL with [3] = 1 only asks that
  msg_get,          // argument[0] = key, [1] = flags, [2] = user; value = number
  msg_send,         // argument[0] = number, [1] = type, [2] = bytes, [3] = flags, [4] = user; in: input and output hold
                    // the message
  msg_receive,      // argument[0] = number, [1] = type, [2] = most bytes, [3] = flags, [4] = user; the message fills
                    // input and output. value = its bytes, argument[1] = its type
  msg_control,      // argument[0] = number, [1] = operation, [2] = user; in, out: its structure
  count
};

inline constexpr std::uint64_t kForever = ~0ull;

// How pages go, for Call::set_aside.
enum class SetAside : std::uint64_t {
  unmapped,         // munmap, or another mapping in their place
  dropped,          // MADV_DONTNEED: the mapping stays, and what is the process's own is forgotten
  detached,         // shmdt: all of the segment that begins at argument[0]
  moved,            // mremap, told by pages_moved behind it: what is pinned stays as it is, and is not named
};
struct AsideRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct NetAddress {
  std::uint8_t ip[16] = {};    // v4-mapped for IPv4
  std::uint16_t port = 0;      // host order
  std::uint16_t reserved[3] = {};
};
static_assert(sizeof(NetAddress) == 24);

enum class DatagramOption : std::uint64_t {
  reuse_address,    // others that want it, too, may have the same port; the last one bound gets the datagrams
  v6_only,
  receive_buffer,   // in bytes, as SO_RCVBUF counts them
  reuse_port,       // of streams: others that want it, too, may have the same address, and share its connections
};

// Before the payload of each datagram.
struct DatagramHeader {
  NetAddress address;          // to the kernel: the receiver; from it: the sender
  std::uint64_t time = 0;      // to the kernel: of the thread, in picoseconds
  std::uint32_t error = 0;     // from the kernel: there is no datagram, one that was sent to `address` met ECONNREFUSED
  std::uint32_t reserved = 0;
};
static_assert(sizeof(DatagramHeader) == 40);
inline constexpr std::size_t kMostDatagramBytes = 65507;  // of payload

struct GidEntry {
  std::uint8_t gid[16] = {};
  std::uint32_t index = 0;
  std::uint32_t type = 0;      // 1 IB/RoCEv1, 2 RoCEv2: as ibv_gid_entry, except for 0 = empty
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
};

// What the kernel writes into an event channel.
struct EventRecord {
  std::uint32_t type = 0;      // EventType of queue.h, or kConnectionEvent
  std::uint32_t number = 0;    // cqn, qpn, srqn or port

  static constexpr std::uint32_t kConnectionEvent = 0x100;  // Call::rdma_cm has one more event for the channel
};
static_assert(sizeof(EventRecord) == 8);

struct alignas(4096) ThreadSlot {
  // Who acts: with simulated time only one side does. The waiting side sleeps on this word.
  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> sleeping{0};  // kProcess or kKernel sleeps on `turn`: wake it
  static constexpr std::uint32_t kFree = 0, kProcess = 1, kKernel = 2;

  std::uint32_t tid = 0;             // real
  std::uint32_t virtual_tid = 0;     // as the program knows it
  // A look is asked for and not yet begun: no second signal is sent meanwhile.
  std::atomic<std::uint32_t> asked{0};
  Call call = Call::none;
  std::uint64_t now = 0;             // this thread's clock, in picoseconds
  std::uint64_t run_until = 0;       // make a `look` before the clock passes this
  std::uint64_t act_until = 0;       // the same for calls that act on the device
  std::uint64_t looks_until = 0;     // until then a look sees what memory holds now: it needs no call
  std::uint64_t changes = 0;         // turns of the thread that began after others may have written what it reads
  std::uint64_t ring_visible = 0;    // when the CPU sees what the device last wrote into DMA memory
  std::uint64_t argument[8] = {};
  std::uint64_t value = 0;
  std::int32_t error = 0;            // 0 or a positive errno
  std::uint32_t signal_count = 0;    // of `signal`: to be raised in the thread before the call returns
  std::uint32_t input_bytes = 0;
  std::uint32_t output_bytes = 0;
  std::uint32_t device = 0;          // of the host that a call is about; ENODEV
  std::uint32_t acted = 0;           // calls other than clock reads since the turn began
  std::uint32_t only_clocks = 0;     // 1: it reads clocks, again and again, and nothing that others write
  std::uint32_t busy_wait = 0;       // how often to look at `turn` before sleeping on it; 0 while somebody else runs
  std::uint64_t pending = 0;         // signals (bit 0: the first) that wait until the thread takes them
  // CPU time, in picoseconds: what `now`, or a later time while it is on the CPU, is past `began`, less `waited`.
  std::uint64_t began = kNoThread;
  std::uint64_t waited = 0;
  std::uint32_t on_cpu = 0;          // 1: it runs, spins, polls, or waits for a command
  static constexpr std::uint64_t kNoThread = ~0ull;
  static constexpr std::uint32_t kMaxSignals = 8;
  SignalRecord signal[kMaxSignals];

  char reason[88] = {};              // what the thread waits for, in words; empty: its call says enough

  alignas(64) std::byte input[4096] = {};
  std::byte output[4096] = {};

  // Posted writes, in order; drained whenever the kernel has its turn, or all the time in real time.
  static constexpr std::uint32_t kMmioEntries = 128;
  alignas(64) std::atomic<std::uint32_t> mmio_produced{0};
  alignas(64) std::atomic<std::uint32_t> mmio_consumed{0};
  alignas(64) MmioWrite mmio[kMmioEntries];

  // With attach_feature::kMilestones, in order; drained whenever the kernel has its turn.
  static constexpr std::uint32_t kMilestoneEntries = 2048;
  alignas(64) std::atomic<std::uint32_t> milestones_produced{0};
  alignas(64) std::atomic<std::uint32_t> milestones_consumed{0};
  alignas(64) Milestone milestones[kMilestoneEntries];
};

// --- The control region.
inline constexpr std::uint64_t kControlHeader = 0;
inline constexpr std::uint64_t kInterfaceTable = 4096;      // NetworkInterface[interface_count]
inline constexpr std::uint32_t kMaxInterfaces = 8192;
inline constexpr std::uint64_t kThreadSlots = 1 << 20;
static_assert(kInterfaceTable + kMaxInterfaces * sizeof(NetworkInterface) <= kThreadSlots);
inline constexpr std::uint32_t kMaxThreads = 8192;  // of a process at one time
inline constexpr std::uint64_t kControlBytes = kThreadSlots + kMaxThreads * sizeof(ThreadSlot);

// In real time a process wakes a sleeping simulator through this word (futex), at kDoorbellWord of the region.
inline constexpr std::uint64_t kDoorbellWord = 2048;

// --- DMA memory: rings, doorbell records, contexts' images: what the library allocates. Pinned as a whole. Mapped at
// this address so that two runs see the same addresses.
inline constexpr std::uint64_t kMemoryAddress = 0x2000'0000'0000;
inline constexpr std::uint64_t kMemoryBytes = 1ull << 34;  // reserved, not used up
// From here on a process keeps pages that it unmapped while they were pinned.
inline constexpr std::uint64_t kAsideAddress = 0x2100'0000'0000;

}  // namespace rnicsim::abi
