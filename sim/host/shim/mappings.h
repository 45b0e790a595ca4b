// SPDX-License-Identifier: Apache-2.0
// Memory of the process that the device has pinned.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnicsim::clock {

// Makes the pages present, as Linux does when it pins them: the device must not wait for a page later, which a
// userfaultfd could withhold for ever. False: a page cannot be had. The simulator checks for holes and access rights.
bool populate(const void* address, std::size_t bytes);

// Notes that the memory was pinned. A later unmap tells the simulator, and moves pinned pages aside first.
void note_pinned(const void* address, std::size_t bytes);
// True: the device may write there. Covers the DMA memory, and all addresses between the lowest and the highest page
// pinned so far.
bool may_be_pinned(std::uint64_t address);
// mmap, munmap, mremap, madvise and shmdt, as the C library answers them. They have names of their own because UCX
// overwrites the functions of the usual names with jumps into itself; it then calls syscall(), which leads here.
void* map_pages(void* address, std::size_t bytes, int protection, int flags, int fd, long offset);
int unmap_pages(void* address, std::size_t bytes);
void* remap_pages(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted);
int advise_pages(void* address, std::size_t bytes, int advice);
int detach_segment(const void* address);

// Unmaps pages that were moved aside and are pinned no more.
void unmap_aside(std::uint64_t address, std::size_t bytes);

}  // namespace rnicsim::clock
