// SPDX-License-Identifier: Apache-2.0
// The experiments of one NIC: the points with this NIC, which can be run with other values, and the NIC's numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/calibrate/estimates.h"
#include "sim/calibrate/row.h"

namespace rnicsim::sim::calibrate {

struct NicRow {
  Row row;                          // only with the NIC's checks
  std::vector<std::size_t> points;  // indexes of the row's points that have the NIC
  std::size_t first_number = 0;     // index of the first of its checks among all numbers

  std::size_t end_number() const { return first_number + row.checks.size(); }
};

// A run of some rows with some values.
struct Trial {
  std::vector<std::string> sets;
  std::vector<std::size_t> rows;
};

class NicRows {
 public:
  // Takes those of `rows` that have points with the NIC.
  NicRows(std::string nic, const std::vector<Row>& rows);
  NicRows(const NicRows&) = delete;
  NicRows& operator=(const NicRows&) = delete;

  const std::string& nic() const { return nic_; }
  const std::vector<NicRow>& rows() const { return rows_; }
  std::vector<std::size_t> all() const;  // indexes of all rows, for a Trial
  // The checks of all rows, in the order of the rows: each gives a number.
  const std::vector<const Check*>& checks() const { return checks_; }

  // Estimates of the NIC and of the hosts in the rows. An estimate that differs between hosts is not searched.
  Estimates estimates() const;
  bool can_be(const std::vector<std::string>& sets) const;
  // Returns the numbers of each trial, indexed as checks(); 0 for rows that the trial does not have. Runs in child
  // processes, up to `jobs` at a time. std::runtime_error: a run failed.
  std::vector<std::vector<double>> run(const std::vector<Trial>& trials, unsigned jobs) const;

 private:
  std::string nic_;
  std::vector<NicRow> rows_;
  std::vector<const Check*> checks_;
};

}  // namespace rnicsim::sim::calibrate
