// SPDX-License-Identifier: Apache-2.0
// Region views as messages: what is read is what was written, and nothing that is read can be anything else
// than a view, whatever bytes it came from.
#include "backend/region/region_wire.h"

#include "unit.h"
#include "view_builder.h"

typedef struct message {
  cleave_wire_out_t out;
  cleave_arena_t arena;
  cleave_region_view_t region;
} message_t;

static message_t write_region(const cleave_region_view_t *region, cleave_region_share_t share,
                              void *context) {
  message_t message = {0};
  unit_ok(cleave_region_write(region, share, context, &message.out, e));
  return message;
}

static void read_region(message_t *message, cleave_region_find_t find, void *context) {
  cleave_wire_in_t in = cleave_wire_read(message->out.data, message->out.length);
  unit_ok(cleave_region_read(&in, &message->arena, find, context, &message->region, e));
  ck_assert(cleave_wire_is_done(&in));
}

static void free_message(message_t *message) {
  cleave_wire_deinit(&message->out);
  cleave_arena_deinit(&message->arena);
}

static const float WEIGHTS[4] = {0.5f, -1.0f, 2.0f, 0.0f};
static const int64_t MATRIX[2] = {2, 2};

/* A Conv-like node with every kind of attribute, a Relu that is fused with it, and an unknown size. */
static view_builder_t *build(void) {
  static const int64_t OPEN[2] = {-1, 2};
  static const int64_t PADS[2] = {-7, INT64_MAX};
  static const float SCALES[3] = {0.0f, -0.0f, 1e-40f};
  static const char *const LABELS[2] = {"conv", ""};
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, OPEN);
  uint32_t w = view_builder_constant(b, CLEAVE_DTYPE_F32, 2, MATRIX, WEIGHTS);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, -1, NULL);
  uint32_t z = view_builder_value(b, CLEAVE_DTYPE_F32, 2, OPEN);
  uint32_t node = view_builder_node(b, "Gemm", 3, (uint32_t[]){x, w, CLEAVE_INDEX_NONE}, 1, (uint32_t[]){y});
  view_builder_int(b, node, "transA", INT64_MIN);
  view_builder_float(b, node, "alpha", 0.1);
  view_builder_string(b, node, "mode", "linear");
  view_builder_ints(b, node, "pads", 2, PADS);
  view_builder_floats(b, node, "scales", 3, SCALES);
  view_builder_tensor(b, node, "value", CLEAVE_DTYPE_F32, 2, MATRIX, WEIGHTS);
  uint32_t relu = view_builder_node(b, "Relu", 1, (uint32_t[]){y}, 1, (uint32_t[]){z});
  (void)view_builder_fusion(b, "gemm_relu", 2, (uint32_t[]){node, relu}, LABELS);
  view_builder_output(b, z);
  return b;
}

/* ---- both ways ---- */

UNIT_TEST(a_view_comes_back_as_it_was) {
  view_builder_t *b = build();
  const cleave_region_view_t *region = view_builder_region(b);
  message_t message = write_region(region, NULL, NULL);
  read_region(&message, NULL, NULL);
  const cleave_region_view_t *found = &message.region;
  ck_assert_uint_eq(found->value_count, region->value_count);
  ck_assert_uint_eq(found->node_count, 2);
  ck_assert_uint_eq(found->fusion_count, 1);
  ck_assert_uint_eq(found->hash, region->hash);
  const cleave_node_view_t *node = &found->nodes[0];
  ck_assert_str_eq(node->op, "Gemm");
  ck_assert_uint_eq(node->inputs[2], CLEAVE_INDEX_NONE);
  ck_assert_int_eq(cleave_view_int(node, "transA", 0), INT64_MIN);
  ck_assert_double_eq(cleave_view_float(node, "alpha", 0.0), 0.1);
  ck_assert_str_eq(cleave_view_string(node, "mode", ""), "linear");
  uint32_t count = 0;
  const int64_t *pads = cleave_view_ints(node, "pads", &count);
  ck_assert(count == 2 && pads[0] == -7 && pads[1] == INT64_MAX);
  const cleave_attribute_view_t *scales = cleave_view_attribute(node, "scales");
  ck_assert_uint_eq(scales->count, 3);
  ck_assert_int_eq(memcmp(scales->floats, (const float[]){0.0f, -0.0f, 1e-40f}, 3 * sizeof(float)), 0);
  ck_assert_int_eq(memcmp(cleave_view_attribute(node, "value")->tensor->data, WEIGHTS, sizeof WEIGHTS), 0);
  const cleave_value_view_t *weight = cleave_view_input(found, node, 1);
  ck_assert_int_eq(memcmp(weight->tensor.data, WEIGHTS, sizeof WEIGHTS), 0);
  ck_assert_int_eq(found->values[found->inputs[0]].tensor.dims[0], -1);
  ck_assert_str_eq(found->fusions[0].rule, "gemm_relu");
  ck_assert_str_eq(found->fusions[0].labels[0], "conv");
  ck_assert_uint_eq(found->nodes[1].fusion, 0);
  /* Texts that are not there become empty; then nothing changes any more. */
  message_t again = write_region(found, NULL, NULL);
  read_region(&again, NULL, NULL);
  message_t last = write_region(&again.region, NULL, NULL);
  ck_assert_uint_eq(last.out.length, again.out.length);
  ck_assert_int_eq(memcmp(last.out.data, again.out.data, last.out.length), 0);
  free_message(&last);
  free_message(&again);
  free_message(&message);
  view_builder_destroy(b);
}

UNIT_TEST(strings_sparse_tensors_and_empty_ones_come_back) {
  static const char *const WORDS[2] = {"a", "words with spaces"};
  static const int64_t INDICES[3] = {0, 2, 1};
  static const int64_t OFFSETS[3] = {0, 2, 3};
  static const int64_t DIMS[2] = {2, 3};
  cleave_sparse_view_t sparse = {.size = sizeof sparse, .stored = 3, .indices = INDICES, .offsets = OFFSETS};
  cleave_value_view_t values[3] = {{.size = sizeof values[0],
                                    .name = "words",
                                    .producer = CLEAVE_INDEX_NONE,
                                    .tensor = {.size = sizeof(cleave_tensor_view_t),
                                               .dtype = CLEAVE_DTYPE_STRING,
                                               .rank = 1,
                                               .dims = DIMS,
                                               .data = WORDS}},
                                   {.size = sizeof values[0],
                                    .name = "csr",
                                    .producer = CLEAVE_INDEX_NONE,
                                    .tensor = {.size = sizeof(cleave_tensor_view_t),
                                               .dtype = CLEAVE_DTYPE_F32,
                                               .rank = 2,
                                               .dims = DIMS,
                                               .data = WEIGHTS,
                                               .version = 9,
                                               .layout = "OI",
                                               .storage = CLEAVE_STORAGE_CSR,
                                               .sparse = &sparse,
                                               .is_weight = true}},
                                   {.size = sizeof values[0],
                                    .name = NULL,
                                    .producer = CLEAVE_INDEX_NONE,
                                    .tensor = {.size = sizeof(cleave_tensor_view_t),
                                               .dtype = CLEAVE_DTYPE_I64,
                                               .rank = 1,
                                               .dims = (const int64_t[]){0},
                                               .data = WEIGHTS}}};
  cleave_region_view_t region = {
      .size = sizeof region, .name = "r", .rule = "", .value_count = 3, .values = values};
  message_t message = write_region(&region, NULL, NULL);
  read_region(&message, NULL, NULL);
  const cleave_value_view_t *found = message.region.values;
  ck_assert_str_eq(((const char *const *)found[0].tensor.data)[1], "words with spaces");
  ck_assert_int_eq(found[1].tensor.storage, CLEAVE_STORAGE_CSR);
  ck_assert_int_eq(found[1].tensor.sparse->stored, 3);
  ck_assert_int_eq(found[1].tensor.sparse->indices[1], 2);
  ck_assert_int_eq(found[1].tensor.sparse->offsets[2], 3);
  ck_assert_int_eq(memcmp(found[1].tensor.data, WEIGHTS, 3 * sizeof(float)), 0);
  ck_assert_str_eq(found[1].tensor.layout, "OI");
  ck_assert(found[1].tensor.is_weight && found[1].tensor.version == 9);
  ck_assert_ptr_nonnull(found[2].tensor.data);
  ck_assert_str_eq(found[2].name, "");
  free_message(&message);
}

/* ---- constants that are elsewhere ---- */

typedef struct shelf {
  const void *data;
  size_t bytes;
} shelf_t;

static cleave_status_t share(void *context, const cleave_tensor_view_t *tensor, size_t bytes,
                             uint32_t *out_id, cleave_error_t *error) {
  shelf_t *shelf = context;
  (void)error;
  shelf->data = tensor->data;
  shelf->bytes = bytes;
  *out_id = 5;
  return CLEAVE_OK;
}

static const void *find(void *context, uint32_t id, size_t bytes) {
  const shelf_t *shelf = context;
  return id == 5 && bytes == shelf->bytes ? shelf->data : NULL;
}

UNIT_TEST(shared_constants_are_found_by_number_and_size) {
  view_builder_t *b = build();
  shelf_t shelf = {0};
  message_t message = write_region(view_builder_region(b), share, &shelf);
  ck_assert_uint_eq(shelf.bytes, sizeof WEIGHTS);
  read_region(&message, find, &shelf);
  ck_assert_ptr_eq(cleave_view_input(&message.region, &message.region.nodes[0], 1)->tensor.data, WEIGHTS);
  cleave_wire_in_t in = cleave_wire_read(message.out.data, message.out.length);
  unit_fails(cleave_region_read(&in, &message.arena, NULL, NULL, &message.region, e), CLEAVE_ERROR_FORMAT,
             "the description of a region is malformed");
  shelf.bytes = 3;
  in = cleave_wire_read(message.out.data, message.out.length);
  unit_fails(cleave_region_read(&in, &message.arena, find, &shelf, &message.region, e), CLEAVE_ERROR_FORMAT,
             "the description of a region is malformed");
  free_message(&message);
  view_builder_destroy(b);
}

/* ---- broken messages ---- */

/* Walks over everything that a view points to, as a backend would. */
static uint64_t walk(const cleave_region_view_t *region) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_tensor_view_t *tensor = &region->values[k].tensor;
    size_t bytes = 0;
    sum += strlen(region->values[k].name) + (uint64_t)tensor->rank;
    for (int32_t d = 0; d < tensor->rank; d++) {
      sum += (uint64_t)tensor->dims[d];
    }
    if (tensor->data != NULL && tensor->dtype != CLEAVE_DTYPE_STRING) {
      ck_assert(cleave_tensor_view_bytes(tensor, &bytes));
      for (size_t at = 0; at < bytes; at++) {
        sum += ((const unsigned char *)tensor->data)[at];
      }
    }
    ck_assert(region->values[k].producer == CLEAVE_INDEX_NONE ||
              region->values[k].producer < region->node_count);
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    sum += strlen(node->op) + strlen(node->domain) + strlen(node->name);
    for (uint32_t k = 0; k < node->input_count; k++) {
      const cleave_value_view_t *value = cleave_view_input(region, node, k);
      sum += value == NULL ? 0 : strlen(value->name);
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
      const cleave_value_view_t *value = cleave_view_output(region, node, k);
      sum += value == NULL ? 0 : strlen(value->name);
    }
    for (uint32_t k = 0; k < node->attribute_count; k++) {
      sum += strlen(node->attributes[k].name) + node->attributes[k].count;
    }
    ck_assert(node->fusion == CLEAVE_INDEX_NONE || node->fusion < region->fusion_count);
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    for (uint32_t k = 0; k < region->fusions[f].node_count; k++) {
      sum += strlen(region->fusions[f].labels[k]) + strlen(region->nodes[region->fusions[f].nodes[k]].op);
    }
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    sum += strlen(region->values[region->inputs[k]].name);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    sum += strlen(region->values[region->outputs[k]].name);
  }
  return sum;
}

/* Reads a copy of exactly this length, so that sanitizers see what is beyond. Returns whether it was a view.
 */
static bool try_read(const unsigned char *data, size_t length) {
  unsigned char *copy = malloc(length + (length == 0));
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, data, length);
  cleave_arena_t arena = {0};
  cleave_region_view_t region;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_wire_in_t in = cleave_wire_read(copy, length);
  cleave_status_t status = cleave_region_read(&in, &arena, NULL, NULL, &region, &error);
  volatile uint64_t sum = 0;
  if (status == CLEAVE_OK) {
    sum = walk(&region);
    cleave_wire_out_t out = {0};
    unit_ok(cleave_region_write(&region, NULL, NULL, &out, e));
    cleave_wire_deinit(&out);
  } else {
    ck_assert_int_eq(status, CLEAVE_ERROR_FORMAT);
    ck_assert_str_eq(error.message, "the description of a region is malformed");
  }
  (void)sum;
  ck_assert_uint_le(arena.total, 65536 + 64 * length);
  cleave_arena_deinit(&arena);
  free(copy);
  return status == CLEAVE_OK;
}

UNIT_TEST(messages_that_are_cut_are_no_views) {
  view_builder_t *b = build();
  message_t message = write_region(view_builder_region(b), NULL, NULL);
  for (size_t length = 0; length < message.out.length; length++) {
    ck_assert(!try_read(message.out.data, length));
  }
  ck_assert(try_read(message.out.data, message.out.length));
  free_message(&message);
  view_builder_destroy(b);
}

static uint32_t draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

UNIT_TEST(messages_with_other_bytes_are_views_or_refused) {
  view_builder_t *b = build();
  message_t message = write_region(view_builder_region(b), NULL, NULL);
  uint32_t state = 7;
  uint32_t views = 0;
  unsigned char *bytes = malloc(message.out.length);
  ck_assert_ptr_nonnull(bytes);
  for (uint32_t round = 0; round < 20000; round++) {
    memcpy(bytes, message.out.data, message.out.length);
    for (uint32_t change = 0; change <= round % 3; change++) {
      static const unsigned char EXTREMES[] = {0, 1, 0x7f, 0x80, 0xff};
      size_t at = draw(&state) % message.out.length;
      bytes[at] = round % 2 == 0 ? (unsigned char)draw(&state) : EXTREMES[draw(&state) % 5];
    }
    views += try_read(bytes, message.out.length) ? 1 : 0;
  }
  ck_assert_uint_gt(views, 1000); /* bytes of data and names may be anything */
  ck_assert_uint_lt(views, 19000);
  free(bytes);
  free_message(&message);
  view_builder_destroy(b);
}

UNIT_TEST(noise_is_no_view) {
  uint32_t state = 99;
  unsigned char bytes[512];
  for (uint32_t round = 0; round < 5000; round++) {
    size_t length = draw(&state) % sizeof bytes;
    for (size_t k = 0; k < length; k++) {
      bytes[k] = (unsigned char)(draw(&state) % (round % 2 == 0 ? 256 : 4));
    }
    (void)try_read(bytes, length);
  }
}

UNIT_TEST(writing_without_memory_fails_and_says_so) {
  view_builder_t *b = build();
  const cleave_region_view_t *region = view_builder_region(b);
  for (int64_t countdown = 0; countdown < 2; countdown++) {
    cleave_wire_out_t out = {0};
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = cleave_region_write(region, NULL, NULL, &out, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
    cleave_wire_deinit(&out);
  }
  message_t message = write_region(region, NULL, NULL);
  cleave_wire_in_t in = cleave_wire_read(message.out.data, message.out.length);
  (void)cleave_memory_fail_after(0);
  cleave_status_t status = cleave_region_read(&in, &message.arena, NULL, NULL, &message.region, NULL);
  (void)cleave_memory_fail_after(-1);
  ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
  free_message(&message);
  view_builder_destroy(b);
}

UNIT_SUITE("region_wire")
