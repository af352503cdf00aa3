// SPDX-License-Identifier: Apache-2.0
// Forms by measurement: the shortest path is the shortest of all, tuned regions compute what others compute,
// and what was measured comes back from bytes, unless they make no sense.
#include "onednn_case.h"

#include "onednn/tune/path.h"
#include "onednn/weights/tuning.h"

/* ---- the path ---- */

enum { KERNELS = 6, FORMS = 4 };

typedef struct costs {
  double times[KERNELS * FORMS];
  double switches[KERNELS][FORMS][FORMS];
} costs_t;

static double switch_time(void *context, uint32_t kernel, uint32_t from, uint32_t to) {
  const costs_t *costs = context;
  ck_assert_uint_ne(from, to);
  return costs->switches[kernel][from][to];
}

static double length(const costs_t *costs, const uint32_t *forms) {
  double sum = 0;
  for (uint32_t k = 0; k < KERNELS; k++) {
    sum += costs->times[k * FORMS + forms[k]];
    sum += k > 0 && forms[k] != forms[k - 1] ? costs->switches[k][forms[k - 1]][forms[k]] : 0;
  }
  return sum;
}

/* The least of all FORMS^KERNELS ways. */
static double shortest(const costs_t *costs) {
  double least = 1e30;
  for (uint32_t way = 0; way < 1U << (2 * KERNELS); way++) {
    uint32_t forms[KERNELS];
    for (uint32_t k = 0; k < KERNELS; k++) {
      forms[k] = way >> (2 * k) & 3U;
    }
    double sum = length(costs, forms);
    least = sum < least ? sum : least;
  }
  return least;
}

UNIT_TEST(the_path_is_the_shortest_of_all) {
  uint32_t state = 7;
  for (int round = 0; round < 50; round++) {
    costs_t costs;
    uint32_t found[KERNELS];
    for (size_t k = 0; k < KERNELS * FORMS; k++) {
      state = state * 1664525U + 1013904223U;
      costs.times[k] = (double)(state >> 20);
    }
    for (size_t k = 0; k < sizeof(costs.switches) / sizeof(double); k++) {
      state = state * 1664525U + 1013904223U;
      (&costs.switches[0][0][0])[k] = (double)(state >> (round % 2 == 0 ? 21 : 24));
    }
    const onednn_path_t path = {
        .kernels = KERNELS, .forms = FORMS, .times = costs.times, .switches = switch_time, .context = &costs};
    ck_assert(onednn_path_find(&path, found));
    ck_assert_double_eq_tol(length(&costs, found), shortest(&costs), 1e-6);
  }
}

UNIT_TEST(a_path_without_kernels_is_found) {
  const onednn_path_t path = {.kernels = 0, .forms = 3};
  ck_assert(onednn_path_find(&path, NULL));
}

/* ---- tuned regions ---- */

#define NET                                                                                          \
  "x [1,3,20,20] = input\nw1 [32,3,3,3] = random\nw2 [24,32,1,1] = random\nw3 [24,1,3,3] = random\n" \
  "w4 [40,12,3,3] = random\n{\n"                                                                     \
  "a [1,32,20,20] = Conv(x, w1) kernel_shape=[3,3] pads=[1,1,1,1]\nr [1,32,20,20] = Relu(a)\n}\n{\n" \
  "b [1,24,20,20] = Conv(r, w2) kernel_shape=[1,1]\nq [1,24,20,20] = Swish(b)\n}\n"                  \
  "c [1,24,10,10] = Conv(q, w3) kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,2] group=24\n"          \
  "d [1,40,10,10] = Conv(c, w4) kernel_shape=[3,3] pads=[1,1,1,1] group=2\n"                         \
  "e [1,64,10,10] = Concat(d, c) axis=1\n"

typedef struct trial {
  op_backend_t onednn;
  fusion_region_t *region;
  cleave_region_view_t view; /* with the attribute */
  view_program_t program;
} trial_t;

static const cleave_attribute_view_t tune = {
    .size = sizeof(cleave_attribute_view_t), .name = "tune", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};

/* The region compiled as it is; its program is to be replaced by a tuned one. */
static void start(trial_t *trial) {
  trial->onednn = onednn_create();
  trial->region = fusion_region_create(NET, true);
  fusion_region_compile(trial->region, &trial->onednn, 1, &trial->program);
  ck_assert_int_eq(view_program_run(&trial->program), CLEAVE_OK);
  trial->view = *fusion_region_view(trial->region);
  trial->view.attributes = &tune;
  trial->view.attribute_count = 1;
}

static void finish(trial_t *trial) {
  view_program_destroy(&trial->program);
  fusion_region_destroy(trial->region);
  op_backend_destroy(&trial->onednn);
}

static const cleave_tensor_view_t *result_of(const trial_t *trial) {
  return &trial->program.outputs[trial->program.output_count - 1];
}

static size_t result_bytes(const trial_t *trial) {
  return (size_t)cleave_view_element_count(result_of(trial)) * sizeof(float);
}

/* Puts the program into the trial, and runs it. */
static const float *run(trial_t *trial, void *program) {
  static _Alignas(64) unsigned char workspace[4 << 20];
  cleave_message_t message = {.text = ""};
  const cleave_run_args_t arguments = {.size = sizeof(arguments),
                                       .inputs = trial->program.inputs,
                                       .outputs = trial->program.outputs,
                                       .workspace = workspace};
  ck_assert_uint_le(trial->onednn.backend->info(program)->workspace_bytes, sizeof(workspace));
  ck_assert_msg(trial->onednn.backend->run(program, &arguments, &message) == CLEAVE_OK, "%s", message.text);
  return result_of(trial)->data;
}

static void *compile(trial_t *trial, int32_t threads) {
  const cleave_compile_options_t options = {.size = sizeof(options), .threads = threads};
  cleave_message_t message = {.text = ""};
  void *program = NULL;
  ck_assert_msg(trial->onednn.backend->compile(trial->onednn.state, &trial->view, &options, &program,
                                               &message) == CLEAVE_OK,
                "%s", message.text);
  return program;
}

static cleave_status_t load(trial_t *trial, const onednn_bytes_t *bytes, int32_t threads, void **out_program,
                            cleave_message_t *message) {
  const cleave_compile_options_t options = {.size = sizeof(options), .threads = threads};
  *out_program = NULL;
  return trial->onednn.backend->blobs->load(trial->onednn.state, &trial->view, &options, bytes->data,
                                            bytes->count, out_program, message);
}

static onednn_bytes_t save(const trial_t *trial, const void *program) {
  onednn_bytes_t bytes = {NULL, 0};
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(trial->onednn.backend->blobs->save(program, onednn_bytes_append, &bytes, &message),
                   CLEAVE_OK);
  return bytes;
}

UNIT_TEST(a_tuned_region_computes_what_it_computes_otherwise) {
  for (int32_t threads = 1; threads <= 2; threads++) {
    trial_t trial;
    start(&trial);
    ck_assert_ptr_null(trial.onednn.backend->info(trial.program.program)->note);
    size_t count = result_bytes(&trial) / sizeof(float);
    float *expected = malloc(count * sizeof(float));
    ck_assert_ptr_nonnull(expected);
    memcpy(expected, run(&trial, trial.program.program), count * sizeof(float));
    void *tuned = compile(&trial, threads);
    const float *found = run(&trial, tuned);
    for (size_t k = 0; k < count; k++) {
      ck_assert_double_eq_tol((double)found[k], (double)expected[k], 1e-3);
    }
    char begin[64];
    (void)snprintf(begin, sizeof(begin), "tuned for %d thread%s: ", (int)threads, threads == 1 ? "" : "s");
    const char *note = trial.onednn.backend->info(tuned)->note;
    ck_assert_ptr_nonnull(note);
    ck_assert_msg(strncmp(note, begin, strlen(begin)) == 0, "%s", note);
    trial.onednn.backend->unload(tuned);
    free(expected);
    finish(&trial);
  }
}

UNIT_TEST(what_was_measured_comes_back_from_bytes_with_the_same_bits) {
  trial_t first;
  trial_t later; /* as another process */
  cleave_message_t message = {.text = ""};
  void *loaded = NULL;
  start(&first);
  start(&later);
  void *tuned = compile(&first, 1);
  onednn_bytes_t bytes = save(&first, tuned);
  ck_assert_msg(load(&later, &bytes, 1, &loaded, &message) == CLEAVE_OK, "%s", message.text);
  ck_assert_str_eq(later.onednn.backend->info(loaded)->note, first.onednn.backend->info(tuned)->note);
  const float *left = run(&first, tuned);
  ck_assert_mem_eq(run(&later, loaded), left, result_bytes(&first));
  onednn_bytes_t again = save(&later, loaded);
  ck_assert_uint_eq(again.count, bytes.count);
  ck_assert_mem_eq(again.data, bytes.data, bytes.count);
  first.onednn.backend->unload(tuned);
  later.onednn.backend->unload(loaded);
  finish(&later);
  finish(&first);
  free(again.data);
  free(bytes.data);
}

UNIT_TEST(in_one_process_all_programs_of_a_region_have_the_same_forms) {
  trial_t trial;
  start(&trial);
  void *one = compile(&trial, 1);
  void *two = compile(&trial, 2);
  ck_assert_str_eq(trial.onednn.backend->info(one)->note, trial.onednn.backend->info(two)->note);
  trial.onednn.backend->unload(one);
  trial.onednn.backend->unload(two);
  finish(&trial);
}

UNIT_TEST(what_was_measured_for_other_threads_or_processors_or_not_at_all_is_refused) {
  trial_t first;
  trial_t later;
  cleave_message_t message = {.text = ""};
  void *loaded = NULL;
  start(&first);
  start(&later);
  void *tuned = compile(&first, 1);
  onednn_bytes_t bytes = save(&first, tuned);
  onednn_bytes_t plain = save(&first, first.program.program);
  ck_assert_int_eq(load(&later, &bytes, 2, &loaded, &message), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(message.text, "tuned on another processor or for another number of threads");
  ck_assert_int_eq(load(&later, &plain, 1, &loaded, &message), CLEAVE_ERROR_UNSUPPORTED);
  uint64_t count = 0;
  uint64_t offset = 0;
  memcpy(&count, bytes.data + 24, sizeof(count));
  memcpy(&offset, bytes.data + 32 + (count - 1) * 24 + 8, sizeof(offset));
  onednn_tuning_t *tuning = (void *)(bytes.data + offset);
  tuning->processor ^= 1;
  ck_assert_int_eq(load(&later, &bytes, 1, &loaded, &message), CLEAVE_ERROR_UNSUPPORTED);
  tuning->processor ^= 1;
  for (int part = 0; part < 4; part++) {
    onednn_tuning_t before = *tuning;
    onednn_form_t form = tuning->forms[tuning->kernel_count - 1];
    onednn_form_t *last = &tuning->forms[tuning->kernel_count - 1];
    last->layout = part == 0 ? ONEDNN_FORM_LAYOUTS : last->layout;
    last->skipped = part == 1 ? ONEDNN_FORM_SKIPS + 1 : last->skipped;
    last->serial = part == 2 ? 2 : last->serial;
    tuning->kernel_count = part == 3 ? UINT32_MAX : tuning->kernel_count;
    ck_assert_int_eq(load(&later, &bytes, 1, &loaded, &message), CLEAVE_ERROR_UNSUPPORTED);
    *tuning = before;
    *last = form;
  }
  ck_assert_msg(load(&later, &bytes, 1, &loaded, &message) == CLEAVE_OK, "%s", message.text);
  later.onednn.backend->unload(loaded);
  first.onednn.backend->unload(tuned);
  finish(&later);
  finish(&first);
  free(plain.data);
  free(bytes.data);
}

UNIT_SUITE("onednn_tune")
