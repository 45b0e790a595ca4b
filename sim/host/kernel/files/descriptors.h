// SPDX-License-Identifier: Apache-2.0
// Waits for descriptors in simulated time. The simulator watches copies of the descriptors; the thread polls them again
// when it continues.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// The real poll(2) with timeout 0.
int poll_now(std::span<pollfd> descriptors);

// Waits until a descriptor is ready or until `deadline` (absolute, in ps, or abi::kForever). Returns the number of
// ready descriptors, 0 at the deadline, or -1 with errno (EINTR; ENOMEM: the simulator cannot watch them). Fills
// revents.
int wait_descriptors(abi::ThreadSlot& slot, std::span<pollfd> descriptors, std::uint64_t deadline);

// Waits until a call on `fd` would not block. False: the call fails with errno.
bool wait_ready(abi::ThreadSlot& slot, int fd, short events);

// Charges a call that reads from or writes to `fd`, and waits if the call would block. False: the call fails with
// errno.
bool prepare(int fd, short events, bool dont_wait);

// True: O_NONBLOCK is not set.
bool blocks(int fd);

bool is_stream_socket(int fd);
bool is_pipe(int fd);
bool is_pipe_or_socket(int fd);
bool has_no_type(int fd);  // epoll, eventfd and other files without a type in st_mode

std::size_t bytes_of(std::span<const iovec> parts);

}  // namespace rnicsim::clock
