// SPDX-License-Identifier: Apache-2.0
// A program with socket calls uses rsockets, and ordinary sockets if the peer has no rsocket. The calls of this test
// are those of librspreload.so.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "tests/support/fake_rdma.h"

namespace rnicsim::rsockets {
namespace {

sockaddr* any(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

class RsocketPreload : public testing::Test {
 protected:
  void SetUp() override {
    objects_ = fake_rdma::objects();
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(listener_, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener_, any(address_), sizeof address_), 0);
    socklen_t length = sizeof address_;
    ASSERT_EQ(getsockname(listener_, any(address_), &length), 0);
    ASSERT_EQ(listen(listener_, 1), 0);
    EXPECT_GT(fake_rdma::objects(), objects_);
  }
  void TearDown() override {
    for (const int fd : {client_, server_, listener_}) EXPECT_TRUE(fd < 0 || close(fd) == 0);
    EXPECT_EQ(fake_rdma::objects(), objects_);
  }
  void connect_both() {
    client_ = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    ASSERT_GE(client_, 0);
    std::thread accepts([&] { server_ = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK); });
    EXPECT_EQ(connect(client_, any(address_), sizeof address_), 0);
    accepts.join();
    ASSERT_GE(server_, 0);
  }
  std::string receive(int fd) {
    pollfd asked{fd, POLLIN, 0};
    if (poll(&asked, 1, -1) != 1) return "poll";
    char bytes[100];
    const ssize_t count = read(fd, bytes, sizeof bytes);
    return count < 0 ? "error" : std::string(bytes, std::size_t(count));
  }

  int objects_ = 0;
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  sockaddr_in address_{};
};

TEST_F(RsocketPreload, BytesGoByRsockets) {
  connect_both();
  EXPECT_EQ(fcntl(listener_, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(server_, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  char byte;
  EXPECT_EQ(recv(server_, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::uint64_t sends = fake_rdma::sends();
  EXPECT_EQ(write(client_, "hello", 5), 5);
  EXPECT_GT(fake_rdma::sends(), sends);
  EXPECT_EQ(receive(server_), "hello");
  EXPECT_EQ(send(server_, "back", 4, MSG_NOSIGNAL), 4);
  EXPECT_EQ(receive(client_), "back");
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  EXPECT_EQ(getpeername(client_, any(peer), &length), 0);
  EXPECT_EQ(peer.sin_port, address_.sin_port);
  int on = 1;
  EXPECT_EQ(setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  EXPECT_EQ(shutdown(client_, SHUT_WR), 0);
  EXPECT_EQ(receive(server_), "");
}

TEST_F(RsocketPreload, SelectAndOrdinaryDescriptors) {
  connect_both();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], "p", 1), 1);
  EXPECT_EQ(write(client_, "x", 1), 1);
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(server_, &reads);
  FD_SET(client_, &reads);
  FD_SET(ends[0], &reads);
  EXPECT_EQ(select(std::max({server_, client_, ends[0]}) + 1, &reads, nullptr, nullptr, nullptr), 2);
  EXPECT_TRUE(FD_ISSET(server_, &reads));
  EXPECT_TRUE(FD_ISSET(ends[0], &reads));
  EXPECT_FALSE(FD_ISSET(client_, &reads));
  EXPECT_EQ(receive(ends[0]), "p");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(RsocketPreload, CopiesShareTheRsocket) {
  connect_both();
  const int copy = dup(client_);
  const int second = fcntl(client_, F_DUPFD, 100);
  EXPECT_GE(second, 100);
  const int third = dup2(client_, second);
  EXPECT_EQ(third, second);
  EXPECT_EQ(close(client_), 0);
  client_ = -1;
  EXPECT_EQ(write(copy, "copy", 4), 4);
  EXPECT_EQ(receive(server_), "copy");
  EXPECT_EQ(close(copy), 0);
  EXPECT_EQ(write(third, "third", 5), 5);
  EXPECT_EQ(receive(server_), "third");
  EXPECT_EQ(close(third), 0);
  EXPECT_EQ(receive(server_), "");
  char byte;
  EXPECT_EQ(read(third, &byte, 1), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(RsocketPreload, FilesAreSent) {
  connect_both();
  const int file = int(::syscall(SYS_memfd_create, "file", 0));
  ASSERT_EQ(write(file, "0123456789", 10), 10);
  off_t offset = 3;
  EXPECT_EQ(sendfile(client_, file, &offset, 4), 4);
  EXPECT_EQ(offset, 7);
  EXPECT_EQ(receive(server_), "3456");
  lseek(file, 8, SEEK_SET);
  EXPECT_EQ(sendfile(client_, file, nullptr, 100), 2);
  EXPECT_EQ(lseek(file, 0, SEEK_CUR), 10);
  EXPECT_EQ(receive(server_), "89");
  EXPECT_EQ(sendfile(client_, file, nullptr, 100), 0);
  close(file);
}

// An ordinary listener, made below this library: the client's socket becomes an ordinary one with the same number.
TEST_F(RsocketPreload, FallsBackToASocket) {
  const int ordinary = int(::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(ordinary, any(at), sizeof at), 0);
  ASSERT_EQ(listen(ordinary, 1), 0);
  socklen_t length = sizeof at;
  ASSERT_EQ(getsockname(ordinary, any(at), &length), 0);
  client_ = socket(AF_INET, SOCK_STREAM, 0);
  int on = 1;
  ASSERT_EQ(setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  ASSERT_EQ(connect(client_, any(at), sizeof at), 0);
  int value = 0;
  length = sizeof value;
  EXPECT_EQ(getsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
  EXPECT_NE(value, 0);
  const int accepted = accept(ordinary, nullptr, nullptr);
  const std::uint64_t sends = fake_rdma::sends();
  EXPECT_EQ(write(client_, "tcp", 3), 3);
  EXPECT_EQ(fake_rdma::sends(), sends);
  EXPECT_EQ(receive(accepted), "tcp");
  EXPECT_EQ(write(accepted, "back", 4), 4);
  EXPECT_EQ(receive(client_), "back");
  close(accepted);
  close(ordinary);
}

TEST_F(RsocketPreload, DatagramsToo) {
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(receiver, any(at), sizeof at), 0);
  socklen_t length = sizeof at;
  ASSERT_EQ(getsockname(receiver, any(at), &length), 0);
  EXPECT_EQ(sendto(sender, "one", 3, 0, any(at), sizeof at), 3);
  EXPECT_EQ(receive(receiver), "one");
  EXPECT_EQ(close(sender), 0);
  EXPECT_EQ(close(receiver), 0);
}

TEST_F(RsocketPreload, OtherSocketsStayWhatTheyAre) {
  const int made = fake_rdma::objects();
  const int local = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_GE(local, 0);
  EXPECT_EQ(close(local), 0);
  EXPECT_EQ(fake_rdma::objects(), made);
  EXPECT_EQ(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
}

}  // namespace
}  // namespace rnicsim::rsockets
