/* SPDX-License-Identifier: Apache-2.0 */
/* Prints name and port of each RDMA device. An ordinary program: it uses nothing of rnicsim. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (!list || count == 0) {
		fprintf(stderr, "no RDMA device\n");
		return 1;
	}
	for (int i = 0; i < count; ++i) {
		struct ibv_context *context = ibv_open_device(list[i]);
		struct ibv_port_attr port;

		if (!context || ibv_query_port(context, 1, &port)) {
			fprintf(stderr, "%s: cannot be opened\n", ibv_get_device_name(list[i]));
			return 1;
		}
		printf("%s: %s, MTU %d bytes\n", ibv_get_device_name(list[i]), ibv_port_state_str(port.state),
		       128 << port.active_mtu);
		ibv_close_device(context);
	}
	ibv_free_device_list(list);
	return 0;
}
