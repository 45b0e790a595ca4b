// SPDX-License-Identifier: Apache-2.0
// Writes text to a file in large pieces.
#pragma once

#include <cstdio>
#include <string>

namespace rnicsim::sim {

class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}
  // Flushes, so that a damaged trace is printed up to the damage.
  ~TextOutput() { flush(); }
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  // Append text here. end_line() writes the text to the file once it reaches kPieceBytes.
  std::string& text() { return text_; }
  void end_line() {
    text_ += '\n';
    if (text_.size() >= kPieceBytes) write();
  }
  // False: a write failed.
  bool flush() {
    write();
    return std::fflush(file_) == 0 && whole_;
  }

 private:
  static constexpr std::size_t kPieceBytes = 1 << 16;

  void write() {
    whole_ &= std::fwrite(text_.data(), 1, text_.size(), file_) == text_.size();
    text_.clear();
  }

  std::FILE* const file_;
  std::string text_;
  bool whole_ = true;
};

}  // namespace rnicsim::sim
