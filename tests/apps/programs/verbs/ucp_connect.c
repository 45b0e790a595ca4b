// SPDX-License-Identifier: Apache-2.0
// A server and a client that connect with UCP's listener, over librdmacm.
//
//   ucp_connect ADDRESS server|client COUNT
//
// The server listens at ADDRESS. The client creates COUNT endpoints, one after the other, and sends a number over each;
// the server adds the numbers. Exit status 1: UCP reported an error.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

static const uint16_t kPort = 13337;
static const ucp_tag_t kTag = 7;
enum { kHandlesErrors = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER };

static ucp_worker_h worker;

static void check(ucs_status_t status, const char *what) {
  if (status == UCS_OK) return;
  printf("%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static ucs_status_t end_of(void *request) {
  if (request == NULL || UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
  ucp_request_free(request);
  return status;
}

static void make_worker(void) {
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  ucp_config_t *config;
  ucp_context_h context;
  check(ucp_config_read(NULL, NULL, &config), "configuration");
  check(ucp_init(&params, config, &context), "context");
  ucp_config_release(config);
  ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                       .thread_mode = UCS_THREAD_MODE_SINGLE};
  check(ucp_worker_create(context, &worker_params, &worker), "worker");
}

static struct sockaddr_in address_of(const char *text) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) exit(2);
  return address;
}

// The other side may have closed first; then nothing is left to flush.
static void close_endpoint(ucp_ep_h endpoint) { end_of(ucp_ep_close_nb(endpoint, UCP_EP_CLOSE_MODE_FLUSH)); }

static void on_error(void *argument, ucp_ep_h endpoint, ucs_status_t status) {
  (void)argument, (void)endpoint, (void)status;
}
static const ucp_err_handler_t kOnError = {on_error, NULL};

static ucp_conn_request_h requested;
static void on_request(ucp_conn_request_h request, void *argument) { *(ucp_conn_request_h *)argument = request; }

static void serve(const char *text, int count) {
  struct sockaddr_in address = address_of(text);
  ucp_listener_params_t params = {
      .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
      .sockaddr = {(struct sockaddr *)&address, sizeof address}, .conn_handler = {on_request, &requested}};
  ucp_listener_h listener;
  check(ucp_listener_create(worker, &params, &listener), "listener");
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    while (requested == NULL) ucp_worker_progress(worker);
    ucp_ep_params_t endpoint_params = {
        .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | kHandlesErrors, .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = kOnError, .conn_request = requested};
    ucp_ep_h endpoint;
    requested = NULL;
    check(ucp_ep_create(worker, &endpoint_params, &endpoint), "accept");
    uint64_t number = 0;
    ucp_request_param_t none = {0};
    check(end_of(ucp_tag_recv_nbx(worker, &number, sizeof number, kTag, ~0ull, &none)), "receive");
    sum += number;
    close_endpoint(endpoint);
  }
  printf("sum %llu\n", (unsigned long long)sum);
  ucp_listener_destroy(listener);
}

static void connect_and_send(const char *text, int count) {
  struct sockaddr_in address = address_of(text);
  for (int i = 1; i <= count; ++i) {
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | kHandlesErrors,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER, .err_handler = kOnError, .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {(struct sockaddr *)&address, sizeof address}};
    ucp_ep_h endpoint;
    check(ucp_ep_create(worker, &params, &endpoint), "connect");
    uint64_t number = (uint64_t)i;
    ucp_request_param_t none = {0};
    check(end_of(ucp_tag_send_nbx(endpoint, &number, sizeof number, kTag, &none)), "send");
    close_endpoint(endpoint);
  }
  puts("sent");
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  make_worker();
  const int count = atoi(argv[3]);
  if (strcmp(argv[2], "server") == 0) {
    serve(argv[1], count);
  } else {
    connect_and_send(argv[1], count);
  }
  ucp_worker_destroy(worker);
  return 0;
}
