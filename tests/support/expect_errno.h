// A call of the C library's kind that fails: -1, and this errno.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>

#define EXPECT_ERRNO(call, error) \
  do {                            \
    errno = 0;                    \
    EXPECT_EQ(call, -1);          \
    EXPECT_EQ(errno, error);      \
  } while (false)
