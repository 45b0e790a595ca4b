// SPDX-License-Identifier: Apache-2.0
// Output of programs: complete lines, all of them, and an end for programs that print for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sim/attached/output.h"

namespace rnicsim::sim {
namespace {

class OutputRelayTest : public testing::Test {
 protected:
  OutputRelayTest() : shown_(::open_memstream(&text_, &bytes_)) {}
  ~OutputRelayTest() override {
    std::fclose(shown_);
    std::free(text_);
  }
  // Returns the program's end of its standard output.
  Descriptor add(const std::string& label, std::FILE* to) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    relay_.add(Descriptor(ends[0]), label, to);
    return Descriptor(ends[1]);
  }
  Descriptor add(const std::string& label) { return add(label, shown_); }
  static void say(const Descriptor& to, const std::string& text) {
    EXPECT_EQ(::write(to.get(), text.data(), text.size()), ssize_t(text.size()));
  }
  std::string shown() const { return {text_, bytes_}; }

  char* text_ = nullptr;
  std::size_t bytes_ = 0;
  std::FILE* shown_;
  OutputRelay relay_;
};

TEST_F(OutputRelayTest, WholeLines) {
  Descriptor program = add("h0");
  EXPECT_FALSE(relay_.drain());
  say(program, "one\ntw");
  EXPECT_TRUE(relay_.drain());
  EXPECT_EQ(shown(), "h0| one\n");
  say(program, "o\n\nthree");
  program.reset();
  EXPECT_TRUE(relay_.drain());
  EXPECT_EQ(shown(), "h0| one\nh0| two\nh0| \nh0| three\n");
  EXPECT_FALSE(relay_.drain());
}

TEST_F(OutputRelayTest, AnEndAlone) {
  Descriptor program = add("h0");
  say(program, "no newline");
  relay_.drain();
  program.reset();
  relay_.drain();
  EXPECT_EQ(shown(), "h0| no newline\n");
}

// At the end of a run there is only one drain.
TEST_F(OutputRelayTest, AllProgramsAtOnce) {
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const std::string label = "h" + std::to_string(i);
    say(add(label), "last words");
    expected += label + "| last words\n";
  }
  relay_.drain();
  EXPECT_EQ(shown(), expected);
}

TEST_F(OutputRelayTest, ALineWithoutAnEndIsShownInParts) {
  const Descriptor program = add("h0");
  const std::string some(1u << 15, 'x');
  for (std::size_t said = 0; said < 3 * LabelledLines::kMostLine; said += some.size()) {
    say(program, some);
    relay_.drain();
  }
  EXPECT_GT(shown().size(), 2 * LabelledLines::kMostLine);
  EXPECT_LT(shown().find('\n'), LabelledLines::kMostLine + (1u << 17));
}

// A program that prints again whenever a line was read.
struct Talker {
  static constexpr int kMost = 1000;
  Descriptor end;
  int lines = 0;
  static ssize_t took(void* self, const char*, std::size_t bytes) {
    auto& talker = *static_cast<Talker*>(self);
    if (talker.lines++ < kMost) say_more(talker.end);
    return ssize_t(bytes);
  }
  static void say_more(const Descriptor& to) { EXPECT_EQ(::write(to.get(), "more\n", 5), 5); }
};

TEST_F(OutputRelayTest, WhoNeverStopsPrintingIsLeft) {
  Talker talker;
  int asked = 0;
  relay_.goes_on = [&] { return ++asked < 3; };
  std::FILE* screen = ::fopencookie(&talker, "w", {nullptr, Talker::took, nullptr, nullptr});
  std::setvbuf(screen, nullptr, _IOLBF, 0);
  talker.end = add("h0", screen);
  Talker::say_more(talker.end);
  EXPECT_TRUE(relay_.drain());
  EXPECT_EQ(talker.lines, 3);
  std::fclose(screen);
}

}  // namespace
}  // namespace rnicsim::sim
