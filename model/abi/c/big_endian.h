/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Big-endian integers, as the device has them in its registers and in memory. */
#ifndef RNICSIM_ABI_BIG_ENDIAN_H
#define RNICSIM_ABI_BIG_ENDIAN_H

#include <stdint.h>

/* A compile-time check of a layout. */
#if defined(__cplusplus)
#define RNICSIM_HOLDS(what) static_assert(what, #what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define RNICSIM_HOLDS(what) _Static_assert(what, #what)
#else
#define RNICSIM_HOLDS(what) extern int rnicsim_holds[(what) ? 1 : -1]
#endif

/* Stored big-endian: read and written by the functions below alone. */
typedef uint16_t rnicsim_be16;
typedef uint32_t rnicsim_be32;
typedef uint64_t rnicsim_be64;

static inline rnicsim_be16 rnicsim_to_be16(uint16_t value) {
  union { uint8_t bytes[2]; rnicsim_be16 stored; } out;
  for (int i = 0; i < 2; ++i) out.bytes[i] = (uint8_t)(value >> (8 * (2 - 1 - i)));
  return out.stored;
}
static inline uint16_t rnicsim_from_be16(rnicsim_be16 stored) {
  union { rnicsim_be16 stored; uint8_t bytes[2]; } in = {stored};
  uint16_t value = 0;
  for (int i = 0; i < 2; ++i) value = (uint16_t)(value << 8 | in.bytes[i]);
  return value;
}

static inline rnicsim_be32 rnicsim_to_be32(uint32_t value) {
  union { uint8_t bytes[4]; rnicsim_be32 stored; } out;
  for (int i = 0; i < 4; ++i) out.bytes[i] = (uint8_t)(value >> (8 * (4 - 1 - i)));
  return out.stored;
}
static inline uint32_t rnicsim_from_be32(rnicsim_be32 stored) {
  union { rnicsim_be32 stored; uint8_t bytes[4]; } in = {stored};
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = (uint32_t)(value << 8 | in.bytes[i]);
  return value;
}

static inline rnicsim_be64 rnicsim_to_be64(uint64_t value) {
  union { uint8_t bytes[8]; rnicsim_be64 stored; } out;
  for (int i = 0; i < 8; ++i) out.bytes[i] = (uint8_t)(value >> (8 * (8 - 1 - i)));
  return out.stored;
}
static inline uint64_t rnicsim_from_be64(rnicsim_be64 stored) {
  union { rnicsim_be64 stored; uint8_t bytes[8]; } in = {stored};
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = (uint64_t)(value << 8 | in.bytes[i]);
  return value;
}

#endif  /* RNICSIM_ABI_BIG_ENDIAN_H */
