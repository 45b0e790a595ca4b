// SPDX-License-Identifier: Apache-2.0
// Reads the time-stamp counter a thousand times at one place. Flags, the red zone and all registers must keep their
// values. A jump to the instruction behind must work.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined __x86_64__
#error of x86-64
#endif

enum { kReads = 1000 };

__attribute__((noinline)) static uint64_t read_counter(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

// The instruction must not change carry and zero flag.
__attribute__((noinline)) static int flags_after(uint64_t a, uint64_t b) {
  uint8_t carry, zero;
  __asm__ volatile("cmp %3, %2\n\trdtsc\n\tlea 16(%%rax), %%rax\n\tsetc %0\n\tsetz %1"
                   : "=q"(carry), "=q"(zero) : "r"(a), "r"(b) : "rax", "rdx");
  return carry * 2 + zero;
}

__attribute__((noinline)) static uint64_t red_zone_after(uint64_t value) {
  uint64_t result;
  __asm__ volatile("mov %1, -8(%%rsp)\n\tmov %1, -128(%%rsp)\n\trdtsc\n\tmov -8(%%rsp), %0\n\tadd -128(%%rsp), %0"
                   : "=&r"(result) : "r"(value) : "rax", "rdx", "memory", "cc");
  return result;
}

// Alternates between the read and a jump to the instruction behind the read.
__attribute__((noinline)) static uint64_t behind(int passes) {
  uint64_t sum = 0;
  __asm__ volatile("rdtsc\n1:\tlea 3(%0), %0\n\tdec %1\n\tjnz 1b" : "+r"(sum), "+r"(passes) : : "rax", "rdx", "cc");
  return sum;
}

// Checks all registers that RDTSC does not write.
__attribute__((noinline)) static uint64_t registers_after(uint64_t seed) {
  uint64_t changed;
  __asm__ volatile(
      "mov %1, %%rbx\n\tmov %1, %%rcx\n\tmov %1, %%rsi\n\tmov %1, %%rdi\n\tmov %1, %%r8\n\tmov %1, %%r9\n\t"
      "mov %1, %%r10\n\tmov %1, %%r11\n\tmov %1, %%r13\n\tmov %1, %%r14\n\tmov %1, %%r15\n\t"
      "movq %1, %%xmm0\n\tmovq %1, %%xmm7\n\tmovq %1, %%xmm15\n\t"
      "rdtsc\n\tlea 0(%%rax,%%rax,1), %%rax\n\t"
      "mov $0, %0\n\t"
      "xor %1, %%rbx\n\tor %%rbx, %0\n\txor %1, %%rcx\n\tor %%rcx, %0\n\txor %1, %%rsi\n\tor %%rsi, %0\n\t"
      "xor %1, %%rdi\n\tor %%rdi, %0\n\txor %1, %%r8\n\tor %%r8, %0\n\txor %1, %%r9\n\tor %%r9, %0\n\t"
      "xor %1, %%r10\n\tor %%r10, %0\n\txor %1, %%r11\n\tor %%r11, %0\n\txor %1, %%r13\n\tor %%r13, %0\n\t"
      "xor %1, %%r14\n\tor %%r14, %0\n\txor %1, %%r15\n\tor %%r15, %0\n\t"
      "movq %%xmm0, %%rax\n\txor %1, %%rax\n\tor %%rax, %0\n\tmovq %%xmm7, %%rax\n\txor %1, %%rax\n\tor %%rax, %0\n\t"
      "movq %%xmm15, %%rax\n\txor %1, %%rax\n\tor %%rax, %0"
      : "=&r"(changed)
      : "r"(seed)
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r13", "r14", "r15", "xmm0", "xmm7",
        "xmm15", "cc");
  return changed;
}

// Prints the least and the most cycles between two reads.
static void intervals(const char *who) {
  uint64_t least = UINT64_MAX, most = 0, before = read_counter();
  for (int i = 0; i < kReads; ++i) {
    const uint64_t now = read_counter(), passed = now - before;
    least = passed < least ? passed : least;
    most = passed > most ? passed : most;
    before = now;
  }
  printf("%s: %lu to %lu cycles apart\n", who, (unsigned long)least, (unsigned long)most);
}

// Waits with the counter alone.
static void wait_and_count(uint64_t cycles) {
  const uint64_t end = read_counter() + cycles;
  long reads = 0;
  while (read_counter() < end) ++reads;
  printf("%ld thousand reads in %lu ms\n", reads / 1000, (unsigned long)(cycles / 1000000));
}

static void *read_beside(void *who) {
  intervals(who);
  return NULL;
}

int main(void) {
  // One thread may patch the instruction while another waits within its read.
  pthread_t readers[3];
  char *const names[] = {"first", "second", "third"};
  for (int i = 0; i < 3; ++i) pthread_create(&readers[i], NULL, read_beside, names[i]);
  for (int i = 0; i < 3; ++i) pthread_join(readers[i], NULL);
  intervals("main");
  int wrong = 0;
  for (uint64_t i = 0; i < kReads; ++i) {
    const int flags = i % 3 < 1 ? 2 : i % 3 < 2 ? 1 : 0;
    wrong += flags_after(i % 3, 1) != flags;
    wrong += red_zone_after(i) != 2 * i;
    wrong += registers_after(i * 0x9e3779b97f4a7c15u) != 0;
    wrong += behind(1 + (int)(i % 4)) != 3 * (1 + i % 4);
  }
  printf("wrong: %d\n", wrong);
  if (fork() == 0) {
    intervals("child");
    exit(0);
  }
  wait(NULL);
  wait_and_count(10000000);
  usleep(1);
  intervals("then");
  wait_and_count(100000000);
}
