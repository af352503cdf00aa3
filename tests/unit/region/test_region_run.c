// SPDX-License-Identifier: Apache-2.0
// One region, compiled and run once: on the host, and on a device whose memory nobody else may touch.
#include "backend/program/region_run.h"

#include "session_case.h"
#include "unit.h"

#define MIRROR CLEAVE_BINARY_DIR "/accelerators/libmirror.so"

static const int64_t dims[2] = {2, 3};
static const float data[6] = {-1, 2, 0, 4, -5, 6};

/* Runs node `op` of x [2,3] on a backend; the first element of its output. */
static cleave_tensor_t *run(const char *backend, uint32_t device, const char *op, cleave_status_t expected,
                            cleave_message_t *message) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  cleave_value_t y = session_case_node(&c, op, "node", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c, y);
  session_case_infer(&c);
  session_case_feed(&c, 2, dims, data);
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  cleave_node_t node = cleave_value_producer(c.graph, y);
  cleave_attribute_t attribute = {.name = "device", .kind = CLEAVE_ATTRIBUTE_INT, .i = device};
  cleave_view_request_t request = {
      .name = "r", .nodes = &node, .node_count = 1, .attributes = &attribute, .attribute_count = 1};
  cleave_view_builder_init(&builder, c.graph);
  unit_ok(cleave_view_build(&builder, &request, &arena, &view, e));
  cleave_region_run_t run = {.view = &view, .inputs = c.views, .threads = 1};
  unit_ok(cleave_registry_find(NULL, backend, &run.handle, e));
  cleave_tensor_t *output = NULL;
  ck_assert_int_eq(cleave_region_run(&run, &output, message), expected);
  cleave_view_builder_deinit(&builder);
  cleave_arena_deinit(&arena);
  session_case_deinit(&c);
  return output;
}

static void load_guarded(void) {
  const cleave_key_value_t settings[2] = {{"guard", "1"}, {"host_memory", "refuse"}};
  unit_ok(cleave_backend_load(NULL, MIRROR, NULL, e));
  unit_ok(cleave_backend_configure(NULL, "mirror", settings, 2, NULL, NULL, e));
}

UNIT_TEST(known_and_unknown_shapes_come_back_from_host_and_device) {
  const char *backends[2] = {"cpu", "mirror"};
  load_guarded();
  for (uint32_t b = 0; b < 2; b++) {
    cleave_message_t message;
    cleave_tensor_t *relu = run(backends[b], b, "Relu", CLEAVE_OK, &message);
    ck_assert_ptr_nonnull(relu);
    for (int64_t k = 0; k < 6; k++) {
      ck_assert_double_eq(cleave_tensor_get_float(relu, k), data[k] > 0 ? (double)data[k] : 0.0);
    }
    cleave_tensor_release(relu);
    cleave_tensor_t *places = run(backends[b], b, "NonZero", CLEAVE_OK, &message);
    ck_assert_ptr_nonnull(places);
    ck_assert_int_eq(places->dims[1], 5);
    ck_assert_int_eq(cleave_tensor_get_int(places, 4), 1);
    ck_assert_int_eq(cleave_tensor_get_int(places, 9), 2);
    cleave_tensor_release(places);
  }
}

UNIT_TEST(a_device_that_is_not_there_is_an_error) {
  cleave_message_t message;
  load_guarded();
  ck_assert_ptr_null(run("mirror", 7, "Relu", CLEAVE_ERROR_INVALID_ARGUMENT, &message));
  ck_assert_ptr_nonnull(strstr(message.text, "mirror"));
}

UNIT_SUITE("region run")
