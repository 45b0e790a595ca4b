// 512 timers (a queue pair's slot, and one of its two kinds) on a hashed wheel of 64 rows, a row a tick. It is lazy: a
// timer that is set anew or cancelled stays filed where it was, and is found out when the hand comes by.
// An armed timer is always filed in the row of its deadline, and maybe in others. The hand jumps along the rows that
// are not empty, up to now_i; a timer whose deadline is revolutions away stays in its row each time.
// An expiry that is taken in the very cycle in which its timer is set or cancelled was first, and is delivered.
module timer_wheel #(
    parameter int unsigned TickWidth = 36
) (
    input logic clk_i,
    input logic rst_ni,

    // It never goes back, and may have jumped between two cycles.
    input logic [TickWidth-1:0] now_i,

    // Due at now + after + 1 (which must not overflow): never early, because a tick had already begun.
    input  logic                 set_valid_i,
    output logic                 set_ready_o,
    input  logic [          8:0] set_timer_i,
    input  logic                 set_cancel_i,
    input  logic [TickWidth-1:0] set_after_i,

    // Stands until it is taken or its timer is set or cancelled.
    output logic       expired_valid_o,
    input  logic       expired_ready_i,
    output logic [8:0] expired_timer_o,

    // For the clock's gate: when not busy, nothing happens before a set, or before wake_o if armed.
    output logic                 busy_o,
    output logic                 armed_o,
    output logic [TickWidth-1:0] wake_o
);

  typedef enum logic [2:0] {
    Choose,  // a set, or the hand's next step
    File,    // what was set goes into its row
    Row,     // the hand has moved, and the row's groups have been read
    Word,    // a group of the row has been read
    Judge    // a timer of the row has been read
  } state_e;

  // All are read in Choose, and written in the cycle behind it (a deadline that is set: in Choose). They need no reset:
  // what is not marked a level above means nothing. rows_q marks the rows, a row's groups mark its words of 64 timers.
  logic [TickWidth:0] deadlines[512];  // armed, deadline
  logic [63:0] words[512];  // by row and group
  logic [7:0] groups[64];  // by row
  logic [TickWidth:0] deadline_q;
  logic [63:0] word_q;
  logic [7:0] groups_q;

  state_e state_q, state_d;
  logic [63:0] rows_q, rows_d;
  logic [TickWidth-1:0] hand_q, hand_d;
  // What the hand has still to visit in its row: groups, and timers of the group before them.
  logic [7:0] left_groups_q, left_groups_d;
  logic [63:0] left_word_q, left_word_d;
  // The timer that is filed or judged, and its row; its group is also that of left_word_q.
  logic [5:0] row_q, row_d;
  logic [8:0] timer_q, timer_d;
  logic turn_q, turn_d;  // the hand's, after a set, so that sets do not stop it for ever
  logic valid_q, valid_d;
  logic [8:0] expired_q, expired_d;

  // The first of the bits; of none it says 0.
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
    // The next tick whose row is not empty: of this revolution, else of the next, at the latest the hand's own row.
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
            state_d = Judge;
            left_word_d[timer_d[5:0]] = 1'b0;
            if (left_word_d == '0) left_groups_d[timer_d[8:6]] = 1'b0;
          end
        end else if (|left_groups_q) begin
          state_d = Word;
          row_d = hand_q[5:0];
          timer_d = {first_of_8(left_groups_q), 6'd0};
        end else if (due) begin
          // Never more than a revolution: that visits every row.
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

      Judge: begin
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

      default: ;  // there is none
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
