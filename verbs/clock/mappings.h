// The process's memory, as far as the device has it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnicsim::clock {

// Brings the pages in, as Linux does when it pins them: later the device must not wait for them, which a userfaultfd
// might make it do for ever. False: some of them can't be had. Holes and rights are the kernel's to judge.
bool populate(const void* address, std::size_t bytes);

// That memory was pinned: what unmaps it from now on tells the kernel, and moves its pages aside.
void note_pinned(const void* address, std::size_t bytes);
// Whether the device may write there: rings, or what was pinned so far and what lies between.
bool may_be_pinned(std::uint64_t address);
// mmap, munmap, mremap, madvise and shmdt, as the C library answers them. Under names of our own: UCX overwrites the
// functions of the others' names with jumps into itself, and makes the calls by number, which lead here.
void* map_pages(void* address, std::size_t bytes, int protection, int flags, int fd, long offset);
int unmap_pages(void* address, std::size_t bytes);
void* remap_pages(void* address, std::size_t old_bytes, std::size_t bytes, int flags, void* wanted);
int advise_pages(void* address, std::size_t bytes, int advice);
int detach_segment(const void* address);

// Pages aside that nobody needs any more.
void unmap_aside(std::uint64_t address, std::size_t bytes);

}  // namespace rnicsim::clock
