// SPDX-License-Identifier: Apache-2.0
// 512 timers (slot of a queue pair, and one of two kinds) on a hashed wheel of 64 rows, one row for each tick. Lazy: a
// timer that is set again or cancelled stays in its old row, and is checked against its deadline when the hand passes.
// An armed timer is always in the row of its deadline, and possibly in others. The hand skips empty rows, up to now_i;
// a timer whose deadline is some revolutions away stays in its row each time. An expiry accepted in the same cycle in
// which its timer is set or cancelled counts as earlier, and is delivered.
module timer_wheel #(
    parameter int unsigned TickWidth = 36
) (
    input logic clk_i,
    input logic rst_ni,

    // Never decreases; may jump between two cycles.
    input logic [TickWidth-1:0] now_i,

    // Due at now + after + 1 (must not overflow): the extra tick covers the present one, so a timer never expires
    // early.
    input  logic                 set_valid_i,
    output logic                 set_ready_o,
    input  logic [          8:0] set_timer_i,
    input  logic                 set_cancel_i,
    input  logic [TickWidth-1:0] set_after_i,

    // Stays until it is accepted, or its timer is set or cancelled.
    output logic       expired_valid_o,
    input  logic       expired_ready_i,
    output logic [8:0] expired_timer_o,

    // Outputs for the clock gate: when not busy, nothing happens before a set, or before wake_o if armed.
    output logic                 busy_o,
    output logic                 armed_o,
    output logic [TickWidth-1:0] wake_o
);

  typedef enum logic [2:0] {
    Choose,  // accept a set, or choose the hand's next step
    File,    // write the set timer into its row
    Row,     // the hand has moved, and the groups of its row are read
    Word,    // a group of the row is read
    Decide    // a timer of the row is read
  } state_e;

  // All memories are read in Choose and written in the next cycle (the deadline of a set already in Choose). They need
  // no reset: an entry is valid only if it is marked one level above. rows_q marks the rows; a row's groups mark its
  // words of 64 timers.
  logic [TickWidth:0] deadlines[512];  // {armed, deadline}
  logic [63:0] words[512];  // by row and group
  logic [7:0] groups[64];  // by row
  logic [TickWidth:0] deadline_q;
  logic [63:0] word_q;
  logic [7:0] groups_q;

  state_e state_q, state_d;
  logic [63:0] rows_q, rows_d;
  logic [TickWidth-1:0] hand_q, hand_d;
  // Rest of the hand's present row: first the timers of the present group, then further groups.
  logic [7:0] left_groups_q, left_groups_d;
  logic [63:0] left_word_q, left_word_d;
  // The timer being filed or checked, and its row; its group is also the group of left_word_q.
  logic [5:0] row_q, row_d;
  logic [8:0] timer_q, timer_d;
  logic turn_q, turn_d;  // the hand's turn after a set, so that sets cannot starve the hand
  logic valid_q, valid_d;
  logic [8:0] expired_q, expired_d;

  // Index of the lowest set bit; 0 if none is set.
  function automatic logic [2:0] first_of_8(input logic [7:0] bits);
    first_of_8 = 3'd0;
    for (int unsigned i = 8; i > 0; i--) begin
      if (bits[i-1]) first_of_8 = i[2:0] - 3'd1;
    end
  endfunction

  function automatic logic [5:0] first_of_64(input logic [63:0] bits);
    logic [7:0] any;
    logic [2:0] group;
    for (int unsigned g = 0; g < 8; g++) any[g] = |bits[8*g+:8];
    group = first_of_8(any);
    first_of_64 = {group, first_of_8(bits[{group, 3'd0}+:8])};
  endfunction

  logic [63:0] rows_behind;
  logic [TickWidth-1:0] next, deadline;
  logic due, left, accepts, takes_out;
  logic deadlines_write, row_write;
  logic [TickWidth:0] deadlines_data;
  logic [63:0] words_data;
  logic [7:0] groups_data;

  always_comb begin
    // Next tick with a non-empty row: in this revolution, else in the next, at the latest in the hand's own row.
    rows_behind = rows_q & (64'hffff_ffff_ffff_fffe << hand_q[5:0]);
    next = |rows_behind ? {hand_q[TickWidth-1:6], first_of_64(rows_behind)} :
                          {hand_q[TickWidth-1:6] + 1'b1, first_of_64(rows_q)};
    due = |rows_q && next <= now_i;
    left = |left_word_q || |left_groups_q;

    set_ready_o = state_q == Choose && !(turn_q && (left || due));
    accepts = set_valid_i && set_ready_o;
    deadline = now_i + set_after_i + 1'b1;

    state_d = Choose;
    rows_d = rows_q;
    hand_d = hand_q;
    left_groups_d = left_groups_q;
    left_word_d = left_word_q;
    row_d = row_q;
    timer_d = timer_q;
    turn_d = turn_q;
    valid_d = valid_q && !expired_ready_i;
    expired_d = expired_q;
    deadlines_write = 1'b0;
    deadlines_data = {!set_cancel_i, deadline};
    row_write = 1'b0;
    words_data = word_q;
    groups_data = groups_q;
    takes_out = 1'b0;

    case (state_q)
      Choose: begin
        turn_d = accepts;
        if (!left && !due) hand_d = now_i;
        if (accepts) begin
          deadlines_write = 1'b1;
          if (set_timer_i == expired_q) valid_d = 1'b0;
          if (!set_cancel_i) state_d = File;
          row_d = deadline[5:0];
          timer_d = set_timer_i;
        end else if (|left_word_q) begin
          row_d = hand_q[5:0];
          timer_d = {first_of_8(left_groups_q), first_of_64(left_word_q)};
          if (!valid_d) begin
            state_d = Decide;
            left_word_d[timer_d[5:0]] = 1'b0;
            if (left_word_d == '0) left_groups_d[timer_d[8:6]] = 1'b0;
          end
        end else if (|left_groups_q) begin
          state_d = Word;
          row_d = hand_q[5:0];
          timer_d = {first_of_8(left_groups_q), 6'd0};
        end else if (due) begin
          // At most one revolution, which visits every row.
          if (now_i - hand_q > TickWidth'(64)) begin
            hand_d = now_i - TickWidth'(64);
          end else begin
            state_d = Row;
            hand_d = next;
            row_d = next[5:0];
          end
        end
      end

      File: begin
        row_write = 1'b1;
        if (!rows_q[row_q]) groups_data = '0;
        if (!groups_data[timer_q[8:6]]) words_data = '0;
        words_data[timer_q[5:0]] = 1'b1;
        groups_data[timer_q[8:6]] = 1'b1;
        rows_d[row_q] = 1'b1;
      end

      Row: left_groups_d = groups_q;

      Word: left_word_d = word_q;

      Decide: begin
        deadlines_data = '0;
        if (deadline_q[TickWidth] && deadline_q[TickWidth-1:0] <= now_i) begin
          deadlines_write = 1'b1;
          valid_d = 1'b1;
          expired_d = timer_q;
        end
        takes_out = !deadline_q[TickWidth] || deadline_q[TickWidth-1:0] <= now_i || deadline_q[5:0] != row_q;
        if (takes_out) begin
          row_write = 1'b1;
          words_data[timer_q[5:0]] = 1'b0;
          if (words_data == '0) groups_data[timer_q[8:6]] = 1'b0;
          if (groups_data == '0) rows_d[row_q] = 1'b0;
        end
      end

      default: ;  // unused state
    endcase

    expired_valid_o = valid_q;
    expired_timer_o = expired_q;
    busy_o = state_q != Choose || left || due || valid_q;
    armed_o = |rows_q;
    wake_o = next;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Choose;
      rows_q <= '0;
      hand_q <= '0;
      left_groups_q <= '0;
      left_word_q <= '0;
      row_q <= '0;
      timer_q <= '0;
      turn_q <= 1'b0;
      valid_q <= 1'b0;
      expired_q <= '0;
    end else begin
      state_q <= state_d;
      rows_q <= rows_d;
      hand_q <= hand_d;
      left_groups_q <= left_groups_d;
      left_word_q <= left_word_d;
      row_q <= row_d;
      timer_q <= timer_d;
      turn_q <= turn_d;
      valid_q <= valid_d;
      expired_q <= expired_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (deadlines_write) deadlines[state_q == Choose ? set_timer_i : timer_q] <= deadlines_data;
    deadline_q <= deadlines[timer_d];
  end

  always_ff @(posedge clk_i) begin
    if (row_write) begin
      words[{row_q, timer_q[8:6]}] <= words_data;
      groups[row_q] <= groups_data;
    end
    word_q <= words[{row_d, timer_d[8:6]}];
    groups_q <= groups[row_d];
  end

endmodule
