// SPDX-License-Identifier: Apache-2.0
// Expects that a call returns -1 with the given errno.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>

#define EXPECT_ERRNO(call, error) \
  do {                            \
    errno = 0;                    \
    EXPECT_EQ(call, -1);          \
    EXPECT_EQ(errno, error);      \
  } while (false)
