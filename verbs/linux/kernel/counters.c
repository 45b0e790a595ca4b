// SPDX-License-Identifier: GPL-2.0
/* The port's counters, by the names that Linux has for them. */
#include "rnic.h"

#define COUNTER(counter_name, member) \
	{ { .name = counter_name }, offsetof(struct rnicsim_port_counters, member) }

static const struct {
	struct rdma_stat_desc desc;
	size_t offset;
} counters[] = {
	COUNTER("port_xmit_packets", transmitted_packets),
	COUNTER("port_xmit_bytes", transmitted_bytes),
	COUNTER("multicast_xmit_packets", transmitted_to_groups),
	COUNTER("port_rcv_packets", received_packets),
	COUNTER("port_rcv_bytes", received_bytes),
	COUNTER("multicast_rcv_packets", received_from_groups),
	COUNTER("port_xmit_discards", transmit_discards),
	COUNTER("port_rcv_errors", receive_errors),
	COUNTER("rx_icrc_encapsulated", rx_icrc_encapsulated),
	COUNTER("rx_write_requests", rx_write_requests),
	COUNTER("rx_read_requests", rx_read_requests),
	COUNTER("rx_atomic_requests", rx_atomic_requests),
	COUNTER("out_of_buffer", out_of_buffer),
	COUNTER("out_of_sequence", out_of_sequence),
	COUNTER("duplicate_request", duplicate_request),
	COUNTER("rnr_nak_retry_err", rnr_nak_retry_err),
	COUNTER("packet_seq_err", packet_seq_err),
	COUNTER("implied_nak_seq_err", implied_nak_seq_err),
	COUNTER("local_ack_timeout_err", local_ack_timeout_err),
	COUNTER("roce_adp_retrans", roce_adp_retrans),
	COUNTER("resp_local_length_error", resp_local_length_error),
	COUNTER("resp_cqe_error", resp_cqe_error),
	COUNTER("resp_cqe_flush_error", resp_cqe_flush_error),
	COUNTER("resp_remote_access_errors", resp_remote_access_errors),
	COUNTER("req_cqe_error", req_cqe_error),
	COUNTER("req_cqe_flush_error", req_cqe_flush_error),
	COUNTER("req_remote_invalid_request", req_remote_invalid_request),
	COUNTER("req_remote_access_errors", req_remote_access_errors),
	COUNTER("req_transport_retries_exceeded", req_transport_retries_exceeded),
	COUNTER("req_rnr_retries_exceeded", req_rnr_retries_exceeded),
};

/* The core wants the descriptions in a row of their own. */
static struct rdma_stat_desc descriptions[ARRAY_SIZE(counters)];

struct rdma_hw_stats *rnic_alloc_port_stats(struct ib_device *ib, u32 port)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		descriptions[i] = counters[i].desc;
	return rdma_alloc_hw_stats_struct(descriptions, ARRAY_SIZE(counters), RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int rnic_count_port_counters(void)
{
	return ARRAY_SIZE(counters);
}

const char *rnic_port_counter_name(int index)
{
	return counters[index].desc.name;
}

int rnic_read_port_counters(struct rnic_device *dev, u64 *to)
{
	struct rnicsim_command_header header = {};
	struct rnicsim_port_counters answer = {};
	int i, error;

	rnic_fill_header(&header, RNIC_COMMAND(QUERY_PORT_COUNTERS), RNIC_PORT);
	error = rnic_execute(dev, &header, sizeof(header), &answer, sizeof(answer));
	if (error)
		return error;
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		to[i] = be64_to_cpup((void *)&answer + counters[i].offset);
	return 0;
}

int rnic_get_port_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	int error = rnic_read_port_counters(to_rnic(ib), stats->value);

	return error ?: ARRAY_SIZE(counters);
}
