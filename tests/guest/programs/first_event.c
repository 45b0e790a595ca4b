// SPDX-License-Identifier: Apache-2.0
// Prints the first asynchronous event of an RDMA device.
// usage: first_event DEVICE
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = NULL;
  struct ibv_async_event event;
  for (int i = 0; count == 2 && devices && devices[i]; ++i)
    if (strcmp(ibv_get_device_name(devices[i]), arguments[1]) == 0) context = ibv_open_device(devices[i]);
  if (!context || ibv_get_async_event(context, &event) != 0) {
    perror("first_event");
    return 1;
  }
  printf("event: %s\n", ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
  return ibv_close_device(context) != 0;
}
