// SPDX-License-Identifier: Apache-2.0
// One process of the walk: draws a call, predicts the result, makes the call and compares.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "model/host/software_process.h"
#include "tests/soak/verbs_walk/objects.h"

namespace rnicsim::testing {

class Walker;

// State that the processes share outside of the simulated network.
struct Town {
  std::vector<Walker*> walkers;
  bool broken = false;                    // a walker found a fault: all walkers stop
  std::map<std::uint64_t, Frame> frames;  // key: id of the frame
  // Limits of a host's device; SIZE_MAX: more than the walk ever makes.
  struct Few {
    std::size_t rules = SIZE_MAX, spreads = SIZE_MAX, counters = SIZE_MAX;
  } few;
  XrcTown xrc;
  std::array<std::set<std::shared_ptr<DeviceMemory>>, 2> devices;  // by host; objects in a call's use are included
  std::array<std::uint32_t, 2> rule_changes{};  // by host: counted at the start and at the end of each change of a rule
};

class Walker {
 public:
  Walker(Town& town, std::uint32_t index, std::uint64_t seed);
  ~Walker();
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  void open(host::SoftwareProcess& process);
  void step();
  // End of the walk, in this order. All processes complete a phase before the next phase begins.
  void expect_progress();
  void flush();
  void close();

  std::uint32_t index() const { return index_; }
  std::uint64_t completions() const { return completions_; }
  std::uint64_t frames() const { return frames_; }
  std::uint64_t extended() const { return extended_; }
  std::uint32_t host() const { return index_ == 0 ? 0 : 1; }
  Arena& arena() { return arena_; }
  const std::vector<std::shared_ptr<Pair>>& pairs() const { return pairs_; }
  const std::vector<std::shared_ptr<Region>>& regions() const { return regions_; }
  const std::vector<std::shared_ptr<Window>>& windows() const { return windows_; }
  const std::vector<std::shared_ptr<SharedQueue>>& shared() const { return shared_; }
  const ibv_gid& gid() const { return gid_; }

 private:
  using Errors = std::initializer_list<int>;

  // --- Reports. `answer`: 0 or an errno.
  void fail(const std::string& what);
  bool expect(const std::string& call, int answer, Errors allowed);
  bool expect(const std::string& call, int answer, const std::set<int>& allowed);
  template <class Object>
  int made(Object* object) {
    return object != nullptr ? 0 : errno;
  }

  // --- Objects (making.cpp).
  void make_something();
  void destroy_something();
  void make_domain(std::uint32_t context);
  void make_parent(std::uint32_t context);
  void make_thread(std::uint32_t context);
  void make_region(std::shared_ptr<Domain> domain, bool whole);
  void make_null_region(const std::shared_ptr<Domain>& domain);
  void change_region();
  void make_window();
  void make_way(const std::shared_ptr<Domain>& domain);
  void make_channel(std::uint32_t context);
  void make_queue(std::uint32_t context, bool large);
  void resize_queue();
  void make_shared(const std::shared_ptr<Domain>& domain);
  void change_shared();
  void make_pair(std::uint32_t context, ibv_qp_type type);
  void remove(const std::shared_ptr<ThreadDomain>& thread);
  void remove(const std::shared_ptr<Domain>& domain);
  void remove(const std::shared_ptr<Region>& region);
  void remove(const std::shared_ptr<Window>& window);
  void remove(const std::shared_ptr<Way>& way);
  void remove(const std::shared_ptr<Channel>& channel);
  void remove(const std::shared_ptr<Queue>& queue);
  void remove(const std::shared_ptr<SharedQueue>& shared);
  void remove(const std::shared_ptr<Pair>& pair);
  template <class Object>
  void remove_all(std::vector<std::shared_ptr<Object>>& objects);
  template <class Object>
  std::shared_ptr<Object> any(std::vector<std::shared_ptr<Object>>& objects);
  std::shared_ptr<Domain> any_domain(std::uint32_t context);
  std::shared_ptr<Domain> any_stocked_domain(std::uint32_t context);
  std::shared_ptr<Queue> any_queue(std::uint32_t context);
  std::size_t most_unpolled(const Queue& queue) const;
  void note_room();
  void add(const std::shared_ptr<SharedQueue>& shared, const std::shared_ptr<Domain>& domain,
           const ibv_srq_attr& granted);

  template <class Object, class Remove>
  void remove_each(std::vector<std::shared_ptr<Object>>& objects, Remove&& remove);

  // --- Objects for raw packets (frames_making.cpp).
  void make_frame_objects(std::uint32_t context);
  void make_of_frames();
  void destroy_of_frames();
  void make_work_queue(std::uint32_t context);
  void move_work_queue(const std::shared_ptr<Pair>& pair, ibv_wq_state to);
  void make_table(std::uint32_t context);
  void make_spread(std::uint32_t context);
  void make_counters(std::uint32_t context);
  void read_counters();
  void make_rule(std::uint32_t context);
  static std::vector<std::shared_ptr<Pair>> receivers_of(const Rule& rule);
  template <class Objects>
  std::set<int> room_for(Objects Walker::*objects, std::size_t most) const;
  void remove_work_queue(const std::shared_ptr<Pair>& pair);
  void remove(const std::shared_ptr<IndirectionTable>& table);
  void remove(const std::shared_ptr<Spread>& spread);
  void remove(const std::shared_ptr<CounterSet>& set);
  void remove(const std::shared_ptr<Rule>& rule);
  void break_frames();
  void close_frames();

  // --- XRC (xrc_making.cpp).
  void make_extended_objects(std::uint32_t context);
  void make_of_extended();
  void destroy_of_extended();
  void open_domain(std::uint32_t context, std::optional<std::uint32_t> file, int flags);
  void make_extended_shared(const std::shared_ptr<XrcOpening>& opening);
  void make_receiver(const std::shared_ptr<XrcOpening>& opening);
  void open_receiver(const std::shared_ptr<XrcOpening>& opening);
  void add(const std::shared_ptr<XrcOpening>& opening, const std::shared_ptr<Pair>& pair, ibv_qp* qp);
  void move_receiver();
  void take_turn(Pair& pair);
  void leave_domain(const SharedQueue& shared);
  void remove(const std::shared_ptr<XrcOpening>& opening);
  void remove(const std::shared_ptr<XrcReceiver>& receiver);
  void break_extended();
  void open_badly(const std::shared_ptr<XrcOpening>& opening);
  void make_badly(const std::shared_ptr<XrcOpening>& opening);
  void close_extended();

  // --- Calls that must fail (illegal.cpp).
  void break_something();
  void garble_handle();
  void swap_contexts();
  void ask_too_much();
  void mix_contexts();
  void join_badly();
  void ask_nonsense();
  void garbled(std::uint32_t& handle, const std::string& call, const std::function<int()>& make);
  void swapped(ibv_context*& context, const std::string& call, const std::function<int()>& make);

  // --- The state machine (states.cpp).
  struct Change {
    ibv_qp_attr attributes{};
    int mask = 0;
  };
  void move_something();
  void move(const std::shared_ptr<Pair>& pair);
  void move_on(const std::shared_ptr<Pair>& pair);
  void modify(const std::shared_ptr<Pair>& pair, const Change& change);
  void reset(Pair& pair);
  void query(const std::shared_ptr<Pair>& pair);
  void join_or_leave();
  void choose_peer(const std::shared_ptr<Pair>& pair);
  Change change_to(const std::shared_ptr<Pair>& pair, ibv_qp_state from, ibv_qp_state to);
  void spoil(Change& change);
  std::set<ibv_qp_state> possible_states(const Pair& pair) const;
  void outcomes(const Pair& pair, ibv_qp_state from, const Change& change, std::set<int>& allowed) const;

  // --- Work requests (traffic.cpp; with ibv_wr_* and ibv_bind_mw: batches.cpp). One send request and its expected
  // result.
  struct Request {
    ibv_send_wr wr{};
    std::array<ibv_sge, 4> sges{};
    Send send;
    int error = 0;  // errno of the post call
    bool inlined = false;
    std::array<std::uint8_t, kFrameHeaders> headers{};  // headers of a TSO frame
    int namings = 1;                                    // number of times that the builder sets the remote SRQ
  };
  void post_something();
  void post_sends(const std::shared_ptr<Pair>& pair);
  void post_looped_sends(const std::shared_ptr<Pair>& pair);
  void post_batch(const std::shared_ptr<Pair>& pair);
  bool draw_batch(const std::shared_ptr<Pair>& pair, std::vector<std::unique_ptr<Request>>& requests);
  void build(const Pair& pair, const Request& request);
  void bind_window(const std::shared_ptr<Pair>& pair);
  void post_receives(const std::shared_ptr<Pair>& pair);
  void post_shared(const std::shared_ptr<SharedQueue>& shared);
  bool draw_send(const std::shared_ptr<Pair>& pair, Request& request);
  int cut_in_two(ibv_sge* sges, std::uint64_t address, std::uint32_t length, std::uint32_t key, std::uint32_t most);
  void draw_remote(const Pair& pair, Request& request, unsigned right);
  bool draw_receive(const Domain& domain, std::uint32_t max_sge, ibv_recv_wr& wr, std::array<ibv_sge, 2>& sges,
                    Receive& receive, int& error);
  std::shared_ptr<Region> draw_region(const Domain& domain, std::uint32_t cell, bool of_device = false);
  void give_back(const Send& send);
  void give_back(const Receive& receive) {
    arena_.give_back(receive.cell);
    if (receive.slot) receive.slot->device->give_back(receive.slot->at);
  }
  bool is_firm(const Pair& pair) const;

  // --- Device memory (device_making.cpp, device_traffic.cpp).
  void make_device_memory(std::uint32_t context);
  void make_device_region(const std::shared_ptr<DeviceMemory>& device);
  void remove(const std::shared_ptr<DeviceMemory>& device);
  bool has_room_for(std::uint32_t pages) const;
  void break_device_memory();
  bool is_whole(DeviceMemory& device);
  std::optional<Slot> take_slot(const Region& region);
  void store_slot(const Slot& slot, std::uint32_t cell, std::uint32_t length);
  void load_slot(const Slot& slot, std::uint32_t cell, std::uint32_t length);
  bool draw_remote_slot(Walker& owner, const Domain& domain, Request& request, unsigned right);
  void check_remote_slot(const Send& send);
  void check_slots();

  // --- Work requests over XRC (xrc_traffic.cpp).
  void post_extended();
  void name_queue(const Pair& pair, Request& request);
  static bool names(const Send& send, Remote how);
  void complete_extended(const Queue& queue, SharedQueue& shared, const ibv_wc& wc);
  void check_message(const SharedQueue& shared, const ibv_wc& wc, std::optional<std::uint64_t> id);
  void check_shared_event(const ibv_async_event& event);

  // --- Raw packets (frames_traffic.cpp).
  void post_frames();
  bool draw_frame(const std::shared_ptr<Pair>& pair, Request& request);
  void find_takers(Frame& frame, std::uint32_t on, std::optional<std::uint16_t> udp_port);
  void check_frame(Pair& pair, const Receive& receive, const ibv_wc& wc, std::optional<std::uint32_t> tag);
  void check_taker(const Pair& pair, const Frame& frame);

  // --- Completions (completions.cpp).
  void look();
  void poll(const std::shared_ptr<Queue>& queue);
  void poll_extended(Queue& queue);
  void take_events();
  // `tag`: flow tag of a raw packet, if known; 0: no tag.
  void complete(Queue& queue, const ibv_wc& wc, std::optional<std::uint32_t> tag = {});
  std::shared_ptr<Pair> pair_of(std::uint32_t number) const;
  void complete_vaguely(Pair& pair, const ibv_wc& wc);
  void complete_send(Pair& pair, const ibv_wc& wc);
  void complete_receive(Pair& pair, const ibv_wc& wc, std::optional<std::uint32_t> tag);
  void check_status(Pair& pair, const Send& send, ibv_wc_status status);
  void check_success(Pair& pair, const Send& send, const ibv_wc& wc);
  void check_received(const Pair& pair, const Receive& receive, const ibv_wc& wc);
  std::optional<std::uint64_t> check_bytes(const Receive& receive, const ibv_wc& wc, std::uint32_t header,
                                           bool may_be_inline);
  bool is_sure(const Pair& pair, const Send& send) const;
  void expect_failed(Pair& pair, const ibv_wc& wc);
  void pass(std::int64_t nanoseconds);

  static constexpr std::uint32_t kContexts = 2;
  // longest SEND, in bytes, that the CQE contains
  static constexpr std::uint32_t kInlineContext = 1, kInlineReceive = 48;
  static constexpr std::uint64_t kSendMark = 1ull << 63;

  Town& town_;
  const std::uint32_t index_;
  const std::uint64_t seed_;
  Dice dice_;
  Arena arena_;
  host::SoftwareProcess* process_ = nullptr;
  std::uint64_t step_ = 0;
  std::uint64_t next_id_;
  std::uint64_t completions_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t extended_ = 0;
  ibv_gid gid_{};
  ibv_device_attr limits_{};
  std::uint64_t device_bytes_ = 0;
  std::array<ibv_context*, kContexts> contexts_{};
  std::vector<std::shared_ptr<ThreadDomain>> threads_;
  std::vector<std::shared_ptr<Domain>> domains_;
  std::vector<std::shared_ptr<Region>> regions_;
  std::vector<std::shared_ptr<Window>> windows_;
  std::vector<std::shared_ptr<Way>> ways_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::vector<std::shared_ptr<Queue>> queues_;
  std::vector<std::shared_ptr<SharedQueue>> shared_;
  std::vector<std::shared_ptr<Pair>> pairs_;
  std::vector<std::shared_ptr<Pair>> work_queues_;
  std::vector<std::shared_ptr<IndirectionTable>> tables_;
  std::vector<std::shared_ptr<Spread>> spreads_;
  std::vector<std::shared_ptr<CounterSet>> counters_;
  std::vector<std::shared_ptr<Rule>> rules_;
  std::vector<std::shared_ptr<XrcOpening>> openings_;
  std::vector<std::shared_ptr<XrcReceiver>> receivers_;
  std::vector<std::shared_ptr<DeviceMemory>> devices_;
  // Data that peers wrote to a device memory of this walker, and cannot read themselves.
  struct Written {
    Slot slot;
    std::uint32_t length;
    std::uint64_t id;
    bool zeros;
    Duration from;
  };
  std::deque<Written> written_;
};

template <class Object>
std::shared_ptr<Object> Walker::any(std::vector<std::shared_ptr<Object>>& objects) {
  return objects.empty() ? nullptr : dice_.one_of(objects);
}

// Removes objects until a removal fails.
template <class Object, class Remove>
void Walker::remove_each(std::vector<std::shared_ptr<Object>>& objects, Remove&& remove) {
  for (std::size_t before = objects.size(); before != 0; before = objects.size()) {
    remove(std::shared_ptr<Object>(objects.back()));
    if (objects.size() == before) return;  // the failure is reported already
  }
}

}  // namespace rnicsim::testing
