// SPDX-License-Identifier: Apache-2.0
// Executors and compiled regions as bytes of isolated libraries: the same values and the same blobs as in
// this process, and what becomes of libraries that misbehave in them.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/library/library.h"
#include "backend/registry/registry.h"
#include "base/memory.h"
#include "isolate_case.h"
#include "library_case.h"
#include "partition/plan/plan.h"
#include "unit.h"
#include "view_builder.h"

#define PROGRAMS ISOLATE_HOSTILE("bad_programs")
#define OPERATORS ISOLATE_HOSTILE("bad_operators")

#define RELU_MODEL "g.output('y', g.Relu(g.input('x', 'float32', { 2, 3 })))\n"
#define RELU_RULES \
  "return ruleset { name = 'r', backend = 'bad_programs', region 'part' { ops = { 'Relu' } } }"

static const int64_t SHAPE[2] = {2, 3};
static const float DATA[6] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
static const float RELU[6] = {0.0f, 2.0f, 0.0f, 4.0f, 0.0f, 0.5f};

/* What partitioning, making a session, and `runs` runs came to: "" or the message; `loaded` programs came
 * from a cache. */
static const char *relu(const cleave_session_options_t *options, int runs, uint32_t *out_loaded) {
  static char text[1024];
  cleave_model_t *model = library_case_model(RELU_MODEL);
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = SHAPE, .data = DATA};
  const cleave_tensor_view_t *inputs[1] = {&view};
  cleave_status_t status = library_case_partition(model, RELU_RULES, NULL, NULL, &plan, &error);
  if (status == CLEAVE_OK) {
    status = cleave_session_create(model, plan, inputs, 1, options, &session, &error);
  }
  if (status == CLEAVE_OK) {
    unit_ok(cleave_session_set_input(session, 0, &view, e));
  }
  for (int run = 0; run < runs && status == CLEAVE_OK; run++) {
    status = cleave_session_run(session, &error);
    if (status == CLEAVE_OK) {
      cleave_tensor_view_t found;
      unit_ok(cleave_session_output(session, 0, &found, e));
      ck_assert_int_eq(memcmp(found.data, RELU, sizeof RELU), 0);
    }
  }
  if (out_loaded != NULL) {
    *out_loaded = session == NULL ? 0 : cleave_session_loaded_count(session);
  }
  (void)snprintf(text, sizeof text, "%s", status == CLEAVE_OK ? "" : error.message);
  cleave_session_destroy(session);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  return text;
}

/* ---- executors ---- */

static const cleave_session_options_t IMPERATIVE = {.size = sizeof IMPERATIVE, .imperative = true};

UNIT_TEST(executors_run_in_a_process_of_their_own) {
  isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_find(NULL, "bad_programs", &handle, e));
  ck_assert_ptr_nonnull(handle->backend->imperative);
  isolate_case_expect(relu(&IMPERATIVE, 3, NULL), "");
  isolate_case_unload("bad_programs");
  isolate_case_check_no_children();
}

UNIT_TEST(executors_that_misbehave_are_named_or_cpu_takes_over) {
  static const struct {
    const char *misdeed;
    const char *message;
  } CASES[] = {
      {"crash get", "crashed (segmentation fault at 0x10) while preparing operator 'Relu'"},
      {"crash execute", "crashed (segmentation fault at 0x10) while running operator 'Relu'"},
      {"behind", "wrote 8 bytes behind the end of output 0 while running operator 'Relu'"},
      {"crash release", ""},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    isolate_case_load(PROGRAMS, ISOLATE_APART, CASES[k].misdeed);
    isolate_case_expect(relu(&IMPERATIVE, 2, NULL), CASES[k].message);
    isolate_case_unload("bad_programs");
    isolate_case_load(PROGRAMS, ISOLATE_FALLING, CASES[k].misdeed);
    isolate_case_expect(relu(&IMPERATIVE, 3, NULL), "");
    isolate_case_unload("bad_programs");
  }
  isolate_case_load(PROGRAMS, ISOLATE_SHORT, "hang execute");
  isolate_case_expect(relu(&IMPERATIVE, 1, NULL),
                      "did not answer within 0.8 s while running operator 'Relu'");
  isolate_case_unload("bad_programs");
  isolate_case_check_no_children();
}

/* Constants of executors are among their inputs: those the process has already. */
UNIT_TEST(executors_have_their_constants_and_cpu_takes_over_with_them) {
  static const char MODEL[] =
      "local x = g.input('x', 'float32', { 2, 3 })\n"
      "local w = g.constant({ { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } }, 'float32')\n"
      "g.output('y', g.Relu(g.MatMul(g.Relu(x), w)))\n";
  static const char RULES[] =
      "return ruleset { name = 'r', backend = 'mirror', region 'all' { ops = { 'MatMul', 'Relu' } } }";
  float expected[6];
  for (int way = ISOLATE_HERE; way <= ISOLATE_FALLING; way++) {
    isolate_case_load(ISOLATE_ACCELERATOR("mirror"), (isolate_way_t)way, NULL);
    cleave_model_t *model = library_case_model(MODEL);
    cleave_plan_t *plan = NULL;
    unit_ok(library_case_partition(model, RULES, NULL, NULL, &plan, e));
    cleave_session_t *session = library_case_session(model, plan, 2, SHAPE, DATA, &IMPERATIVE);
    unit_ok(cleave_session_run(session, e));
    if (way == ISOLATE_HERE) {
      cleave_tensor_view_t view;
      unit_ok(cleave_session_output(session, 0, &view, e));
      memcpy(expected, view.data, sizeof expected);
    }
    library_case_run(session, 0, expected, 6);
    if (way == ISOLATE_FALLING) { /* it ends between two runs */
      ck_assert_int_eq(kill((pid_t)isolate_case_isolation("mirror").process, SIGKILL), 0);
      library_case_run(session, 0, expected, 6);
      library_case_run(session, 0, expected, 6);
      ck_assert_uint_ge(cleave_session_note_count(session), 1);
    }
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
    cleave_model_release(model);
    isolate_case_unload("mirror");
  }
  isolate_case_check_no_children();
}

/* ---- shapes of runs ---- */

/* One run of Relu over `count` elements that count up from -count/2, whose output the program makes. */
static void run_relu_of(view_program_t *program, int64_t count) {
  float *data = malloc((size_t)count * sizeof *data);
  for (int64_t k = 0; k < count; k++) {
    data[k] = (float)(k - count / 2);
  }
  view_program_input(program, 0, 1, &count, data);
  program->output_dims[0][0] = -1;
  program->outputs[0].data = NULL;
  if (view_program_run(program) != CLEAVE_OK) {
    ck_abort_msg("%s", program->message.text);
  }
  ck_assert_int_eq(program->outputs[0].dims[0], count);
  const float *found = program->outputs[0].data;
  for (int64_t k = 0; k < count; k++) {
    ck_assert_float_eq(found[k], data[k] > 0.0f ? data[k] : 0.0f);
  }
  free(data);
}

/* A run that is refused for its output has told the shape of its input already. */
UNIT_TEST(a_run_after_a_refused_one_has_memory_of_its_own_size) {
  enum { MANY = 20000 };
  isolate_case_load(ISOLATE_ACCELERATOR("mirror"), ISOLATE_APART, NULL);
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_find(NULL, "mirror", &handle, e));
  view_builder_t *b = view_builder_create();
  const int64_t open = -1;
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &open);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &open);
  view_builder_node(b, "Relu", 1, &x, 1, &y);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, handle->backend, handle->state, view_builder_region(b), 1),
                   CLEAVE_OK);
  run_relu_of(&program, 2);
  float *many = calloc(MANY, sizeof *many);
  view_program_input(&program, 0, 1, (int64_t[]){MANY}, many);
  program.outputs[0].dtype = CLEAVE_DTYPE_F64;
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_SHAPE);
  program.outputs[0].dtype = CLEAVE_DTYPE_F32;
  run_relu_of(&program, MANY);
  run_relu_of(&program, 3);
  free(many);
  view_program_destroy(&program);
  view_builder_destroy(b);
  isolate_case_unload("mirror");
  isolate_case_check_no_children();
}

/* ---- compiled regions as bytes ---- */

static const char *folder(void) {
  static char path[256];
  if (path[0] == '\0') {
    (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/isolate_blobs_%ld", (long)getpid());
  }
  return path;
}

static cleave_session_options_t with_cache(void) {
  return (cleave_session_options_t){
      .size = sizeof(cleave_session_options_t), .threads = 1, .blob_folder = folder()};
}

static void remove_folder(void) {
  char command[512];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", folder());
  ck_assert_int_eq(system(command), 0);
}

UNIT_TEST(a_region_that_was_compiled_in_one_process_is_loaded_in_the_other) {
  const cleave_session_options_t options = with_cache();
  static const isolate_way_t WAYS[] = {ISOLATE_APART, ISOLATE_APART, ISOLATE_HERE};
  for (size_t k = 0; k < 3; k++) {
    uint32_t loaded = 7;
    isolate_case_load(PROGRAMS, WAYS[k], NULL);
    isolate_case_expect(relu(&options, 2, &loaded), "");
    ck_assert_uint_eq(loaded, k > 0);
    isolate_case_unload("bad_programs");
  }
  remove_folder();
  isolate_case_load(PROGRAMS, ISOLATE_APART, "many"); /* a megabyte in pieces of ten bytes */
  for (int k = 0; k < 2; k++) {
    uint32_t loaded = 7;
    isolate_case_expect(relu(&options, 1, &loaded), "");
    ck_assert_uint_eq(loaded, (uint32_t)k);
  }
  isolate_case_unload("bad_programs");
  remove_folder();
  isolate_case_check_no_children();
}

UNIT_TEST(the_digest_of_a_library_is_that_of_its_file) {
  const cleave_backend_handle_t *handle = NULL;
  isolate_case_load(PROGRAMS, ISOLATE_HERE, NULL);
  unit_ok(cleave_registry_find(NULL, "bad_programs", &handle, e));
  cleave_digest_t here = cleave_registry_digest(handle);
  isolate_case_unload("bad_programs");
  isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
  unit_ok(cleave_registry_find(NULL, "bad_programs", &handle, e));
  ck_assert(cleave_digest_equal(here, cleave_registry_digest(handle)));
  isolate_case_unload("bad_programs");
  ck_assert(here.words[0] != 0 && here.words[1] != 0);
  ck_assert(!cleave_digest_equal(here, cleave_library_digest_file(OPERATORS)));
  const cleave_digest_t none = {{0}};
  ck_assert(cleave_digest_equal(none, cleave_library_digest_file("/dev/null")));
  ck_assert(cleave_digest_equal(none, cleave_library_digest_file("/nowhere")));
  ck_assert(cleave_digest_equal(none, cleave_library_digest_file(CLEAVE_SOURCE_DIR "/README.md")));
}

UNIT_TEST(blobs_that_misbehave_are_compiled_or_named) {
  static const struct {
    const char *misdeed;
    const char *message; /* of the session that finds a blob there */
  } CASES[] = {
      {"crash check", "crashed (segmentation fault at 0x10) while looking at a compiled region"},
      {"crash load", "crashed (segmentation fault at 0x10) while loading region 'part_0'"},
      {"nothing", ""}, /* compiled */
  };
  const cleave_session_options_t options = with_cache();
  for (size_t k = 0; k < 2 * sizeof CASES / sizeof CASES[0]; k++) {
    isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
    isolate_case_expect(relu(&options, 1, NULL), "");
    isolate_case_unload("bad_programs");
    isolate_case_load(PROGRAMS, k % 2 == 0 ? ISOLATE_APART : ISOLATE_FALLING, CASES[k / 2].misdeed);
    isolate_case_expect(relu(&options, 1, NULL), k % 2 == 0 ? CASES[k / 2].message : "");
    isolate_case_unload("bad_programs");
    remove_folder();
  }
  isolate_case_check_no_children();
}

UNIT_TEST(saving_without_end_or_sense_is_ended) {
  static const struct {
    const char *misdeed;
    isolate_way_t way;
    const char *message;
  } CASES[] = {
      {"crash save", ISOLATE_APART, "crashed (segmentation fault at 0x10) while saving region 'part_0'"},
      {"hang save", ISOLATE_SHORT, "did not answer within 0.8 s while saving region 'part_0'"},
      {"endless", ISOLATE_SHORT, "did not answer within 0.8 s while saving region 'part_0'"},
      {"wild", ISOLATE_APART, "sent a malformed answer while saving region 'part_0'"},
      {"callback", ISOLATE_APART, "sent a malformed answer while asked about 'Relu'"},
      {"flood", ISOLATE_SHORT, "did not answer within 0.8 s while asked about 'Relu'"},
  };
  const cleave_session_options_t options = with_cache();
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    isolate_case_load(PROGRAMS, CASES[k].way, CASES[k].misdeed);
    isolate_case_expect(relu(&options, 1, NULL), CASES[k].message);
    isolate_case_unload("bad_programs");
    remove_folder();
  }
  isolate_case_check_no_children();
}

/* ---- notes ---- */

UNIT_TEST(what_a_library_says_of_its_programs_comes_from_its_process) {
  const cleave_session_options_t options = {.size = sizeof options};
  for (int way = ISOLATE_HERE; way <= ISOLATE_APART; way++) {
    isolate_case_load(PROGRAMS, (isolate_way_t)way, "note");
    cleave_model_t *model = library_case_model(RELU_MODEL);
    cleave_plan_t *plan = NULL;
    unit_ok(library_case_partition(model, RELU_RULES, NULL, NULL, &plan, e));
    cleave_session_t *session = library_case_session(model, plan, 2, SHAPE, DATA, &options);
    ck_assert_uint_eq(cleave_session_note_count(session), 1);
    isolate_case_expect(cleave_session_note(session, 0), "region 'part_0': six elements, 0000");
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
    cleave_model_release(model);
    isolate_case_unload("bad_programs");
  }
  isolate_case_check_no_children();
}

/* ---- in this process ---- */

UNIT_TEST(who_has_no_memory_is_named) {
  isolate_case_load(PROGRAMS, ISOLATE_HERE, "full supports");
  isolate_case_expect(relu(NULL, 1, NULL), "backend 'bad_programs': 'supports': out of memory");
  isolate_case_unload("bad_programs");
  isolate_case_load(PROGRAMS, ISOLATE_HERE, "full compile");
  isolate_case_expect(relu(NULL, 1, NULL), "region 'part_0' on bad_programs: out of memory");
  isolate_case_expect(relu(&IMPERATIVE, 1, NULL), "");
  isolate_case_unload("bad_programs");
}

/* ---- memory ---- */

UNIT_TEST(without_memory_programs_leave_nothing_and_no_more_goes_wrong) {
  const cleave_session_options_t options = with_cache();
  static const char MODEL[] = ISOLATE_PLACES("well");
  static const int64_t SIX[1] = {6};
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = SIX, .data = DATA};
  const cleave_tensor_view_t *inputs[1] = {&view};
  for (int way = 0; way < 2; way++) {
    cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
    isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
    isolate_case_load(OPERATORS, ISOLATE_APART, NULL);
    cleave_model_t *model = library_case_model(MODEL);
    for (int64_t failures = 0; status != CLEAVE_OK; failures++) {
      cleave_session_t *session = NULL;
      (void)cleave_memory_fail_after(failures);
      status = cleave_session_create(model, NULL, inputs, 1, &options, &session, NULL);
      status = status == CLEAVE_OK ? cleave_session_set_input(session, 0, &view, NULL) : status;
      status = status == CLEAVE_OK ? cleave_session_run(session, NULL) : status;
      (void)cleave_memory_fail_after(-1);
      cleave_session_destroy(session);
      ck_assert_int_lt(failures, 5000);
      isolate_case_revive(OPERATORS, "bad_operators");
    }
    cleave_model_release(model);
    isolate_case_expect(relu(way == 0 ? &options : &IMPERATIVE, 1, NULL), "");
    isolate_case_unload("bad_programs");
    isolate_case_unload("bad_operators");
  }
  remove_folder();
  isolate_case_check_no_children();
}

/* ---- growth ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 30, MAX_GROWTH = 1 << 16 };
#else
enum { ROUNDS = 200, MAX_GROWTH = 256 };
#endif

UNIT_TEST(many_rounds_of_loading_using_and_unloading_leave_nothing_behind) {
  static const float DOUBLE[6] = {-2.0f, 4.0f, -6.0f, 8.0f, 0.0f, 1.0f};
  const cleave_session_options_t options = with_cache();
  size_t descriptors = 0;
  long pages = 0;
  for (int round = 0; round < ROUNDS; round++) {
    isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
    isolate_case_load(OPERATORS, ISOLATE_APART, NULL);
    isolate_case_expect(relu(round % 2 == 0 ? &options : &IMPERATIVE, 2, NULL), "");
    isolate_case_expect(isolate_case_operate(ISOLATE_TWICE("well"), 2, SHAPE, DOUBLE, 6), "");
    isolate_case_unload("bad_programs");
    isolate_case_unload("bad_operators");
    if (round == ROUNDS / 4) {
      descriptors = isolate_case_descriptors();
      pages = isolate_case_pages();
    }
  }
  remove_folder();
  ck_assert_uint_eq(isolate_case_descriptors(), descriptors);
  ck_assert_int_lt(isolate_case_pages() - pages, MAX_GROWTH);
  isolate_case_check_no_children();
}

/* Pages of the process of a library. */
static long pages_of(const char *name) {
  char path[64];
  long total = 0;
  long resident = 0;
  (void)snprintf(path, sizeof path, "/proc/%lld/statm", (long long)isolate_case_isolation(name).process);
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%ld %ld", &total, &resident), 2);
  (void)fclose(file);
  return resident;
}

UNIT_TEST(a_process_that_lives_long_does_not_grow) {
  static const int64_t SIX[1] = {6};
  const cleave_session_options_t options = with_cache();
  long pages[3] = {0};
  isolate_case_load(PROGRAMS, ISOLATE_APART, NULL);
  isolate_case_load(OPERATORS, ISOLATE_APART, NULL);
  isolate_case_load(ISOLATE_HOSTILE("bad_rules"), ISOLATE_APART, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    cleave_model_t *model =
        library_case_model("local x = g.input('x', 'float32', { 4 })\ng.output('y', g.Neg(g.Exp(g.Log(x))))");
    cleave_plan_t *plan = NULL;
    isolate_case_expect(relu(round % 2 == 0 ? &options : &IMPERATIVE, 2, NULL), "");
    isolate_case_expect(
        isolate_case_operate(ISOLATE_PLACES("often"), 1, SIX, (float[]){0.0f, 1.0f, 2.0f, 3.0f, 5.0f}, 5),
        "");
    unit_ok(library_case_partition(model, "bad_rules", "pass=all", "part=attach", &plan, e));
    cleave_plan_destroy(plan);
    cleave_model_release(model);
    if (round == ROUNDS / 4) {
      pages[0] = pages_of("bad_programs");
      pages[1] = pages_of("bad_operators");
      pages[2] = pages_of("bad_rules");
    }
  }
  ck_assert_int_lt(pages_of("bad_programs") - pages[0], MAX_GROWTH);
  ck_assert_int_lt(pages_of("bad_operators") - pages[1], MAX_GROWTH);
  ck_assert_int_lt(pages_of("bad_rules") - pages[2], MAX_GROWTH);
  isolate_case_unload("bad_programs");
  isolate_case_unload("bad_operators");
  isolate_case_unload("bad_rules");
  remove_folder();
}

UNIT_SUITE("isolate programs")
