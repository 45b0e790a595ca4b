// SPDX-License-Identifier: Apache-2.0
// Stream rsockets behave like sockets, over a fake connection manager and fake verbs without a device.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/fake_rdma.h"
#include "verbs/rsockets/wire.h"

namespace rnicsim::rsockets::rsocket_stream_test {
namespace {

std::uint16_t next_port = 7000;

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
const sockaddr* any(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

std::vector<char> pattern(std::size_t length, unsigned seed = 1) {
  std::vector<char> bytes(length);
  for (char& byte : bytes) byte = char((seed = seed * 1103515245 + 12345) >> 16);
  return bytes;
}

void set(int fd, int level, int name, int value) { ASSERT_EQ(rsetsockopt(fd, level, name, &value, sizeof value), 0); }
int get(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(rgetsockopt(fd, level, name, &value, &length), 0);
  return value;
}
void unblock(int fd) { ASSERT_EQ(rfcntl(fd, F_SETFL, O_NONBLOCK), 0); }

bool send_all(int fd, const std::vector<char>& bytes, std::size_t at_once) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t sent = rsend(fd, &bytes[done], std::min(at_once, bytes.size() - done), 0);
    if (sent <= 0) return false;
    done += std::size_t(sent);
  }
  return true;
}
std::vector<char> receive_all(int fd, std::size_t length, std::size_t at_once) {
  std::vector<char> bytes(length);
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = rrecv(fd, &bytes[done], std::min(at_once, length - done), 0);
    if (got <= 0) break;
    done += std::size_t(got);
  }
  bytes.resize(done);
  return bytes;
}

// Checks that all objects of a test are destroyed at its end.
class RsocketStream : public testing::Test {
 protected:
  void SetUp() override { objects_ = fake_rdma::objects(); }
  void TearDown() override {
    for (const int fd : {client_, server_, listener_}) {
      EXPECT_TRUE(fd < 0 || rclose(fd) == 0);
    }
    EXPECT_EQ(fake_rdma::objects(), objects_);
  }

  void listen() {
    listener_ = rsocket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(listener_, 0);
    port_ = next_port++;
    const sockaddr_in address = local(port_);
    ASSERT_EQ(rbind(listener_, any(address), sizeof address), 0);
    ASSERT_EQ(rlisten(listener_, 4), 0);
  }
  // `prepare` sets options of the client and of the listener, whose sockets inherit them.
  template <class Prepare>
  void connect(Prepare&& prepare) {
    listen();
    client_ = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    ASSERT_GE(client_, 0);
    prepare(client_);
    prepare(listener_);
    std::thread accepts([&] { server_ = raccept(listener_, nullptr, nullptr); });
    const sockaddr_in address = local(port_);
    EXPECT_EQ(rconnect(client_, any(address), sizeof address), 0);
    accepts.join();
    ASSERT_GE(server_, 0);
  }
  void connect() {
    connect([](int) {});
  }
  void close(int& fd) {
    EXPECT_EQ(rclose(fd), 0);
    fd = -1;
  }

  int objects_ = 0;
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  std::uint16_t port_ = 0;
};

TEST_F(RsocketStream, BytesOfAllSizesArrive) {
  connect();
  for (const std::size_t length : {1u, 63u, 64u, 65u, 2048u, 65536u, 131072u, 1000003u}) {
    const std::vector<char> bytes = pattern(length, unsigned(length));
    std::vector<char> got;
    std::thread reads([&] { got = receive_all(server_, length, 100000); });
    EXPECT_TRUE(send_all(client_, bytes, 300000));
    reads.join();
    EXPECT_TRUE(got == bytes) << length;
  }
}

TEST_F(RsocketStream, SmallBuffersAndQueues) {
  connect([](int fd) {
    set(fd, SOL_SOCKET, SO_SNDBUF, 1500);
    set(fd, SOL_SOCKET, SO_RCVBUF, 700);
    set(fd, SOL_RDMA, RDMA_SQSIZE, 1);
    set(fd, SOL_RDMA, RDMA_RQSIZE, 1);
    set(fd, SOL_RDMA, RDMA_INLINE, 0);
  });
  EXPECT_EQ(get(client_, SOL_RDMA, RDMA_SQSIZE), 16);
  EXPECT_EQ(get(server_, SOL_RDMA, RDMA_RQSIZE), 16);
  EXPECT_EQ(get(server_, SOL_SOCKET, SO_RCVBUF), 1400);
  const std::vector<char> bytes = pattern(200000);
  std::vector<char> got;
  std::thread reads([&] { got = receive_all(server_, bytes.size(), 333); });
  EXPECT_TRUE(send_all(client_, bytes, 7777));
  reads.join();
  EXPECT_TRUE(got == bytes);
}

// Four threads on two sockets: each side sends and receives at once.
TEST_F(RsocketStream, BothWaysAtOnce) {
  connect([](int fd) { set(fd, SOL_SOCKET, SO_RCVBUF, 4000); });
  const std::vector<char> forth = pattern(500000, 3), back = pattern(500000, 4);
  std::vector<char> at_server, at_client;
  std::thread threads[] = {std::thread([&] { EXPECT_TRUE(send_all(client_, forth, 5000)); }),
                           std::thread([&] { EXPECT_TRUE(send_all(server_, back, 3000)); }),
                           std::thread([&] { at_server = receive_all(server_, forth.size(), 1000); }),
                           std::thread([&] { at_client = receive_all(client_, back.size(), 9000); })};
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(at_server == forth);
  EXPECT_TRUE(at_client == back);
}

TEST_F(RsocketStream, PeekWaitAllAndPieces) {
  connect();
  const char text[] = "0123456789";
  const iovec pieces[] = {{const_cast<char*>(text), 4}, {nullptr, 0}, {const_cast<char*>(text + 4), 6}};
  EXPECT_EQ(rwritev(client_, pieces, 3), 10);
  char peeked[4] = {};
  EXPECT_EQ(rrecv(server_, peeked, 4, MSG_PEEK), 4);
  EXPECT_EQ(std::string(peeked, 4), "0123");
  char first[3], second[20];
  const iovec into[] = {{first, 3}, {second, 20}};
  EXPECT_EQ(rreadv(server_, into, 2), 10);
  EXPECT_EQ(std::string(first, 3) + std::string(second, 7), text);
  std::thread sends([&] {
    EXPECT_EQ(rwrite(client_, text, 5), 5);
    EXPECT_EQ(rwrite(client_, text + 5, 5), 5);
  });
  char all[10];
  EXPECT_EQ(rrecv(server_, all, 10, MSG_WAITALL), 10);
  EXPECT_EQ(std::string(all, 10), text);
  sends.join();
  msghdr message{};
  iovec one{all, 10};
  sockaddr_in source{};
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  message.msg_name = &source;
  message.msg_namelen = sizeof source;
  EXPECT_EQ(rsend(client_, "x", 1, 0), 1);
  EXPECT_EQ(rrecvmsg(server_, &message, 0), 1);
  sockaddr_in own{};
  socklen_t length = sizeof own;
  EXPECT_EQ(rgetsockname(client_, reinterpret_cast<sockaddr*>(&own), &length), 0);
  EXPECT_EQ(length, sizeof own);
  EXPECT_EQ(source.sin_port, own.sin_port);
}

// One thread is both sides, and never blocks.
TEST_F(RsocketStream, NonBlocking) {
  listen();
  unblock(listener_);
  EXPECT_EQ(raccept(listener_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  client_ = rsocket(AF_INET, SOCK_STREAM, 0);
  unblock(client_);
  const sockaddr_in address = local(port_);
  EXPECT_EQ(rconnect(client_, any(address), sizeof address), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  char byte;
  EXPECT_EQ(rrecv(client_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  pollfd asked[] = {{listener_, POLLIN, 0}, {client_, POLLOUT, 0}};
  while (asked[0].revents == 0) ASSERT_EQ(rpoll(asked, 2, -1), 1);
  EXPECT_EQ(asked[0].revents, POLLIN);
  server_ = raccept(listener_, nullptr, nullptr);
  ASSERT_GE(server_, 0);
  EXPECT_EQ(rfcntl(server_, F_GETFL), 0);  // not inherited
  ASSERT_EQ(rpoll(&asked[1], 1, -1), 1);
  EXPECT_EQ(asked[1].revents, POLLOUT);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(rconnect(client_, any(address), sizeof address), -1);
  EXPECT_EQ(errno, EISCONN);

  // Fills the connection.
  unblock(server_);
  const std::vector<char> bytes = pattern(1 << 20);
  std::size_t sent = 0;
  for (ssize_t more; (more = rsend(client_, &bytes[sent], bytes.size() - sent, 0)) > 0;) sent += std::size_t(more);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(sent, 0u);
  EXPECT_LT(sent, bytes.size());
  EXPECT_EQ(rpoll(&asked[1], 1, 0), 0);
  EXPECT_EQ(rpoll(&asked[1], 1, 20), 0);
  // Drains it.
  std::vector<char> got(bytes.size());
  std::size_t read = 0;
  for (ssize_t more; (more = rrecv(server_, &got[read], got.size() - read, 0)) > 0;) read += std::size_t(more);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(read, sent / 2);
  EXPECT_EQ(std::memcmp(got.data(), bytes.data(), read), 0);
  EXPECT_EQ(rpoll(&asked[1], 1, -1), 1);
}

TEST_F(RsocketStream, NobodyListens) {
  client_ = rsocket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = local(1);
  EXPECT_EQ(rconnect(client_, any(address), sizeof address), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  close(client_);
  client_ = rsocket(AF_INET, SOCK_STREAM, 0);
  unblock(client_);
  EXPECT_EQ(rconnect(client_, any(address), sizeof address), -1);
  EXPECT_TRUE(errno == EINPROGRESS || errno == ECONNREFUSED);
  pollfd asked{client_, POLLOUT, 0};
  EXPECT_EQ(rpoll(&asked, 1, -1), 1);
  EXPECT_EQ(asked.revents, POLLOUT | POLLERR);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_ERROR), 0);
  char byte;
  EXPECT_EQ(rrecv(client_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST_F(RsocketStream, TheOtherWayStaysOpenAfterAShutdown) {
  connect();
  EXPECT_EQ(rsend(client_, "last", 4, 0), 4);
  EXPECT_EQ(rshutdown(client_, SHUT_WR), 0);
  EXPECT_EQ(rsend(client_, "more", 4, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  char bytes[8];
  EXPECT_EQ(rrecv(server_, bytes, 8, 0), 4);
  EXPECT_EQ(rrecv(server_, bytes, 8, 0), 0);
  EXPECT_EQ(rsend(server_, "answer", 6, 0), 6);
  EXPECT_EQ(rrecv(client_, bytes, 8, 0), 6);
  close(server_);
  pollfd asked{client_, POLLIN, 0};
  EXPECT_EQ(rpoll(&asked, 1, -1), 1);
  EXPECT_EQ(asked.revents, POLLIN | POLLHUP);
  EXPECT_EQ(rrecv(client_, bytes, 8, 0), 0);
}

TEST_F(RsocketStream, WhatWasSentBeforeTheEndIsRead) {
  connect();
  EXPECT_EQ(rsend(client_, "bytes", 5, 0), 5);
  close(client_);
  char bytes[8];
  EXPECT_EQ(rrecv(server_, bytes, 8, 0), 5);
  EXPECT_EQ(rrecv(server_, bytes, 8, 0), 0);
  EXPECT_EQ(rsend(server_, "x", 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

// Polling for more would mean waiting for it, and the next event may be the end.
TEST_F(RsocketStream, LooksForNoMoreThanHasCome) {
  connect();
  for (int count = 1; count <= 3; ++count) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(rsend(client_, "x", 1, 0), 1);
    const auto before = fake_rdma::vain_polls();
    pollfd asked{server_, POLLIN, 0};
    EXPECT_EQ(rpoll(&asked, 1, 0), 1);
    EXPECT_EQ(asked.revents, POLLIN);
    EXPECT_EQ(fake_rdma::vain_polls(), before);
    EXPECT_EQ(receive_all(server_, std::size_t(count), 1).size(), std::size_t(count));
  }
}

TEST_F(RsocketStream, AReaderAndAPollerSleepUntilTheEnd) {
  connect();
  std::thread reads([&] {
    char byte;
    EXPECT_EQ(rrecv(server_, &byte, 1, 0), 0);
  });
  std::thread polls([&] {
    pollfd asked{server_, POLLIN, 0};
    EXPECT_EQ(rpoll(&asked, 1, -1), 1);
    EXPECT_NE(asked.revents & POLLIN, 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rshutdown(client_, SHUT_RDWR), 0);
  reads.join();
  polls.join();
}

// A polling thread is told of completions that another thread's call took from the completion queue.
TEST_F(RsocketStream, APollerIsToldOfWhatAnotherThreadFound) {
  connect();
  for (int round = 0; round < 200; ++round) {
    std::thread polls([&] {
      pollfd asked{server_, POLLIN, 0};
      ASSERT_EQ(rpoll(&asked, 1, -1), 1);
      char byte;
      EXPECT_EQ(rrecv(server_, &byte, 1, 0), 1);
    });
    std::thread looks([&] {
      pollfd asked{server_, POLLOUT, 0};
      for (int i = 0; i < 20; ++i) EXPECT_EQ(rpoll(&asked, 1, 0), 1);
    });
    EXPECT_EQ(rsend(client_, "x", 1, 0), 1);
    polls.join();
    looks.join();
  }
}

TEST_F(RsocketStream, SelectTakesOrdinaryDescriptorsToo) {
  connect();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  fd_set read, write;
  const auto ask = [&](timeval timeout) {
    FD_ZERO(&read);
    FD_ZERO(&write);
    FD_SET(ends[0], &read);
    FD_SET(server_, &read);
    FD_SET(client_, &write);
    return rselect(std::max({ends[0], server_, client_}) + 1, &read, &write, nullptr, &timeout);
  };
  EXPECT_EQ(ask({0, 1000}), 1);
  EXPECT_TRUE(FD_ISSET(client_, &write));
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(rsend(client_, "x", 1, 0), 1);
  EXPECT_EQ(ask({5, 0}), 3);
  EXPECT_TRUE(FD_ISSET(ends[0], &read));
  EXPECT_TRUE(FD_ISSET(server_, &read));
  // A sleeping select() wakes for the ordinary descriptor.
  std::thread writes([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  });
  char bytes[2];
  EXPECT_EQ(::read(ends[0], bytes, 2), 1);
  EXPECT_EQ(rrecv(server_, bytes, 2, 0), 1);
  pollfd asked[] = {{server_, POLLIN, 0}, {-1, POLLIN, 0}, {ends[0], POLLIN, 0}};
  EXPECT_EQ(rpoll(asked, 3, -1), 1);
  EXPECT_EQ(asked[2].revents, POLLIN);
  writes.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RsocketStream, MappedMemoryIsWrittenByOffset) {
  connect([](int fd) { set(fd, SOL_RDMA, RDMA_IOMAPSIZE, 2); });
  std::vector<char> low(100000), high(5000), other(10);
  EXPECT_EQ(riomap(server_, low.data(), low.size(), PROT_WRITE, 0, 0), 0);
  EXPECT_EQ(riomap(server_, high.data(), high.size(), PROT_WRITE, 0, off_t(low.size())), off_t(low.size()));
  EXPECT_EQ(riomap(server_, other.data(), other.size(), PROT_WRITE, 0, -1), -1);
  EXPECT_EQ(errno, ENOMEM);
  const auto address = off_t(reinterpret_cast<std::uintptr_t>(other.data()));
  EXPECT_EQ(riomap(server_, other.data(), other.size(), PROT_NONE, 0, -1), address);
  EXPECT_EQ(riomap(server_, other.data(), other.size(), PROT_READ, 0, -1), -1);
  EXPECT_EQ(errno, EINVAL);
  // The mappings are sent before the next bytes.
  EXPECT_EQ(rsend(server_, "m", 1, 0), 1);
  char byte;
  EXPECT_EQ(rrecv(client_, &byte, 1, 0), 1);
  const std::vector<char> bytes = pattern(low.size() + high.size());
  EXPECT_EQ(riowrite(client_, bytes.data(), bytes.size(), 0, 0), bytes.size());
  EXPECT_EQ(riowrite(client_, "!", 1, 17, 0), 1u);
  EXPECT_EQ(riowrite(client_, "!", 1, off_t(bytes.size()), 0), 0u);
  EXPECT_EQ(rsend(client_, "d", 1, 0), 1);
  EXPECT_EQ(rrecv(server_, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'd');
  EXPECT_EQ(low[17], '!');
  low[17] = bytes[17];
  EXPECT_EQ(std::memcmp(low.data(), bytes.data(), low.size()), 0);
  EXPECT_EQ(std::memcmp(high.data(), &bytes[low.size()], high.size()), 0);
  EXPECT_EQ(riounmap(server_, low.data(), low.size()), 0);
  EXPECT_EQ(riounmap(server_, low.data(), low.size()), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RsocketStream, Options) {
  client_ = rsocket(AF_INET6, SOCK_STREAM, 0);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_RCVBUF), 1 << 17);
  set(client_, SOL_SOCKET, SO_SNDBUF, 1);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_SNDBUF), 4096);
  set(client_, SOL_RDMA, RDMA_SQSIZE, 1 << 20);
  EXPECT_EQ(get(client_, SOL_RDMA, RDMA_SQSIZE), 0xfffe);
  set(client_, SOL_RDMA, RDMA_IOMAPSIZE, 300);
  EXPECT_EQ(get(client_, SOL_RDMA, RDMA_IOMAPSIZE), 256);
  for (const auto& [level, name] :
       {std::pair{SOL_SOCKET, SO_REUSEADDR}, std::pair{SOL_SOCKET, SO_OOBINLINE},
        std::pair{int(IPPROTO_TCP), TCP_NODELAY}, std::pair{int(IPPROTO_IPV6), IPV6_V6ONLY}}) {
    EXPECT_EQ(get(client_, level, name), 0);
    set(client_, level, name, 1);
    EXPECT_EQ(get(client_, level, name), 1);
  }
  linger linger{};
  socklen_t length = sizeof linger;
  EXPECT_EQ(rgetsockopt(client_, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
  EXPECT_EQ(linger.l_onoff, 1);
  EXPECT_EQ(get(client_, IPPROTO_TCP, TCP_MAXSEG), 2048);
  int value = 0;
  EXPECT_EQ(rsetsockopt(client_, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof value), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rsetsockopt(client_, SOL_SOCKET, SO_BROADCAST, &value, sizeof value), -1);
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_EQ(rsetsockopt(client_, SOL_SOCKET, SO_RCVBUF, &value, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  length = 1;
  EXPECT_EQ(rgetsockopt(client_, SOL_SOCKET, SO_RCVBUF, &value, &length), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_in6 own{};
  length = sizeof own;
  EXPECT_EQ(rgetsockname(client_, reinterpret_cast<sockaddr*>(&own), &length), 0);
  EXPECT_EQ(own.sin6_family, AF_INET6);
  EXPECT_EQ(rgetpeername(client_, reinterpret_cast<sockaddr*>(&own), &length), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST_F(RsocketStream, NoRsocketNoAnswer) {
  char byte;
  EXPECT_EQ(rrecv(12345, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rclose(-1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_EQ(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), -1);
  EXPECT_EQ(errno, ENOTSUP);
  client_ = rsocket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(rsend(client_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rshutdown(client_, SHUT_RDWR), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(raccept(client_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RsocketStream, AKeepaliveIsSentWhileNothingElseIs) {
  connect();
  set(client_, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(client_, SOL_SOCKET, SO_KEEPALIVE, 1);
  EXPECT_EQ(get(client_, SOL_SOCKET, SO_KEEPALIVE), 1);
  const std::uint64_t sends = fake_rdma::sends();
  while (fake_rdma::sends() == sends) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  char byte;
  EXPECT_EQ(rrecv(server_, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  set(client_, SOL_SOCKET, SO_KEEPALIVE, 0);
}

// A peer without our library: it speaks the protocol with the calls below.
class RawPeer {
 public:
  explicit RawPeer(std::uint16_t port) : port_(port) {}
  ~RawPeer() { end(); }

  void start(const ConnectionData& data) {
    channel_ = rdma_create_event_channel();
    ASSERT_EQ(rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in to = local(port_);
    ASSERT_EQ(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    cq_ = ibv_create_cq(id_->verbs, 100, nullptr, nullptr, 0);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.qp_type = IBV_QPT_RC;
    ASSERT_EQ(rdma_create_qp(id_, nullptr, &attributes), 0);
    const auto bytes = encode(data);
    rdma_conn_param parameters{};
    parameters.private_data = bytes.data();
    parameters.private_data_len = std::uint8_t(bytes.size());
    ASSERT_EQ(rdma_connect(id_, &parameters), 0);
  }
  void say(Message message) {
    ibv_send_wr request{}, *bad;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htonl(encode(message));
    ASSERT_EQ(ibv_post_send(id_->qp, &request, &bad), 0);
  }
  void end() {
    if (id_ == nullptr) return;
    rdma_destroy_qp(id_);
    ibv_destroy_cq(cq_);
    rdma_destroy_id(id_);
    rdma_destroy_event_channel(channel_);
    id_ = nullptr;
  }

  static ConnectionData data() {
    static std::array<WireExtent, 2> list;
    ConnectionData data;
    data.credits = 16;
    data.targets = {reinterpret_cast<std::uintptr_t>(list.data()), 1, 2};
    return data;
  }

 private:
  std::uint16_t port_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

TEST_F(RsocketStream, APeerThatDiesIsNoticed) {
  listen();
  RawPeer peer(port_);
  peer.start(RawPeer::data());
  server_ = raccept(listener_, nullptr, nullptr);
  ASSERT_GE(server_, 0);
  std::thread reads([&] {
    char byte;
    EXPECT_EQ(rrecv(server_, &byte, 1, 0), 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  peer.end();
  reads.join();
}

TEST_F(RsocketStream, PrivateDataThatAreNone) {
  listen();
  ConnectionData other = RawPeer::data();
  other.version = 2;
  RawPeer first(port_);
  first.start(other);
  EXPECT_EQ(raccept(listener_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, ENOTSUP);
  other = RawPeer::data();
  other.targets.length = 0;
  RawPeer second(port_);
  second.start(other);
  EXPECT_EQ(raccept(listener_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EPROTO);
  // The listener serves the next connection.
  RawPeer third(port_);
  third.start(RawPeer::data());
  server_ = raccept(listener_, nullptr, nullptr);
  EXPECT_GE(server_, 0);
}

// Invalid messages of a peer end the connection, and never reach memory outside of its own.
TEST_F(RsocketStream, MessagesThatAreNone) {
  listen();
  for (const Message message : {Message{Op::data, kMaxMessageValue}, Message{Op(1), 1}, Message{Op(5), 0},
                                Message{Op::direct_write, 1}, Message{Op::iomap, 77}}) {
    RawPeer peer(port_);
    peer.start(RawPeer::data());
    const int fd = raccept(listener_, nullptr, nullptr);
    ASSERT_GE(fd, 0);
    peer.say(message);
    char byte;
    EXPECT_EQ(rrecv(fd, &byte, 1, 0), -1) << int(message.op);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(get(fd, SOL_SOCKET, SO_ERROR), EPROTO);
    EXPECT_EQ(rclose(fd), 0);
  }
}

}  // namespace
}  // namespace rnicsim::rsockets::rsocket_stream_test
