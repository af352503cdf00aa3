// SPDX-License-Identifier: Apache-2.0
// Programs of the oneDNN backend as bytes: packed weights, read where the bytes are, by programs that compute
// what compiled ones compute, bit for bit.
#include "onednn_case.h"

#define NET                                                                                         \
  "x [1,16,12,12] = input\nw1 [32,16,3,3] = random\nw2 [24,32,1,1] = random\nv [32] = positive\n"   \
  "w3 [3456,40] = random\nw4 [8,40] = random\n{\n"                                                  \
  "a [1,32,12,12] = Conv(x, w1) kernel_shape=[3,3] pads=[1,1,1,1]\n"                                \
  "n [1,32,12,12] = BatchNormalization(a, v, v, v, v) epsilon=0.001\nr [1,32,12,12] = Relu(n)\n}\n" \
  "b [1,24,12,12] = Conv(r, w2) kernel_shape=[1,1]\ns i64[2] = 1 -1\n"                              \
  "f [1,3456] = Flatten(b) axis=1\ng [1,40] = MatMul(f, w3)\nh [1,8] = Gemm(g, w4) transB=1\n"      \
  "l i64[1] = 1\nu [1,1,8] = Unsqueeze(h, l)\nrw [1,64,8] = random\nrr [1,64,16] = random\n"        \
  "t [1,1,8] = Tanh(u)\ny [1,1,1,16] = LSTM(t, rw, rr) hidden_size=16\n"

typedef struct trial {
  op_backend_t onednn;
  fusion_region_t *region;
  view_program_t program;
} trial_t;

static void start(trial_t *trial, const char *text) {
  trial->onednn = onednn_create();
  trial->region = fusion_region_create(text, true);
  fusion_region_compile(trial->region, &trial->onednn, 1, &trial->program);
}

static void finish(trial_t *trial) {
  view_program_destroy(&trial->program);
  fusion_region_destroy(trial->region);
  op_backend_destroy(&trial->onednn);
}

static onednn_bytes_t save(const trial_t *trial) {
  onednn_bytes_t bytes = {NULL, 0};
  cleave_message_t message = {.text = ""};
  ck_assert_msg(trial->onednn.backend->blobs->save(trial->program.program, onednn_bytes_append, &bytes,
                                                   &message) == CLEAVE_OK,
                "%s", message.text);
  return bytes;
}

/* Puts a program that is loaded from the bytes in the place of the compiled one. */
static void load(trial_t *trial, const onednn_bytes_t *bytes) {
  const cleave_backend_t *backend = trial->onednn.backend;
  const cleave_compile_options_t options = {.size = sizeof(options), .threads = 1};
  cleave_message_t message = {.text = ""};
  backend->unload(trial->program.program);
  ck_assert_int_eq(backend->blobs->check(trial->onednn.state, 0, bytes->data, bytes->count, &message),
                   CLEAVE_OK);
  ck_assert_msg(
      backend->blobs->load(trial->onednn.state, fusion_region_view(trial->region), &options, bytes->data,
                           bytes->count, &trial->program.program, &message) == CLEAVE_OK,
      "%s", message.text);
}

static const float *run(trial_t *trial) {
  ck_assert_msg(view_program_run(&trial->program) == CLEAVE_OK, "%s", trial->program.message.text);
  return trial->program.outputs[0].data;
}

static void check_equal(trial_t *a, trial_t *b) {
  const float *left = run(a);
  const float *right = run(b);
  ck_assert_mem_eq(left, right, (size_t)cleave_view_element_count(&a->program.outputs[0]) * sizeof(float));
}

UNIT_TEST(a_loaded_program_computes_what_the_compiled_one_does) {
  trial_t compiled;
  trial_t loaded;
  start(&compiled, NET);
  onednn_bytes_t bytes = save(&compiled);
  ck_assert_uint_gt(bytes.count, 3456 * 40 * sizeof(float));
  start(&loaded, NET); /* in a state of its own, with constants elsewhere: as another process */
  load(&loaded, &bytes);
  check_equal(&compiled, &loaded);
  onednn_bytes_t again = save(&loaded);
  ck_assert_uint_eq(again.count, bytes.count);
  ck_assert_mem_eq(again.data, bytes.data, bytes.count);
  ck_assert_uint_eq(compiled.onednn.backend->info(compiled.program.program)->persistent_bytes > 0,
                    loaded.onednn.backend->info(loaded.program.program)->persistent_bytes > 0);
  finish(&loaded);
  finish(&compiled);
  free(again.data);
  free(bytes.data);
}

UNIT_TEST(its_weights_are_read_where_the_bytes_are) {
  trial_t compiled;
  trial_t loaded;
  start(&compiled, NET);
  onednn_bytes_t bytes = save(&compiled);
  start(&loaded, NET);
  load(&loaded, &bytes);
  check_equal(&compiled, &loaded);
  float before[16];
  memcpy(before, run(&loaded), sizeof(before));
  uint64_t count = 0;
  memcpy(&count, bytes.data + 24, sizeof(count));
  size_t table = 32 + (size_t)count * 24;
  memset(bytes.data + table, 0, bytes.count - table);
  ck_assert_mem_ne(run(&loaded), before, sizeof(before));
  finish(&loaded);
  finish(&compiled);
  free(bytes.data);
}

UNIT_TEST(bytes_of_other_regions_are_packed_again) {
  static const char other[] =
      "x [1,40] = input\nw [40,24] = random\ny [1,24] = MatMul(x, w)\nw2 [24,40] = random\n"
      "z [1,40] = MatMul(y, w2)\n";
  trial_t compiled;
  trial_t net;
  trial_t loaded;
  start(&net, NET);
  onednn_bytes_t bytes = save(&net);
  start(&compiled, other);
  start(&loaded, other);
  load(&loaded, &bytes);
  check_equal(&compiled, &loaded);
  finish(&loaded);
  finish(&compiled);
  finish(&net);
  free(bytes.data);
}

static void check_refused(const trial_t *trial, const unsigned char *data, size_t count, const char *reason) {
  cleave_message_t message = {.text = ""};
  void *program = NULL;
  const cleave_compile_options_t options = {.size = sizeof(options), .threads = 1};
  ck_assert_int_eq(trial->onednn.backend->blobs->check(trial->onednn.state, 0, data, count, &message),
                   CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_msg(strstr(message.text, reason) != NULL, "%s", message.text);
  ck_assert_int_eq(trial->onednn.backend->blobs->load(trial->onednn.state, fusion_region_view(trial->region),
                                                      &options, data, count, &program, &message),
                   CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_ptr_null(program);
}

UNIT_TEST(bytes_that_are_not_whole_or_of_another_processor_are_refused) {
  trial_t trial;
  start(&trial, NET);
  onednn_bytes_t bytes = save(&trial);
  unsigned char *copy = aligned_alloc(64, (bytes.count + 63) / 64 * 64);
  ck_assert_ptr_nonnull(copy);
  check_refused(&trial, bytes.data, 31, "too few");
  check_refused(&trial, bytes.data, 40, "the table is not whole");
  check_refused(&trial, bytes.data, bytes.count / 2, "is not whole");
  for (size_t k = 0; k < 24; k++) { /* magic, version, instruction set, oneDNN */
    memcpy(copy, bytes.data, bytes.count);
    copy[k] ^= 0x40;
    check_refused(&trial, copy, bytes.count, "of another oneDNN or for another processor");
  }
  static const struct {
    size_t at;
    uint64_t value;
    const char *reason;
  } changes[] = {{24, UINT64_MAX, "the table is not whole"},
                 {24, UINT64_MAX / 24, "the table is not whole"},
                 {40, UINT64_MAX - 63, "constant 0 is not whole"},
                 {40, 65, "constant 0 is not whole"},
                 {48, UINT64_MAX, "constant 0 is not whole"}};
  for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
    memcpy(copy, bytes.data, bytes.count);
    memcpy(copy + changes[k].at, &changes[k].value, sizeof(uint64_t));
    check_refused(&trial, copy, bytes.count, changes[k].reason);
  }
  free(copy);
  finish(&trial);
  free(bytes.data);
}

UNIT_TEST(a_program_that_packs_nothing_is_not_kept) {
  trial_t trial;
  onednn_bytes_t bytes = {NULL, 0};
  cleave_message_t message = {.text = ""};
  start(&trial, "x [2,8] = input\ny [2,8] = Relu(x)\n");
  ck_assert_int_eq(
      trial.onednn.backend->blobs->save(trial.program.program, onednn_bytes_append, &bytes, &message),
      CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(message.text, "it has no packed weights");
  ck_assert_uint_eq(bytes.count, 0);
  finish(&trial);
}

UNIT_SUITE("onednn_blobs")
