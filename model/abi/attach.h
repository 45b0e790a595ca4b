// SPDX-License-Identifier: Apache-2.0
// Services of the operating system: calls of a simulated host's process to the host's kernel, and the shared memory and
// socket through which a real process makes them. docs/host-services.md is checked against this file.
//
// A process connects to the simulator's socket (SOCK_SEQPACKET, abstract name in kSocketVariable), sends Hello, and
// receives Welcome with two descriptors: its control region and its DMA memory. Afterwards each of its threads owns one
// ThreadSlot of the control region and makes its calls there. Descriptors of a call are sent over the socket.
//
// fork: the child inherits nothing, and connects again with Hello::kFork. exec: the new image connects again with
// Hello::kExec. Any death of the process closes the socket: the kernel then destroys the process's objects, in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rnicsim::abi {

inline constexpr std::uint32_t kAttachMagic = 0x524e4f53;  // "RNOS"
inline constexpr std::uint16_t kAttachMajor = 18;          // another major version is refused
inline constexpr std::uint16_t kAttachMinor = 0;

inline constexpr char kSocketVariable[] = "RNICSIM_SOCKET";  // abstract socket's name, without the leading NUL
inline constexpr char kHostVariable[] = "RNICSIM_HOST";      // name of the host the process runs on
// Descriptor through which programs find the libraries (/proc/self/fd/900). The path has constant length, so the
// libraries' folder does not shift a program's memory. kLibrariesVariable names the folder, for a program that closed
// the descriptor.
inline constexpr int kLibraryDescriptor = 900;
inline constexpr char kLibrariesVariable[] = "RNICSIM_LIBRARIES";
// Signal with which the simulator asks a thread that does not return to report its activity (ThreadSlot::asked).
inline constexpr int kLookSignal = 62;

// Name of the file (memfd_create(2)) behind the huge pages of a simulated host.
inline constexpr char kHugePagesName[] = "rnicsim-huge-pages";
inline constexpr std::size_t kHugePageBytes = 2 << 20;

namespace attach_feature {
inline constexpr std::uint64_t kSimulatedTime = 1ull << 0;  // threads take turns, and ThreadSlot::now is their clock
inline constexpr std::uint64_t kMilestones = 1ull << 1;     // threads report posts and polls as Milestones
inline constexpr std::uint64_t kEachLook = 1ull << 2;       // each look takes a turn, and loops of looks are not parked
}  // namespace attach_feature

struct Hello {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::uint32_t pid = 0;         // real, of this process; checked against SO_PEERCRED
  std::uint32_t tid = 0;         // real, of the thread that sends the hello: it gets slot 0
  std::uint32_t parent_pid = 0;  // real; with kFork
  std::uint32_t flags = 0;
  char host[64] = {};
  char program[64] = {};  // for messages

  static constexpr std::uint32_t kFork = 1u << 0;
  static constexpr std::uint32_t kExec = 1u << 1;
  static constexpr std::uint32_t kRandomAddresses = 1u << 2;  // address randomisation is on
};
static_assert(sizeof(Hello) == 152);

struct Welcome {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::int32_t error = 0;  // 0, or the errno of a refused hello
  std::uint32_t reserved = 0;
  std::uint64_t control_bytes = 0;
  std::uint64_t memory_bytes = 0;
  char message[232] = {};  // reason of a refusal
};
static_assert(sizeof(Welcome) == 264);

// Announces descriptors (SCM_RIGHTS) on the socket, just before their call or just before the answer of their call.
struct DescriptorMessage {
  std::uint32_t count = 0;  // descriptors in this message, at most kMaxDescriptors
  std::uint32_t slot = 0;
};
inline constexpr std::uint32_t kMaxDescriptors = 64;

// Costs of the CPU, in ControlHeader::cost.
enum class CpuCost : std::uint32_t {
  clock_read,   // clock_gettime, gettimeofday, time, rdtsc
  system_call,  // a call into the kernel that does little work
  post_wqe,     // a send WQE built in its ring
  post_recv,    // a receive WQE built and published
  mmio_write,   // a store to the doorbell or BlueFlame window, until the CPU continues
  mmio_read,
  poll_cq,                  // one look at a CQ
  poll_cqe,                 // one CQE taken
  detect,                   // memory written by the device until a spinning CPU sees it
  wakeup,                   // from an event until a blocked thread runs again
  command,                  // a verb that goes through the kernel, one way
  ring_doorbell,            // doorbell record and barrier before the store, which make posted WQEs visible
  doorbell_lock,            // taking the lock of a doorbell page that threads share, when it is free
  doorbell_lock_contended,  // the same when another thread holds the lock, counted from its release
  doorbell_lock_waiting,    // addition for each thread that waits before this one
  inline_receive,           // a payload copied from its CQE to the receive's buffers
  count
};

// Bit n of word n / 64 stands for processor n.
struct ProcessorSet {
  std::uint64_t bits[16] = {};
};

struct ControlHeader {
  std::uint32_t magic = kAttachMagic;
  std::uint16_t major = kAttachMajor;
  std::uint16_t minor = kAttachMinor;
  std::uint64_t features = 0;     // attach_feature bits
  std::uint64_t epoch = 0;        // seconds since 1970 at simulated time 0
  std::uint64_t uptime = 0;       // seconds since the host's boot at simulated time 0
  std::uint64_t random_seed = 0;  // of this process
  std::uint32_t virtual_pid = 0;
  std::uint32_t virtual_parent_pid = 0;
  std::uint32_t host_index = 0;
  std::uint32_t interface_count = 0;
  char host[64] = {};
  std::uint32_t cost[std::size_t(CpuCost::count)] = {};  // picoseconds
  ProcessorSet processors;               // processors of the host: those of this machine that the simulator may use
  std::uint32_t signals_sent = 0;        // number of signals sent by this process to others through the real kernel
  std::uint32_t real_call = 0;           // 1 + number of a system call left to the real kernel and not simulated
  std::uint32_t shared_waits = 0;        // number of the host's threads that wait in memory shared by processes
  std::uint32_t no_child_stops = 0;      // written by the process; 1: no SIGCHLD for stopped children (SA_NOCLDSTOP)
  std::uint64_t ended_threads_time = 0;  // CPU time, in ps, of this process's ended threads, also of earlier images
  std::uint64_t children_time = 0;       // written by the process: CPU time of its waited-for children and of theirs
};

// A signal with the information for its receiver (siginfo_t).
struct SignalRecord {
  std::uint32_t number = 0;
  std::int32_t code = 0;    // SI_USER, SI_QUEUE, SI_TIMER ...
  std::uint32_t pid = 0;    // virtual, of the sender; of a timer: the timer's number
  std::uint32_t uid = 0;    // of the sender; of a timer: its overruns
  std::uint64_t value = 0;  // of SIGCHLD: the child's status, as in siginfo_t
};
static_assert(sizeof(SignalRecord) == 24);

// A network interface of a simulated host, at kInterfaceTable of the control region. It belongs to one of the host's
// NICs, whose GIDs follow from it. The table begins with the first interface of each host, in the order of the hosts.
struct NetworkInterface {
  char name[64] = {};  // of the host
  std::uint8_t ipv4[4] = {};
  std::uint8_t ipv4_prefix = 0;
  std::uint8_t ipv6_prefix = 0;
  std::uint8_t mac[6] = {};
  std::uint8_t ipv6[16] = {};
  std::uint16_t lid = 0;     // of the port; 0 without host.lid_paths
  std::uint16_t host = 0;    // number of the host; ControlHeader::host_index is the reader's own
  std::uint16_t device = 0;  // number within the host: 0 is the first
};
static_assert(sizeof(NetworkInterface) == 98);
inline constexpr std::uint32_t kMaxDevices = 8;  // in one host

// A posted write to the BAR: to a UAR page or device memory of the process.
struct MmioWrite {
  std::uint64_t time = 0;    // of the thread, in picoseconds
  std::uint32_t offset = 0;  // in BAR0
  std::uint16_t length = 0;  // 4, 8, or a multiple of 64 up to 256
  std::uint16_t device = 0;  // number within the host
  std::uint8_t data[256] = {};
};

enum class MilestoneKind : std::uint16_t {
  posted,                  // send WQEs that the next doorbell will announce
  polled,                  // CQEs taken
  posted_receives,         // receive WQEs of a QP
  posted_shared_receives,  // receive WQEs of an SRQ
};

// Action of a thread on a queue, for observers that follow work requests through the system.
struct Milestone {
  std::uint64_t time = 0;      // of the thread, in picoseconds: begin of the first WQE; end of taking the last CQE
  std::uint32_t queue = 0;     // qpn; cqn; srqn
  std::uint32_t position = 0;  // index of the first WQE; consumer
  std::uint32_t count = 0;     // WQEs; CQEs
  MilestoneKind kind = MilestoneKind::posted;
  std::uint16_t device = 0;  // number within the host
};
static_assert(sizeof(Milestone) == 24);

// Reason to believe that a thread waits for memory to change.
enum class SpinProof : std::uint32_t {
  proved,   // proved to wait; it may have stored something before
  unmoved,  // it repeated its loop once more, and stored nothing since it was woken
  guessed,
};

// Input of Call::spin for a loop of looks (empty polls, yields) that was proved to return to the same state: its looks,
// then the pages that its instructions read.
struct LoopLook {
  std::uint64_t begins = 0;  // picoseconds after the begin of the round's first look
  std::uint64_t ends = 0;
};
static_assert(sizeof(LoopLook) == 16);
inline constexpr std::uint32_t kMostLoopLooks = 192;  // in one round
inline constexpr std::uint32_t kMostLoopPages = 64;   // read in one round
inline constexpr std::uint64_t kLoopPage = 4096;
static_assert(kMostLoopLooks * sizeof(LoopLook) + kMostLoopPages * sizeof(std::uint64_t) <= 4096);

enum class Call : std::uint32_t {
  none,
  // time
  sync,   // advances the simulation to ThreadSlot::now
  look,   // the thread reads memory at ThreadSlot::now; the simulation advances to CpuCost::detect before
          // that time. argument[0] = 1: the thread is only as far ahead of the simulation as it may be
  spin,   // waits until the device writes anywhere into the process or raises an interrupt. argument[0] =
          // SpinProof; value = 1: woken only because another thread of the process, or another process of its
          // host, may have stored something. With argument[1] = period of a loop of looks in ps: waits until
          // one of the looks can see something new that the device wrote, into DMA memory or into a page that
          // the loop reads. argument[2] = number of looks, [3] = number of pages, kMostLoopPages + 1: any
          // page; [4] = ThreadSlot::changes at the begin of the last complete round, [5] = time of that
          // begin, in ps. On return argument[2] = index of the next look, and ThreadSlot::now = its begin;
          // EAGAIN: something changed in the round
  sleep,  // until argument[0]; EINTR: an alarm came first
  wait_descriptors,  // until one of the descriptors sent is ready, or time argument[0] (kForever); argument[1] = their
                     // number; in: poll events of each (u32). 0, ETIMEDOUT, EINTR; ENOMEM: no room for copies
  wait_address,      // until wake_address(argument[0]) or time argument[1]; 0, ETIMEDOUT, EINTR. argument[2] = 1: other
                     // processes that map the memory may wake the thread, too, and so does the death of one
  wake_address,      // wakes up to argument[1] waiters of argument[0], first come first woken; [2] as above. [3] = 1:
                     // they continue after CpuCost::detect, not CpuCost::wakeup. value = number of woken waiters
  set_timer,         // timer argument[0] ends at argument[1] (0: never), then every argument[2], at least 1 us. Timer 0
                     // sends SIGALRM. value = time left before the call, argument[3] = interval before the call; EINVAL
  get_timer,         // reads a timer; results as of set_timer
  new_timer,         // argument[0] = 0: an event descriptor is sent, to which each end of the timer is added; 1: sends
                     // the signal in the input to the process, 2: to thread argument[1] of the process; 3: nothing.
                     // argument[2] = clock of the timer. value = number of the timer; EAGAIN: the process has too many
  delete_timer,      // argument[0] = number: the process gives it up; without any owner it is destroyed; EINVAL
  // signals
  await_signal,     // waits until argument[1] for a signal of the set argument[0], and takes it; out: SignalRecord.
                    // EAGAIN: none came; EINTR: another signal came; ERESTART: the real kernel has one, from outside
  take_signals,     // argument[0] = signals to block from now on; other pending ones are raised before it returns
  watch_signals,    // argument[0] = 0: a new watch for the set argument[1]; else the number of a watch, which gets that
                    // set if argument[2] = 1. An event descriptor that is sent belongs to the process, and counts while
                    // a signal of the set is pending. value = number; EINVAL; EAGAIN: the process has too many
  unwatch_signals,  // argument[0] = number: the process gives up the watch; EINVAL
  read_signals,     // takes pending signals of the set of watch argument[0], at most argument[1]; out:
                    // SignalRecord[value]. argument[2] = the set; EINVAL
  find_event,       // for an event descriptor, which is sent, that came from another image or process. value = number
                    // of the timer ([1] = 1, [2] = its clock) or watch ([1] = 2) that uses the descriptor; the process
                    // becomes an owner of it. [3] = 1: it already counts for this process. ENOENT
  // threads and processes
  thread_new,    // a slot for a thread about to start; value = its index
  thread_start,  // argument[0] = index: the real thread exists and waits for its first turn
  thread_exit,   // argument[0] = index, or 0 = the caller; argument[1] = 1: the thread leaves robust mutexes locked
  forked,        // argument[0] = real pid of the child; value = its virtual pid; ECHILD: the child died before;
                 // EAGAIN: no room
  spawned,       // as forked, for a child that runs another image
  check_image,   // a file's descriptor is sent; ENOEXEC: a process that runs the file could not be simulated
  exec_begin,    // the next hello of this pid has kExec
  exec_failed,
  process_exit,  // the process is about to end with status argument[0]
  send_signal,   // in: SignalRecord; number 0: only checks that the receiver exists. Sends to process argument[0],
                 // as named by kill(2), or to thread argument[1] of the caller. value = 1: only the real kernel can
                 // send it, to real pid argument[2]; ESRCH; EAGAIN: too many are pending
  find_process,  // argument[0] = virtual pid on this host; value = its real pid; argument[1] = 1: the reverse.
                 // argument[2] = CPU time of the process, in picoseconds. ESRCH
  affinity,      // of the thread, or of the first thread of the process, with virtual number argument[0]; 0 = the
                 // caller. out: ProcessorSet; argument[1] = 1: sets it first, to the set in the input. ESRCH;
                 // EINVAL: the host has none of these processors
  wait_child,    // argument[0] = virtual pid or 0 = any; argument[1] = options of waitid(2): WEXITED, WSTOPPED,
                 // WCONTINUED, WNOHANG, WNOWAIT. value = virtual pid; 0 = none yet; argument[3] = status of a child
                 // that stopped or continued; 0: the child ended, and the real kernel has the status of its real pid
                 // argument[2]; argument[4] = CPU time of the child and its children, in picoseconds. ECHILD
  // memory
  pin,          // [argument[0], + argument[1]) becomes reachable by DMA, for writing if argument[2]; pins are
                // counted. value = bus address; EFAULT: part of the range is not mapped, or not with these rights
  unpin,        // bus address argument[0], + argument[1], argument[2] as for pin. out: AsideRange[value]: ranges to
                // be unmapped, because no pin needs them any more
  set_aside,    // the process is about to unmap [argument[0], + argument[1]), in the way SetAside argument[2].
                // value = address of the first pinned pages there, argument[1] = their bytes, argument[2] = address
                // to which the process must first move them (mremap), and where the device finds them from now on;
                // ENOENT: none, or none left. By then the device has given up the range's on-demand pages
  pages_moved,  // [argument[0], + argument[1]) is now at argument[2] (mremap), for the device too
  huge_pages,   // value = number of huge pages of the host, argument[1] = number of free ones. argument[0] = 1:
                // real System V segment argument[1] uses some from now on
  // objects of ThreadSlot::device that the kernel allocates
  alloc_pd,  // value = number
  dealloc_pd,
  alloc_uar,  // value = page
  free_uar,
  open_context,    // a descriptor is sent; with it a process may import the context. value = number; EINVAL, EEXIST
  close_context,   // argument[0] = number
  import_context,  // a context's descriptor is sent: its process's PDs and regions may be used. value = number; EINVAL
  import_pd,       // argument[0] = number of a context, [1] = PD; ENOENT: the context's process has no such PD
  open_xrcd,       // a descriptor is sent; processes that send descriptors of the same file share the domain.
                   // argument[1] = 1: no descriptor. argument[0] = O_CREAT, O_EXCL; value = number. EAGAIN: no such
                   // domain, and O_CREAT is not given; EINVAL: the domain exists, and O_EXCL is given
  close_xrcd,      // argument[0] = number; EBUSY while an object of the process uses it
  open_qp,         // opens XRC receive QP number argument[1] of domain argument[0] for this process; argument[2] =
                   // channel as in `command`. destroy_qp closes it; EINVAL
  alloc_dm,        // argument[0] = bytes of device memory, [1] = log2 of the alignment; value = offset; ENOMEM
  free_dm,         // argument[0] = offset; EBUSY while a region uses it; ENOENT
  import_dm,       // argument[0] = number of a context, [1] = offset in device memory; value = bytes; ENOENT
  make_present,    // makes [argument[0], + argument[1]) of on-demand region argument[2] = index present; [3] = 1: for
                   // writing; [4] = 1: wait until it is present. EFAULT: part of the range is not mapped
  command,         // in: a command mailbox (command.h), out: its output mailbox. argument[0] = channel for
                   // asynchronous events of the object that the command creates, or 0
  open_channel,    // a descriptor is sent, to which event records are written. value = channel number
  close_channel,
  bind_channel,    // argument[0] = 0: for completions of CQ argument[1], 1: for events of port and device; argument[2]
                   // = channel
  refill_channel,  // argument[0] = channel: writes the records that did not fit into its pipe before
  await_event,     // until the pipe of channel argument[0], found empty in this turn, has a record; ENOENT, EINTR
  port_info,       // out: NetworkInterface of the device; value = number of completion vectors
  gid_entry,       // argument[0] = port, [1] = index; out: GidEntry; ENODATA for an empty slot
  lid_route,       // argument[0] = LID; out: GidEntry with the GID of the port with this LID and, in `index`, our GID
                   // to reach it; ENOENT: always without host.lid_paths
  resolve_path,    // in: AddressVector; out: the same with the remote_mac of a host or a group; ETIMEDOUT after
                   // host.cm.neighbour_timeout: no station on the link has the address; EHOSTUNREACH, EINVAL
  rdma_cm,         // on channel argument[0] of device 0, for all devices: command argument[1] of
                   // <rdma/rdma_user_cm.h>; in: its structure without header, followed by the data of its pointers;
                   // out: its response. GET_EVENT never waits: EAGAIN
  mmio_read,       // argument[0] = offset, [1] = 4 or 8; value
  // the simulated out-of-band network (sim/host)
  net_socket,     // a descriptor is sent: the far end of a stream, or ENOTSOCK. argument[0] = 4 or 6, the version of
                  // IP; [1] = inode of the program's end. value = number of the socket
  net_bind,       // argument[0] = number, [1] = port; in: address (16 bytes, v4 mapped). value = port; EADDRINUSE
  net_listen,     // argument[1] = backlog
  net_accept,     // a descriptor comes back; value = number, out: NetAddress of the peer; EAGAIN
  net_connect,    // argument[1] = port; in: address. value = local port; waits; ECONNREFUSED, EHOSTUNREACH
  net_flush,      // sends the bytes written so far now
  net_name,       // out: NetAddress local, peer. value = round-trip time to the peer, in picoseconds; 0: no peer
  net_option,     // argument[1] = DatagramOption: v6_only or reuse_port; [2] = value
  net_error,      // argument[0] = number of a stream that ended or was shut down; value = 0, or, once, ECONNRESET
  net_inherited,  // argument[0] = inode of a program's end that came from another image or process: value = number,
                  // argument[1] = 4 or 6, [2] = 1: datagrams; ENOENT: no socket of this host
  // datagrams of that network: each message on the descriptor begins with a DatagramHeader
  dgram_socket,      // a descriptor is sent: the far end of a SOCK_SEQPACKET pair, or ENOTSOCK. argument[0] = 4 or 6,
                     // the version of IP, [1] = inode as above. value = number of the socket
  dgram_bind,        // argument[0] = number; in: NetAddress, port 0 = any free port. EADDRINUSE, EADDRNOTAVAIL
  dgram_connect,     // in: NetAddress of the peer. ENETUNREACH, EINVAL
  dgram_disconnect,  // removes the peer
  dgram_send,    // before a message is written; in: NetAddress, port 0 = the peer. out: NetAddress to put before the
                 // message; the socket has a port from now on. EDESTADDRREQ, ENETUNREACH, EINVAL
  dgram_option,  // argument[1] = DatagramOption, [2] = value
  dgram_name,    // out: NetAddress local, peer; port 0: none
  // System V semaphores and message queues of the host. Errors, flags, operations and structures are Linux's. The last
  // argument is the caller's effective user.
  sem_get,      // argument[0] = key, [1] = number of semaphores, [2] = flags, [3] = user; value = number
  sem_operate,  // argument[0] = number, [1] = time limit, [2] = user; in: struct sembuf, input_bytes in total
  sem_control,  // argument[0] = number, [1] = index in the set, [2] = operation, [3] = value of SETVAL, [4] = user;
                // in, out: structure of the operation; SETALL, GETALL: the values fill input and output.
                // argument[1] = number of semaphores; SETALL with [3] = 1 only asks for that number
  msg_get,      // argument[0] = key, [1] = flags, [2] = user; value = number
  msg_send,     // argument[0] = number, [1] = type, [2] = bytes, [3] = flags, [4] = user; in: the message, which
                // fills input and output
  msg_receive,  // argument[0] = number, [1] = type, [2] = most bytes, [3] = flags, [4] = user; the message fills
                // input and output. value = bytes of the message, argument[1] = its type
  msg_control,  // argument[0] = number, [1] = operation, [2] = user; in, out: structure of the operation
  count
};

inline constexpr std::uint64_t kForever = ~0ull;

// Ways to remove pages, for Call::set_aside.
enum class SetAside : std::uint64_t {
  unmapped,  // munmap, or another mapping in the same place
  dropped,   // MADV_DONTNEED: the mapping stays, and its private contents are dropped
  detached,  // shmdt: the whole segment that begins at argument[0]
  moved,     // mremap, reported by pages_moved afterwards: pinned pages stay as they are, and are not listed
};
struct AsideRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct NetAddress {
  std::uint8_t ip[16] = {};  // v4-mapped for IPv4
  std::uint16_t port = 0;    // host order
  std::uint16_t reserved[3] = {};
};
static_assert(sizeof(NetAddress) == 24);

enum class DatagramOption : std::uint64_t {
  reuse_address,  // other sockets with this option may have the same port; the last one bound gets the datagrams
  v6_only,
  receive_buffer,  // in bytes, as SO_RCVBUF counts them
  reuse_port,      // streams: other sockets with this option may have the same address, and share its connections
};

// Header before the payload of each datagram.
struct DatagramHeader {
  NetAddress address;       // to the kernel: the receiver; from it: the sender
  std::uint64_t time = 0;   // to the kernel: time of the thread, in picoseconds
  std::uint32_t error = 0;  // from the kernel: no datagram; an earlier datagram to `address` met ECONNREFUSED
  std::uint32_t reserved = 0;
};
static_assert(sizeof(DatagramHeader) == 40);
inline constexpr std::size_t kMostDatagramBytes = 65507;  // of payload

struct GidEntry {
  std::uint8_t gid[16] = {};
  std::uint32_t index = 0;
  std::uint32_t type = 0;  // 1 IB/RoCEv1, 2 RoCEv2: as ibv_gid_entry, except for 0 = empty
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
};

// Record that the kernel writes into an event channel.
struct EventRecord {
  std::uint32_t type = 0;    // EventType of queue.h, or kConnectionEvent
  std::uint32_t number = 0;  // cqn, qpn, srqn or port

  static constexpr std::uint32_t kConnectionEvent = 0x100;  // Call::rdma_cm has another event for the channel
};
static_assert(sizeof(EventRecord) == 8);

struct alignas(4096) ThreadSlot {
  // Side that may act; with simulated time only one side does. The other side sleeps on this word.
  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> sleeping{0};  // kProcess or kKernel sleeps on `turn` and must be woken
  static constexpr std::uint32_t kFree = 0, kProcess = 1, kKernel = 2;

  std::uint32_t tid = 0;          // real
  std::uint32_t virtual_tid = 0;  // as the program knows it
  // 1: kLookSignal is requested and its handler has not begun, so no second signal is sent.
  std::atomic<std::uint32_t> asked{0};
  Call call = Call::none;
  std::uint64_t now = 0;           // this thread's clock, in picoseconds
  std::uint64_t run_until = 0;     // the thread must make a `look` before its clock passes this time
  std::uint64_t act_until = 0;     // the same limit for calls that act on the device
  std::uint64_t looks_until = 0;   // until then a look needs no call: memory already holds what it would see
  std::uint64_t changes = 0;       // turns that began after others may have written what the thread reads
  std::uint64_t ring_visible = 0;  // time at which the CPU sees the device's last write to DMA memory
  std::uint64_t argument[8] = {};
  std::uint64_t value = 0;
  std::int32_t error = 0;          // 0 or a positive errno
  std::uint32_t signal_count = 0;  // valid entries of `signal`, raised in the thread before the call returns
  std::uint32_t input_bytes = 0;
  std::uint32_t output_bytes = 0;
  std::uint32_t device = 0;       // number within the host of the device that the call concerns; ENODEV
  std::uint32_t acted = 0;        // calls other than clock reads since the turn began
  std::uint32_t only_clocks = 0;  // 1: the thread only reads clocks repeatedly, and no memory that others write
  std::uint32_t busy_wait = 0;    // number of reads of `turn` before sleeping on it; 0 while another thread runs
  std::uint64_t pending = 0;      // pending signals (bit 0: signal 1) until the thread takes them
  // CPU time, in picoseconds: `now`, or a later time while the thread is on the CPU, minus `began` and `waited`.
  std::uint64_t began = kNoThread;
  std::uint64_t waited = 0;
  std::uint32_t on_cpu = 0;  // 1: the thread runs, spins, polls, or waits for a command
  static constexpr std::uint64_t kNoThread = ~0ull;
  static constexpr std::uint32_t kMaxSignals = 8;
  SignalRecord signal[kMaxSignals];

  char reason[88] = {};  // text about what the thread waits for; empty: the call says enough

  alignas(64) std::byte input[4096] = {};
  std::byte output[4096] = {};

  // Posted writes, in order; the kernel drains them at each of its turns, or continuously in real time.
  static constexpr std::uint32_t kMmioEntries = 128;
  alignas(64) std::atomic<std::uint32_t> mmio_produced{0};
  alignas(64) std::atomic<std::uint32_t> mmio_consumed{0};
  alignas(64) MmioWrite mmio[kMmioEntries];

  // With attach_feature::kMilestones, in order; the kernel drains them at each of its turns.
  static constexpr std::uint32_t kMilestoneEntries = 2048;
  alignas(64) std::atomic<std::uint32_t> milestones_produced{0};
  alignas(64) std::atomic<std::uint32_t> milestones_consumed{0};
  alignas(64) Milestone milestones[kMilestoneEntries];
};

// --- The control region.
inline constexpr std::uint64_t kControlHeader = 0;
inline constexpr std::uint64_t kInterfaceTable = 4096;  // NetworkInterface[interface_count]
inline constexpr std::uint32_t kMaxInterfaces = 8192;
inline constexpr std::uint64_t kThreadSlots = 1 << 20;
static_assert(kInterfaceTable + kMaxInterfaces * sizeof(NetworkInterface) <= kThreadSlots);
inline constexpr std::uint32_t kMaxThreads = 8192;  // in one process at the same time
inline constexpr std::uint64_t kControlBytes = kThreadSlots + kMaxThreads * sizeof(ThreadSlot);

// In real time a process wakes a sleeping simulator through this word (futex), at kDoorbellWord of the region.
inline constexpr std::uint64_t kDoorbellWord = 2048;

// --- DMA memory for everything that the library allocates: rings, doorbell records, images of contexts. Pinned as a
// whole. Mapped at this address, so that two runs see the same addresses.
inline constexpr std::uint64_t kMemoryAddress = 0x2000'0000'0000;
inline constexpr std::uint64_t kMemoryBytes = 1ull << 34;  // reserved address space, not used memory
// Start of the addresses to which a process moves pages that it unmapped while they were pinned.
inline constexpr std::uint64_t kAsideAddress = 0x2100'0000'0000;

}  // namespace rnicsim::abi
