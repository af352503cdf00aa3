// SPDX-License-Identifier: Apache-2.0
// What a program that embeds cleave sets for the whole process: allocator, log, libraries; and models in
// memory.
#include <stdatomic.h>

#include "formats/onnx/onnx.h"
#include "session_case.h"
#include "unit.h"

/* ---- an allocator that counts; sizes lie before the memory ---- */

static atomic_long live_blocks;
static atomic_long taken_blocks;
static bool is_empty;

typedef struct block {
  void *start;
  size_t bytes;
} block_t;

static void *count_allocate(void *context, size_t bytes, size_t alignment) {
  ck_assert_ptr_eq(context, &live_blocks);
  char *start = is_empty ? NULL : malloc(bytes + alignment + sizeof(block_t));
  if (start == NULL) {
    return NULL;
  }
  uintptr_t at = ((uintptr_t)start + sizeof(block_t) + alignment - 1) / alignment * alignment;
  ((block_t *)at)[-1] = (block_t){start, bytes};
  (void)atomic_fetch_add(&live_blocks, 1);
  (void)atomic_fetch_add(&taken_blocks, 1);
  return (void *)at;
}

static void count_free(void *context, void *memory) {
  ck_assert_ptr_eq(context, &live_blocks);
  ck_assert_ptr_nonnull(memory);
  (void)atomic_fetch_sub(&live_blocks, 1);
  free(((block_t *)memory)[-1].start);
}

static void *count_reallocate(void *context, void *memory, size_t bytes) {
  size_t before = ((block_t *)memory)[-1].bytes;
  void *grown = count_allocate(context, bytes, 16);
  if (grown != NULL) {
    memcpy(grown, memory, before < bytes ? before : bytes);
    count_free(context, memory);
  }
  return grown;
}

static const cleave_allocator_t COUNTING = {.size = sizeof COUNTING,
                                            .allocate = count_allocate,
                                            .reallocate = count_reallocate,
                                            .free = count_free,
                                            .context = &live_blocks};

/* x[2, 3] -> Relu -> y, as bytes of an ONNX file. */
static void write_model(cleave_text_t *text) {
  static const int64_t DIMS[2] = {2, 3};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  session_case_output(&c, session_case_node(&c, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  unit_ok(cleave_onnx_write_text(c.graph, NULL, text, e));
  session_case_deinit(&c);
}

static const char RULES[] = "return ruleset { name = 'r', region 'all' { ops = { 'Relu' } } }";

/* From bytes to numbers, with rules. */
static cleave_status_t whole_way(const void *data, size_t size, float *out_value, cleave_error_t *error) {
  static const int64_t DIMS[2] = {2, 3};
  static const float X[6] = {-1, 2, -3, 4, -5, 6};
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS, .data = X};
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_tensor_view_t output;
  cleave_rule_source_t source = {.path = "r.lua", .text = RULES, .length = sizeof RULES - 1};
  cleave_status_t status = cleave_model_load_memory(NULL, data, size, "bytes", &model, error);
  if (status == CLEAVE_OK) {
    status = cleave_model_partition(
        model,
        &(cleave_partition_request_t){
            .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
        &plan, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_create(model, plan, views, 1, NULL, &session, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_set_input(session, 0, &view, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_run(session, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_output(session, 0, &output, error);
  }
  if (status == CLEAVE_OK) {
    *out_value = ((const float *)output.data)[3];
  }
  cleave_session_destroy(session);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  return status;
}

UNIT_TEST(a_model_in_memory_runs_and_its_bytes_may_go) {
  cleave_text_t text = {0};
  float value = 0.0f;
  write_model(&text);
  unit_ok(whole_way(cleave_text_get(&text), text.length, &value, e));
  ck_assert_float_eq(value, 4.0f);
  unit_fails_with(whole_way(cleave_text_get(&text), text.length / 2, &value, e), CLEAVE_ERROR_FORMAT,
                  "bytes: ");
  unit_fails_with(whole_way("", 0, &value, e), CLEAVE_ERROR_FORMAT, "bytes: ");
  cleave_text_deinit(&text);
}

UNIT_TEST(all_memory_comes_from_the_allocator_and_goes_back) {
  unit_ok(cleave_set_allocator(&COUNTING, e));
  cleave_text_t text = {0};
  float value = 0.0f;
  write_model(&text);
  unit_ok(whole_way(cleave_text_get(&text), text.length, &value, e));  // backends start here, and stay
  long before = atomic_load(&live_blocks);
  long taken = atomic_load(&taken_blocks);
  unit_ok(whole_way(cleave_text_get(&text), text.length, &value, e));
  ck_assert_float_eq(value, 4.0f);
  ck_assert_int_eq(atomic_load(&live_blocks), before);
  ck_assert_int_gt(atomic_load(&taken_blocks), taken + 50);
  is_empty = true;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq((int)whole_way(cleave_text_get(&text), text.length, &value, &error),
                   (int)CLEAVE_ERROR_OUT_OF_MEMORY);
  is_empty = false;
  ck_assert_int_eq(atomic_load(&live_blocks), before);
  cleave_text_deinit(&text);
}

UNIT_TEST(an_allocator_that_comes_late_or_lacks_a_function_is_refused) {
  cleave_allocator_t half = COUNTING;
  half.free = NULL;
  unit_fails(cleave_set_allocator(&half, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the allocator is not complete: expected allocate, reallocate and free");
  cleave_text_t text = {0};
  write_model(&text);
  cleave_text_deinit(&text);
  unit_fails(cleave_set_allocator(&COUNTING, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the allocator must be set before cleave allocates memory");
}

/* ---- log and libraries ---- */

typedef struct lines {
  int count;
  cleave_log_level_t level;
  char last[256];
} lines_t;

static void listen(void *context, cleave_log_level_t level, const char *line) {
  lines_t *lines = context;
  lines->count++;
  lines->level = level;
  if (strstr(line, "no_device") != NULL) {
    snprintf(lines->last, sizeof lines->last, "%s", line);
  }
}

UNIT_TEST(libraries_that_are_found_but_do_not_start_are_in_the_log) {
  lines_t lines = {.count = 0};
  (void)setenv("CLEAVE_BACKEND_PATH", CLEAVE_BINARY_DIR "/tests/accelerators", 1);
  cleave_context_set_log(NULL, listen, &lines);
  ck_assert_uint_gt(cleave_backend_count(NULL), 3);
  ck_assert_int_ge(lines.count, 4);
  ck_assert_int_eq((int)lines.level, (int)CLEAVE_LOG_WARNING);
  ck_assert_ptr_nonnull(strstr(lines.last, "no device in slot 3"));
  int count = lines.count;
  cleave_context_set_log(NULL, NULL, NULL);
  ck_assert_uint_gt(cleave_backend_count(NULL), 3);
  ck_assert_int_eq(lines.count, count);
}

UNIT_TEST(a_library_is_loaded_and_unloaded_by_the_embedding_api) {
  uint32_t count = cleave_backend_count(NULL);
  unit_ok(cleave_backend_load(NULL, CLEAVE_BINARY_DIR "/tests/accelerators/libgood.so", "mine", e));
  ck_assert_uint_eq(cleave_backend_count(NULL), count + 1);
  ck_assert_str_eq(cleave_backend_name(NULL, count), "mine");
  unit_ok(cleave_backend_unload(NULL, "mine", e));
  ck_assert_uint_eq(cleave_backend_count(NULL), count);
  unit_fails(cleave_backend_unload(NULL, "mine", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'mine' is not a loaded library");
}

UNIT_SUITE("embed_process")
