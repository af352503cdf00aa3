// SPDX-License-Identifier: Apache-2.0
// Serving (cleave/server.h): requests of many threads get their own rows, alone and in batches.
#include "cleave/server.h"

#include <pthread.h>

#include "base/memory.h"
#include "runtime/model/model.h"
#include "runtime/serve/forms.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

enum { CLIENTS = 8, FOREVER_US = 1000000000 };

static const char rules_text[] =
    "return ruleset { name = 'mine', backend = 'cpu', region 'island' { doc = 'both', ops = { 'MatMul', "
    "'Tanh' } } }\n";
static const cleave_rule_source_t source = {
    .path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
static const cleave_partition_request_t rules = {.size = sizeof rules, .sources = &source, .source_count = 1};
static const int64_t row_dims[2] = {1, 3};
static const int64_t answer_dims[2] = {1, 2};
static const float weights[6] = {1, 2, 3, 4, 5, 6};

static cleave_model_t *take_model(session_case_t *c) {
  cleave_model_t *model = NULL;
  session_case_infer(c);
  unit_ok(cleave_model_create_take(c->graph, &model, e));
  c->graph = NULL;
  session_case_deinit(c);
  return model;
}

/* y[N, 2] = x[N, 3] * w, or with `rows` 1, y[1, 2]. */
static cleave_model_t *product_model(int64_t rows) {
  session_case_t c = session_case_create();
  cleave_dim_t dims[2] = {rows > 0 ? rows : session_case_symbol(&c, "N"), 3};
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  cleave_value_t w = session_case_floats(&c, "w", 2, (const int64_t[]){3, 2}, weights);
  session_case_output(&c, session_case_node(&c, "MatMul", "y", x, w, NONE));
  return take_model(&c);
}

/* y[N, 2] = rows i[N] of a table with three. */
static cleave_model_t *table_model(void) {
  session_case_t c = session_case_create();
  cleave_dim_t dims[1] = {session_case_symbol(&c, "N")};
  cleave_value_t rows = session_case_input(&c, "i", CLEAVE_DTYPE_I64, 1, dims);
  cleave_value_t table = session_case_floats(&c, "table", 2, (const int64_t[]){3, 2}, weights);
  session_case_output(&c, session_case_node(&c, "Gather", "y", table, rows, NONE));
  return take_model(&c);
}

static cleave_tensor_view_t view_of(cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                                    const void *data) {
  return (cleave_tensor_view_t){
      .size = sizeof(cleave_tensor_view_t), .dtype = dtype, .rank = rank, .dims = dims, .data = data};
}

static cleave_status_t create(cleave_model_t *model, const cleave_tensor_view_t *type,
                              const cleave_server_options_t *options, cleave_server_t **out_server,
                              cleave_error_t *error) {
  const cleave_session_options_t session = {.size = sizeof session, .threads = 1};
  cleave_server_options_t own = *options;
  own.size = sizeof own;
  own.session = &session;
  return cleave_server_create(model, &rules, &type, 1, &own, out_server, error);
}

static cleave_status_t ask(cleave_server_t *server, const float *row, float *answer, cleave_error_t *error) {
  const cleave_tensor_view_t in = view_of(CLEAVE_DTYPE_F32, 2, row_dims, row);
  const cleave_tensor_view_t out = view_of(CLEAVE_DTYPE_F32, 2, answer_dims, answer);
  const cleave_tensor_view_t *inputs[1] = {&in};
  const cleave_tensor_view_t *outputs[1] = {&out};
  return cleave_server_run(server, inputs, 1, outputs, 1, error);
}

static cleave_server_counts_t counts_of(cleave_server_t *server) {
  cleave_server_counts_t counts = {.size = sizeof counts};
  cleave_server_counts(server, &counts);
  return counts;
}

/* A caller with numbers of its own, which are small and whole: sums of products are exact. */
typedef struct client {
  cleave_server_t *server;
  pthread_t thread;
  int number;
  int rounds;
  int wrong;
} client_t;

static void *call(void *context) {
  client_t *client = context;
  for (int round = 0; round < client->rounds; round++) {
    const float row[3] = {(float)client->number, (float)round, 1.0f};
    float answer[2] = {-1.0f, -1.0f};
    bool is_ok = ask(client->server, row, answer, NULL) == CLEAVE_OK;
    float first = row[0] * 1 + row[1] * 3 + 5;
    float second = row[0] * 2 + row[1] * 4 + 6;
    client->wrong += is_ok && answer[0] == first && answer[1] == second ? 0 : 1;
  }
  return NULL;
}

static void call_all(cleave_server_t *server, int count, int rounds) {
  client_t clients[CLIENTS];
  for (int k = 0; k < count; k++) {
    clients[k] = (client_t){.server = server, .number = k, .rounds = rounds};
    ck_assert_int_eq(pthread_create(&clients[k].thread, NULL, call, &clients[k]), 0);
  }
  for (int k = 0; k < count; k++) {
    (void)pthread_join(clients[k].thread, NULL);
    ck_assert_int_eq(clients[k].wrong, 0);
  }
}

UNIT_TEST(requests_of_many_threads_get_their_own_answers) {
  cleave_model_t *model = product_model(1);
  cleave_server_t *server = NULL;
  unit_ok(create(model, NULL, &(cleave_server_options_t){.sessions = 2}, &server, e));
  cleave_model_release(model);
  call_all(server, CLIENTS, 50);
  ck_assert_uint_eq(counts_of(server).requests, CLIENTS * 50);
  ck_assert_uint_eq(counts_of(server).runs, CLIENTS * 50);
  cleave_server_destroy(server);
}

UNIT_TEST(a_full_batch_runs_at_once_and_each_gets_its_rows) {
  cleave_model_t *model = product_model(0);
  cleave_server_t *server = NULL;
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  unit_ok(create(model, &type, &(cleave_server_options_t){.batch_limit = 4, .batch_window_us = FOREVER_US},
                 &server, e));
  call_all(server, 4, 1);
  ck_assert_uint_eq(counts_of(server).requests, 4);
  ck_assert_uint_eq(counts_of(server).runs, 1);
  call_all(server, 4, 25);
  ck_assert_uint_eq(counts_of(server).runs, 26);
  cleave_server_destroy(server);
  cleave_model_release(model);
}

UNIT_TEST(batches_of_all_sizes_side_by_side_are_right) {
  cleave_model_t *model = product_model(0);
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  const uint32_t windows[] = {0, 100};
  for (size_t k = 0; k < 2; k++) {
    cleave_server_t *server = NULL;
    unit_ok(create(model, &type,
                   &(cleave_server_options_t){.sessions = 2, .batch_limit = 5, .batch_window_us = windows[k]},
                   &server, e));
    call_all(server, CLIENTS, 100);
    ck_assert_uint_eq(counts_of(server).requests, CLIENTS * 100);
    ck_assert_uint_le(counts_of(server).runs, CLIENTS * 100);
    ck_assert_uint_eq(counts_of(server).repeated, 0);
    cleave_server_destroy(server);
  }
  cleave_model_release(model);
}

UNIT_TEST(a_lonely_request_runs_when_the_window_ends) {
  cleave_model_t *model = product_model(0);
  cleave_server_t *server = NULL;
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  unit_ok(create(model, &type, &(cleave_server_options_t){.batch_limit = 4, .batch_window_us = 1000}, &server,
                 e));
  call_all(server, 1, 3);
  ck_assert_uint_eq(counts_of(server).runs, 3);
  cleave_server_destroy(server);
  cleave_model_release(model);
}

UNIT_TEST(as_many_requests_run_as_a_form_has) {
  cleave_model_t *model = product_model(0);
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  const cleave_tensor_view_t *inputs[1] = {&type};
  const cleave_form_source_t from = {.model = model, .inputs = inputs, .input_count = 1};
  cleave_forms_t forms;
  unit_ok(cleave_forms_init(&forms, &from, 6, e));
  ck_assert_uint_eq(forms.count, 4); /* 1, 2, 4, 6 */
  ck_assert_uint_eq(cleave_forms_choose(&forms, 1), 0);
  ck_assert_uint_eq(cleave_forms_choose(&forms, 3), 1);
  ck_assert_uint_eq(cleave_forms_choose(&forms, 5), 2);
  ck_assert_uint_eq(forms.items[cleave_forms_choose(&forms, 100)].requests, 6);
  cleave_forms_deinit(&forms);
  unit_ok(cleave_forms_init(&forms, &from, CLEAVE_MAX_BATCH - 1, e));
  ck_assert_uint_eq(forms.count, 11);
  cleave_forms_deinit(&forms);
  cleave_model_release(model);
}

/* ---- failures ---- */

typedef struct lookup {
  cleave_server_t *server;
  int64_t row;
  float answer[2];
  cleave_status_t status;
  pthread_t thread;
} lookup_t;

static void *look_up(void *context) {
  lookup_t *lookup = context;
  const cleave_tensor_view_t in = view_of(CLEAVE_DTYPE_I64, 1, (const int64_t[]){1}, &lookup->row);
  const cleave_tensor_view_t out = view_of(CLEAVE_DTYPE_F32, 2, answer_dims, lookup->answer);
  const cleave_tensor_view_t *inputs[1] = {&in};
  const cleave_tensor_view_t *outputs[1] = {&out};
  lookup->status = cleave_server_run(lookup->server, inputs, 1, outputs, 1, NULL);
  return NULL;
}

UNIT_TEST(nobody_gets_the_error_of_another_one) {
  cleave_model_t *model = table_model();
  cleave_server_t *server = NULL;
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_I64, 1, (const int64_t[]){1}, NULL);
  unit_ok(create(model, &type, &(cleave_server_options_t){.batch_limit = 2, .batch_window_us = FOREVER_US},
                 &server, e));
  lookup_t good = {.server = server, .row = 1};
  lookup_t bad = {.server = server, .row = 100};
  ck_assert_int_eq(pthread_create(&good.thread, NULL, look_up, &good), 0);
  ck_assert_int_eq(pthread_create(&bad.thread, NULL, look_up, &bad), 0);
  (void)pthread_join(good.thread, NULL);
  (void)pthread_join(bad.thread, NULL);
  ck_assert_int_eq(good.status, CLEAVE_OK);
  ck_assert_float_eq(good.answer[0], 3.0f);
  ck_assert_float_eq(good.answer[1], 4.0f);
  ck_assert_int_ne(bad.status, CLEAVE_OK);
  ck_assert_uint_eq(counts_of(server).repeated, 2);
  ck_assert_uint_eq(counts_of(server).requests, 2);
  cleave_server_destroy(server);
  cleave_model_release(model);
}

UNIT_TEST(requests_of_the_wrong_shape_are_refused) {
  cleave_model_t *model = product_model(1);
  cleave_server_t *server = NULL;
  float numbers[4] = {0};
  unit_ok(cleave_server_create(model, NULL, NULL, 0, NULL, &server, e));
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_server_output(server, 0, &port, e));
  ck_assert_str_eq(port.name, "y");
  ck_assert_int_eq(port.tensor.dims[1], 2);
  unit_ok(cleave_server_input(server, 0, &port, e));
  ck_assert_int_eq(port.tensor.dims[1], 3);
  const cleave_tensor_view_t in = view_of(CLEAVE_DTYPE_F32, 2, row_dims, numbers);
  const cleave_tensor_view_t short_in = view_of(CLEAVE_DTYPE_F32, 2, answer_dims, numbers);
  const cleave_tensor_view_t empty = view_of(CLEAVE_DTYPE_F32, 2, answer_dims, NULL);
  const cleave_tensor_view_t *inputs[1] = {&short_in};
  const cleave_tensor_view_t *outputs[1] = {NULL};
  unit_fails(
      cleave_server_run(server, inputs, 1, outputs, 1, e), CLEAVE_ERROR_SHAPE,
      "input 'x': expected float32 of the shape that the server was made for, found float32 of another "
      "shape");
  inputs[0] = &in;
  unit_ok(cleave_server_run(server, inputs, 1, outputs, 1, e));
  outputs[0] = &empty;
  unit_fails(cleave_server_run(server, inputs, 1, outputs, 1, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 'y': expected a dense tensor with data in host memory");
  unit_fails(cleave_server_run(server, inputs, 0, outputs, 1, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "0 inputs and 1 output, expected 1 and 1");
  inputs[0] = NULL;
  unit_fails(cleave_server_run(server, inputs, 1, outputs, 1, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 'x' is not given");
  cleave_server_destroy(server);
  cleave_server_destroy(NULL);
  cleave_model_release(model);
}

UNIT_TEST(models_that_cannot_run_in_batches_are_refused) {
  cleave_server_t *server = NULL;
  cleave_model_t *model = product_model(1);
  const cleave_server_options_t batches = {.batch_limit = 2};
  unit_fails_with(create(model, NULL, &batches, &server, e), CLEAVE_ERROR_UNSUPPORTED,
                  "input 'x': requests cannot run in batches, since the model does not leave its first");
  unit_fails(create(model, NULL, &(cleave_server_options_t){.sessions = -1}, &server, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "-1 sessions, expected 1 to 1024");
  unit_fails(create(model, NULL, &(cleave_server_options_t){.batch_limit = 1025}, &server, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "batches of 1025 requests, expected 1 to 1024");
  cleave_model_release(model);
  session_case_t c = session_case_create();
  cleave_dim_t dims[2] = {session_case_symbol(&c, "N"), 3};
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  session_case_output(&c, session_case_node(&c, "ReduceMax", "all", x, NONE, NONE));
  model = take_model(&c);
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  unit_fails_with(create(model, &type, &batches, &server, e), CLEAVE_ERROR_UNSUPPORTED,
                  "output 'all': requests cannot run in batches, since its first dimension does not grow");
  ck_assert_ptr_null(server);
  cleave_model_release(model);
}

UNIT_TEST(a_server_survives_failing_allocations) {
  cleave_model_t *model = product_model(0);
  const cleave_tensor_view_t type = view_of(CLEAVE_DTYPE_F32, 2, row_dims, NULL);
  const cleave_server_options_t options = {.batch_limit = 2};
  cleave_server_t *server = NULL;
  (void)cleave_memory_fail_after(-1);
  unit_ok(create(model, &type, &options, &server, e));
  int64_t total = cleave_memory_fail_after(-1);
  cleave_server_destroy(server);
  for (int64_t k = 0; k < total; k += 1 + total / 300) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = create(model, &type, &options, &server, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || (server == NULL && error.message[0] != '\0'), "allocation %d of %d",
                  (int)k, (int)total);
    cleave_server_destroy(server);
  }
  cleave_model_release(model);
}

UNIT_SUITE("server")
