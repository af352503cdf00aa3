// SPDX-License-Identifier: Apache-2.0
// Accelerator libraries: loading, refusing, finding in folders, unloading; each library of tests/accelerators
// has one thing wrong with it.
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/library/library.h"
#include "backend/registry/registry.h"
#include "session_case.h"
#include "tools/verify/bisect.h"
#include "tools/verify/verify.h"
#include "unit.h"

#define FOLDER CLEAVE_BINARY_DIR "/tests/accelerators"
#define LIBRARY(name) FOLDER "/lib" name ".so"

static const float DATA[6] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};

/* x -> Relu -> Exp, the Relu in a region on `backend`. */
static session_case_t relu_case(const char *backend) {
  static const int64_t DIMS[2] = {2, 3};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  cleave_value_t relu = session_case_node(&c, "Relu", "relu", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Exp", "exp", relu, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Relu", backend);
  session_case_feed(&c, 2, DIMS, DATA);
  return c;
}

UNIT_TEST(a_library_runs_a_region) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  session_case_t c = relu_case("good");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  for (int64_t k = 0; k < 6; k++) {
    float x = DATA[k] > 0.0f ? DATA[k] : 0.0f;
    ck_assert_float_eq_tol(session_case_value(&c, 0, k), expf(x), 1e-5f);
  }
  session_case_deinit(&c);
}

UNIT_TEST(a_library_in_use_is_not_unloaded) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  session_case_t c = relu_case("good");
  session_case_compile(&c, NULL);
  unit_fails(cleave_registry_unload(NULL, "good", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'good' is in use: 1 compiled program of it live");
  session_case_run(&c);
  session_case_deinit(&c);
  unit_ok(cleave_registry_unload(NULL, "good", e));
  unit_fails_with(cleave_registry_unload(NULL, "good", e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "backend 'good' is not a loaded library");
  unit_fails_with(cleave_registry_unload(NULL, "cpu", e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "backend 'cpu' is not a loaded library");
}

UNIT_TEST(the_same_file_twice_is_one_backend_and_another_name_is_another) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  uint32_t count = cleave_registry_count(NULL);
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  unit_ok(cleave_registry_load(NULL, FOLDER "/../accelerators/libgood.so", NULL, e));
  ck_assert_uint_eq(cleave_registry_count(NULL), count);
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), "second", e));
  ck_assert_uint_eq(cleave_registry_count(NULL), count + 1);
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_find(NULL, "second", &handle, e));
  ck_assert_str_eq(handle->backend->name, "second");
}

UNIT_TEST(names_that_are_taken_or_no_names_are_refused) {
  unit_fails_with(cleave_registry_load(NULL, LIBRARY("good"), "cpu", e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "a backend called 'cpu' exists already (linked in)");
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  unit_fails_with(cleave_registry_load(NULL, LIBRARY("wrong"), "good", e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "a backend called 'good' exists already (");
  unit_fails_with(cleave_registry_load(NULL, LIBRARY("good"), "a b", e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "'a b' is not a name for a backend");
  unit_fails_with(cleave_registry_load(NULL, LIBRARY("bad_name"), NULL, e), CLEAVE_ERROR_BACKEND,
                  "calls itself 'bad name/', which is not a valid name");
  unit_ok(cleave_registry_load(NULL, LIBRARY("bad_name"), "better", e));
}

UNIT_TEST(shorter_and_longer_structs_load) {
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_load(NULL, LIBRARY("required_only"), NULL, e));
  unit_ok(cleave_registry_find(NULL, "required_only", &handle, e));
  ck_assert(handle->backend->cost == NULL && handle->backend->devices == NULL);
  ck_assert(handle->backend->extensions == NULL && !handle->backend->adds);
  unit_ok(cleave_registry_load(NULL, LIBRARY("newer_minor"), NULL, e));
  static const char *const NAMES[] = {"required_only", "newer_minor"};
  for (size_t k = 0; k < 2; k++) {
    session_case_t c = relu_case(NAMES[k]);
    session_case_compile(&c, NULL);
    session_case_run(&c);
    ck_assert_float_eq_tol(session_case_value(&c, 0, 1), expf(2.0f), 1e-5f);
    session_case_deinit(&c);
  }
}

UNIT_TEST(libraries_that_cannot_serve_are_refused_with_their_reason) {
  static const struct {
    const char *path;
    cleave_status_t status;
    const char *part;
  } CASES[] = {
      {LIBRARY("other_major"), CLEAVE_ERROR_BACKEND, "made for interface version 3, this is version 2"},
      {LIBRARY("half"), CLEAVE_ERROR_BACKEND, "function 'compile' is missing"},
      {LIBRARY("no_device"), CLEAVE_ERROR_UNSUPPORTED, "libno_device.so: no device in slot 3"},
      {LIBRARY("refuses"), CLEAVE_ERROR_BACKEND, "the licence for interface 2 has ended"},
      {LIBRARY("no_entry"), CLEAVE_ERROR_BACKEND, "exports no function 'cleave_backend_entry'"},
      {LIBRARY("missing"), CLEAVE_ERROR_IO, "libmissing.so: No such file or directory"},
      {FOLDER, CLEAVE_ERROR_IO, "cannot read: not a regular file"},
      {CLEAVE_SOURCE_DIR "/README.md", CLEAVE_ERROR_FORMAT, "not a shared library: expected an ELF file"},
      {"/dev/null", CLEAVE_ERROR_IO, "cannot read: not a regular file"},
  };
  uint32_t count = cleave_registry_count(NULL);
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    unit_fails_with(cleave_registry_load(NULL, CASES[k].path, NULL, e), CASES[k].status, CASES[k].part);
  }
  ck_assert_uint_eq(cleave_registry_count(NULL), count);
}

/* A copy of the good library with one byte changed, or cut. */
static void write_changed(const char *path, long at, int value, size_t most) {
  static char bytes[1 << 20];
  FILE *from = fopen(LIBRARY("good"), "rb");
  ck_assert_ptr_nonnull(from);
  size_t length = fread(bytes, 1, sizeof bytes, from);
  (void)fclose(from);
  ck_assert_uint_gt(length, 64);
  bytes[at] = (char)value;
  FILE *to = fopen(path, "wb");
  ck_assert_ptr_nonnull(to);
  length = length < most ? length : most;
  ck_assert_uint_eq(fwrite(bytes, 1, length, to), length);
  (void)fclose(to);
}

UNIT_TEST(files_for_other_machines_and_cut_ones_are_errors) {
  char path[64] = "/tmp/cleave_library_XXXXXX";
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  (void)close(file);
  write_changed(path, 18, 243, SIZE_MAX);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT,
                  "built for RISC-V (64 bits), this is");
  write_changed(path, 4, 1, SIZE_MAX);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT, "(32 bits), this is");
  write_changed(path, 16, 2, SIZE_MAX);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT, "not a shared library");
  write_changed(path, 0, 0, SIZE_MAX);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT, "expected an ELF file");
  write_changed(path, 0, 0x7f, 100);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT,
                  "cut off: a file of 100 bytes without all of its program headers");
  write_changed(path, 0, 0x7f, 20);
  unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT, "expected an ELF file");
  (void)unlink(path);
}

/* The loader of the system maps what is not there, and the first look at it is a SIGBUS. */
UNIT_TEST(a_library_that_was_copied_by_half_is_an_error_wherever_it_ends) {
  char folder[64] = "/tmp/cleave_library_XXXXXX";
  char path[96];
  char pipe[96];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/libcut.so", folder);
  (void)snprintf(pipe, sizeof pipe, "%s/libpipe.so", folder);
  for (size_t bytes = 1024; bytes < 12288; bytes += 1024) {
    write_changed(path, 0, 0x7f, bytes);
    unit_fails_with(cleave_registry_load(NULL, path, NULL, e), CLEAVE_ERROR_FORMAT, "cut off: expected at");
  }
  ck_assert_int_eq(mkfifo(pipe, 0600), 0);
  unit_fails_with(cleave_registry_load(NULL, pipe, NULL, e), CLEAVE_ERROR_IO, "not a regular file");
  // Found in a folder, both are on record under their files' names.
  (void)setenv("CLEAVE_BACKEND_PATH", folder, 1);
  const cleave_backend_handle_t *handle = NULL;
  unit_fails_with(cleave_registry_find(NULL, "cut", &handle, e), CLEAVE_ERROR_FORMAT, "cut off: expected at");
  unit_fails_with(cleave_registry_find(NULL, "pipe", &handle, e), CLEAVE_ERROR_IO, "not a regular file");
  (void)unlink(path);
  (void)unlink(pipe);
  (void)rmdir(folder);
}

UNIT_TEST(folders_are_searched_when_a_name_is_not_known) {
  (void)setenv("CLEAVE_BACKEND_PATH", "/nowhere::" FOLDER, 1);
  const cleave_backend_handle_t *handle = NULL;
  unit_ok(cleave_registry_find(NULL, "good", &handle, e));
  unit_fails_with(cleave_registry_find(NULL, "half", &handle, e), CLEAVE_ERROR_BACKEND,
                  "function 'compile' is missing");
  uint32_t found = 0;
  for (uint32_t k = 0; k < cleave_registry_count(NULL); k++) {
    if (strcmp(cleave_registry_name(NULL, k), "no_entry") == 0) {
      ck_assert_str_eq(cleave_registry_path(NULL, k), LIBRARY("no_entry"));
      found++;
    }
  }
  ck_assert_uint_eq(found, 1);
}

UNIT_TEST(a_region_that_fails_says_which_library_and_why) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("fails"), NULL, e));
  session_case_t c = relu_case("fails");
  session_case_compile(&c, NULL);
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, "the device is too hot");
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, "the device is too hot");
  session_case_deinit(&c);
}

UNIT_TEST(a_library_that_counts_what_it_does_not_list_is_an_error) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("counts_pairs"), NULL, e));
  unit_ok(cleave_registry_load(NULL, LIBRARY("counts_times"), NULL, e));
  session_case_t c = relu_case("counts_pairs");
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  ck_assert_ptr_nonnull(
      strstr(cleave_session_note(c.session, 0), "7 pairs in place, expected a list of them, found NULL"));
  session_case_run(&c);
  session_case_deinit(&c);
  c = relu_case("counts_times");
  session_case_compile(
      &c, &(cleave_session_options_t){.size = sizeof(cleave_session_options_t), .profile = true});
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
                  "backend 'counts_times': profile: expected a list of 5 times, found NULL");
  session_case_deinit(&c);
}

/* What it has written over its input by then, where cleave lets it, is not what cpu computes from. */
UNIT_TEST(cpu_computes_what_a_library_fails_in_where_a_session_falls_back) {
  static const char *const NAMES[] = {"fails", "fails_in_place"};
  unit_ok(cleave_registry_load(NULL, LIBRARY("fails"), NULL, e));
  unit_ok(cleave_registry_load(NULL, LIBRARY("fails_in_place"), NULL, e));
  for (size_t k = 0; k < 2; k++) {
    static const int64_t DIMS[2] = {2, 3};
    session_case_t c = session_case_create();
    cleave_value_t none = CLEAVE_VALUE_NONE;
    cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
    cleave_value_t negated = session_case_node(&c, "Neg", "neg", x, none, none);
    cleave_value_t relu = session_case_node(&c, "Relu", "relu", negated, none, none);
    session_case_output(&c, session_case_node(&c, "Exp", "exp", relu, none, none));
    session_case_infer(&c);
    session_case_partition(&c, "Relu", NAMES[k]);
    session_case_feed(&c, 2, DIMS, DATA);
    cleave_session_options_t options = {.size = sizeof options, .fallback = true};
    session_case_compile(&c, &options);
    ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
    for (int run = 0; run < 3; run++) {
      session_case_run(&c);
      for (int64_t i = 0; i < 6; i++) {
        float expected = expf(DATA[i] < 0.0f ? -DATA[i] : 0.0f);
        ck_assert_float_eq_tol(session_case_value(&c, 0, i), expected, 1e-5f * expected);
      }
    }
    char note[128];
    (void)snprintf(note, sizeof note, "runs on cpu from run 1 on, not on %s: the device is too hot",
                   NAMES[k]);
    ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 0), note));
    session_case_deinit(&c);
  }
}

UNIT_TEST(wrong_values_are_found_by_verification) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("wrong"), NULL, e));
  session_case_t c = relu_case("wrong");
  cleave_verify_options_t options = {.inputs = c.inputs,
                                     .input_count = c.input_count,
                                     .rounds = 1,
                                     .threads = 1,
                                     .rtol = -1.0,
                                     .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.items.count, 1);
  ck_assert_uint_eq(report.mismatches, 1);
  const cleave_verify_item_t *item = &report.items.items[0];
  ck_assert_int_eq((int)item->verdict, (int)CLEAVE_VERIFY_MISMATCH);
  ck_assert(item->kind == CLEAVE_VERIFY_REGION && item->round == 0 && item->input_count == 1 &&
            item->graph != NULL);
  ck_assert_double_eq_tol(item->max_absolute, 0.25, 1e-6);
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&item->reason), "6 of 6 values differ"));
  ck_assert_mem_eq(item->inputs[0]->data, DATA, sizeof DATA);
  cleave_verify_report_deinit(&report);
  session_case_deinit(&c);
}

UNIT_TEST(a_failing_library_fails_verification_with_its_words) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("fails"), NULL, e));
  session_case_t c = relu_case("fails");
  cleave_verify_options_t options = {
      .inputs = c.inputs, .input_count = c.input_count, .threads = 1, .rtol = -1.0, .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_int_eq((int)report.items.items[0].verdict, (int)CLEAVE_VERIFY_FAILED);
  ck_assert_str_eq(cleave_text_get(&report.items.items[0].reason), "fails: the device is too hot");
  cleave_verify_report_deinit(&report);
  session_case_deinit(&c);
}

static const char RULES[] =
    "return ruleset { name = 'r', backend = 'wrong',\n"
    "  region 'some' { ops = { 'Relu' } } }\n";

/* x -> Relu r0 -> Exp -> Relu r1 -> Sin -> Relu r2. */
UNIT_TEST(bisection_finds_the_applications_to_blame) {
  static const int64_t DIMS[2] = {2, 3};
  unit_ok(cleave_registry_load(NULL, LIBRARY("wrong"), NULL, e));
  session_case_t c = session_case_create();
  cleave_value_t none = CLEAVE_VALUE_NONE;
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  x = session_case_node(&c, "Relu", "r0", x, none, none);
  x = session_case_node(&c, "Sigmoid", "s0", x, none, none);
  x = session_case_node(&c, "Relu", "r1", x, none, none);
  session_case_output(&c, x);
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS, DATA);
  cleave_rule_source_t source = {.path = "r.lua", .text = RULES, .length = sizeof RULES - 1};
  cleave_rule_list_t list;
  unit_ok(cleave_rule_list_load(
      &list, NULL,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      NULL, e));
  cleave_bisect_options_t options = {.metric = CLEAVE_BISECT_MAX_ABS,
                                     .threshold = 0.1,
                                     .inputs = c.inputs,
                                     .input_count = c.input_count,
                                     .threads = 1};
  cleave_bisect_report_t report;
  unit_ok(cleave_rules_bisect(&list, c.graph, &options, &report, e));
  // Either Relu breaks the output alone: the smallest set is one of them. The one at the end makes 0.25.
  ck_assert_uint_eq(report.application_count, 2);
  ck_assert_uint_eq(report.culprits.count, 1);
  ck_assert(report.is_complete && report.tests >= 3);
  const cleave_plan_region_t *region = &report.plan->regions[report.culprits.items[0].index];
  ck_assert_str_eq(cleave_node_name(report.plan->graph, region->nodes[0]), "r1");
  ck_assert_double_eq_tol(report.value_found, 0.25, 1e-6);
  ck_assert_double_gt(report.value_all, 0.25);
  cleave_bisect_report_deinit(&report);
  options.threshold = 10.0;
  unit_ok(cleave_rules_bisect(&list, c.graph, &options, &report, e));
  ck_assert_uint_eq(report.culprits.count, 0);
  cleave_bisect_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

/* 0 where there is no /proc. */
static size_t resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages[2] = {0, 0};
  if (file == NULL) {
    return 0;
  }
  ck_assert_int_eq(fscanf(file, "%lu %lu", &pages[0], &pages[1]), 2);
  (void)fclose(file);
  return pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

UNIT_TEST(ten_thousand_rounds_of_load_run_and_unload_do_not_grow) {
  size_t before = 0;
  for (int round = 0; round < 10000; round++) {
    unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
    session_case_t c = relu_case("good");
    session_case_compile(&c, NULL);
    session_case_run(&c);
    ck_assert_float_eq_tol(session_case_value(&c, 0, 1), expf(2.0f), 1e-5f);
    session_case_deinit(&c);
    unit_ok(cleave_registry_unload(NULL, "good", e));
    before = round == 1000 ? resident_bytes() : before;
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ck_assert_uint_lt(resident_bytes(), before + (2 << 20));
#endif
}

UNIT_SUITE("library")
