// SPDX-License-Identifier: Apache-2.0
// Algorithms of libraries by measurement, over stand-ins whose algorithms say what they take: which one is
// called, when nobody measures or asks again, and what happens where something fails.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/store/store.h"
#include "gpu_case.h"

/* Stand-ins, nothing kept on disk. */
static void begin(const char *times) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_CACHE", "", 1);
  setenv("CLEAVE_CUDA_TIMES", times, 1);
}

static session_case_t compile_case(session_case_t c, const char *tune) {
  const cleave_backend_option_t option = {.backend = "cuda", .key = "tune", .value = tune};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = gpu_case_compile_with(&c, false, tune == NULL ? NULL : &option, &error);
  ck_assert_msg(status == CLEAVE_OK, "%s", error.message);
  return c;
}

static long count_of(const char *key) {
  return strtol(gpu_case_ask(key), NULL, 10);
}

/* Runs, and calls algorithm `number` of this entry point, not another one of three. */
static void expect_algorithm(session_case_t *c, const char *name, int number) {
  char others[160];
  char own[80];
  snprintf(others, sizeof others, "%s.%d=14,%s.%d=14", name, (number + 1) % 3, name, (number + 2) % 3);
  snprintf(own, sizeof own, "%s.%d=14", name, number);
  gpu_case_fail(others);
  session_case_run(c);
  gpu_case_fail(own);
  (void)gpu_case_failed_run(c);
  gpu_case_fail(NULL);
}

static void expect_product(const char *times, const char *tune, int number) {
  begin(times);
  session_case_t c = compile_case(gpu_case_graph(), tune);
  expect_algorithm(&c, "cublasLtMatmul", number);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

/* ---- which ---- */

UNIT_TEST(the_fastest_product_is_taken) {
  expect_product("cublasLtMatmul=5/3/4", NULL, 1);
  ck_assert_int_eq(count_of("choices.timed"), 1);
}

UNIT_TEST(the_last_can_be_the_fastest) {
  expect_product("cublasLtMatmul=500/300/2", NULL, 2);
}

UNIT_TEST(short_calls_are_timed_in_graphs) {
  expect_product("cublasLtMatmul=0.005/0.004/0.003", NULL, 2);
}

UNIT_TEST(the_first_of_equals_is_taken) {
  expect_product("cublasLtMatmul=0.00402/0.005/0.004", NULL, 0);
}

UNIT_TEST(without_measuring_the_first_is_taken) {
  expect_product("cublasLtMatmul=5/3/4", "0", 0);
  ck_assert_int_eq(count_of("choices.timed"), 0);
}

UNIT_TEST(an_option_that_is_no_number_is_refused) {
  const cleave_backend_option_t option = {.backend = "cuda", .key = "tune", .value = "often"};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  begin("");
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile_with(&c, false, &option, &error), CLEAVE_OK);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  const char *note = cleave_session_note(c.session, 0);
  ck_assert_msg(strstr(note, "option 'tune': expected 0 or 1, found 'often'") != NULL, "%s", note);
  session_case_deinit(&c);
}

/* ---- convolutions ---- */

enum { X_COUNT = 2 * 3 * 5 * 5, Y_COUNT = 2 * 4 * 3 * 3 };
static float x_data[X_COUNT];
static float w_data[4 * 3 * 3 * 3];

static session_case_t convolution(void) {
  static const int64_t x_dims[4] = {2, 3, 5, 5};
  static const int64_t w_dims[4] = {4, 3, 3, 3};
  session_case_t c = session_case_create();
  for (int k = 0; k < X_COUNT; k++) {
    x_data[k] = (float)(k * 5 % 17 - 8) / 8.0f;
  }
  for (int k = 0; k < 4 * 3 * 3 * 3; k++) {
    w_data[k] = (float)(k * 7 % 11 - 5) / 8.0f;
  }
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 4, x_dims);
  cleave_value_t w = session_case_floats(&c, "w", 4, w_dims, w_data);
  cleave_value_t y = session_case_node(&c, "Conv", "conv", x, w, CLEAVE_VALUE_NONE);
  session_case_output(&c, y);
  session_case_infer(&c);
  session_case_partition(&c, "Conv", "cuda");
  session_case_feed(&c, 4, x_dims, x_data);
  return c;
}

static void expect_convolved(session_case_t *c) {
  session_case_run(c);
  for (int i = 0; i < Y_COUNT; i++) {
    int channel = i / 9 % 4;
    float sum = 0.0f;
    for (int k = 0; k < 27; k++) {
      int row = i / 3 % 3 + k / 3 % 3;
      int column = i % 3 + k % 3;
      sum += x_data[((i / 36 * 3 + k / 9) * 5 + row) * 5 + column] * w_data[channel * 27 + k];
    }
    ck_assert_float_eq_tol(session_case_value(c, 0, i), sum, 1e-4f);
  }
}

UNIT_TEST(the_fastest_convolution_is_taken) {
  begin("cudnnConvolutionForward=5/4/3");
  session_case_t c = compile_case(convolution(), NULL);
  expect_algorithm(&c, "cudnnConvolutionForward", 2);
  expect_convolved(&c);
  ck_assert_int_eq(count_of("choices.timed"), 1);
  session_case_deinit(&c);
}

UNIT_TEST(without_measuring_the_first_convolution_is_taken) {
  begin("cudnnConvolutionForward=5/4/3");
  session_case_t c = compile_case(convolution(), "0");
  expect_algorithm(&c, "cudnnConvolutionForward", 0);
  expect_convolved(&c);
  session_case_deinit(&c);
}

UNIT_TEST(a_convolution_that_does_not_run_is_left_out) {
  begin("cudnnConvolutionForward=5/4/3");
  gpu_case_fail("cudnnConvolutionForward.2=1,cudnnConvolutionForward.0=1");
  session_case_t c = compile_case(convolution(), NULL);
  expect_convolved(&c);
  session_case_deinit(&c);
}

UNIT_TEST(kernels_convolve_where_no_algorithm_runs) {
  begin("");
  gpu_case_fail("cudnnConvolutionForward=1");
  session_case_t c = compile_case(convolution(), NULL);
  expect_convolved(&c);
  session_case_deinit(&c);
}

/* ---- once ---- */

/* The backend fails where it asks for algorithms, and where it measures. */
static const char *const never_again =
    "cublasLtMatmulAlgoGetHeuristic=14,cudnnGetConvolutionForwardAlgorithm_v7=1,cuEventElapsedTime=1";

UNIT_TEST(a_second_program_neither_asks_nor_measures) {
  begin("cublasLtMatmul=5/3/4,cudnnConvolutionForward=5/4/3");
  session_case_t first[2] = {compile_case(gpu_case_graph(), NULL), compile_case(convolution(), NULL)};
  ck_assert_int_eq(count_of("choices.timed"), 2);
  gpu_case_fail(never_again);
  session_case_t second[2] = {compile_case(gpu_case_graph(), NULL), compile_case(convolution(), NULL)};
  expect_algorithm(&second[0], "cublasLtMatmul", 1);
  expect_algorithm(&second[1], "cudnnConvolutionForward", 2);
  ck_assert_int_eq(count_of("choices.timed"), 2);
  for (int k = 0; k < 2; k++) {
    session_case_deinit(&first[k]);
    session_case_deinit(&second[k]);
  }
}

UNIT_TEST(what_is_not_measured_is_kept_apart) {
  begin("cublasLtMatmul=5/3/4");
  session_case_t first = compile_case(gpu_case_graph(), "0");
  session_case_t measured = compile_case(gpu_case_graph(), "1");
  gpu_case_fail(never_again);
  session_case_t second = compile_case(gpu_case_graph(), "0");
  expect_algorithm(&first, "cublasLtMatmul", 0);
  expect_algorithm(&measured, "cublasLtMatmul", 1);
  expect_algorithm(&second, "cublasLtMatmul", 0);
  session_case_deinit(&first);
  session_case_deinit(&measured);
  session_case_deinit(&second);
}

static void *compile_in_thread(void *context) {
  session_case_t *c = context;
  *c = compile_case(*c, NULL);
  return NULL;
}

UNIT_TEST(threads_measure_once) {
  enum { THREADS = 4 };
  session_case_t cases[THREADS];
  pthread_t threads[THREADS];
  begin("cublasLtMatmul=5/3/4");
  for (int k = 0; k < THREADS; k++) {
    cases[k] = gpu_case_graph();
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, compile_in_thread, &cases[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
  ck_assert_int_eq(count_of("choices.timed"), 1);
  for (int k = 0; k < THREADS; k++) {
    expect_algorithm(&cases[k], "cublasLtMatmul", 1);
    session_case_deinit(&cases[k]);
  }
}

/* ---- on disk ---- */

typedef struct found {
  int timed;
  int from_disk;
} found_t;

/* Both cases in a new process; `fail` while they are compiled. */
static found_t run_with_cache(const char *folder, const char *fail) {
  int status = 0;
  (void)fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    begin("cublasLtMatmul=5/3/4,cudnnConvolutionForward=5/4/3");
    setenv("CLEAVE_CUDA_CACHE", folder, 1);
    gpu_case_fail(fail);
    session_case_t product = compile_case(gpu_case_graph(), NULL);
    session_case_t image = compile_case(convolution(), NULL);
    expect_algorithm(&product, "cublasLtMatmul", 1);
    expect_algorithm(&image, "cudnnConvolutionForward", 2);
    gpu_case_expect(&product);
    expect_convolved(&image);
    long found = count_of("choices.timed") * 8 + count_of("choices.disk");
    session_case_deinit(&product);
    session_case_deinit(&image);
    _exit((int)found);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  return (found_t){WEXITSTATUS(status) / 8, WEXITSTATUS(status) % 8};
}

static void expect_found(const char *folder, const char *fail, int timed, int from_disk) {
  found_t found = run_with_cache(folder, fail);
  ck_assert_int_eq(found.timed, timed);
  ck_assert_int_eq(found.from_disk, from_disk);
}

static void shell(const char *format, const char *folder) {
  char command[400];
  snprintf(command, sizeof command, format, folder);
  ck_assert_int_eq(system(command), 0);
}

UNIT_TEST(a_new_process_neither_asks_nor_measures) {
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  expect_found(folder, NULL, 2, 0);
  expect_found(folder, never_again, 0, 2);
  shell("test $(ls %s/*.choice | wc -l) = 2", folder);
  shell("rm -r %s", folder);
}

UNIT_TEST(damaged_files_are_measured_again) {
  static const char *const damages[] = {
      "for f in %s/*.choice; do truncate -s 60 $f; done",
      "for f in %s/*.choice; do truncate -s -1 $f; done",
      "for f in %s/*.choice; do : >$f; done",
      "for f in %s/*.choice; do printf x | dd of=$f bs=1 seek=70 conv=notrunc 2>/dev/null; done",
      "for f in %s/*.choice; do printf x | dd of=$f bs=1 seek=130 conv=notrunc 2>/dev/null; done",
      "cd %s && set -- *.choice && mv $1 a && mv $2 $1 && mv a $2"};
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  expect_found(folder, NULL, 2, 0);
  for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++) {
    shell(damages[k], folder);
    expect_found(folder, NULL, 2, 0);
    expect_found(folder, never_again, 0, 2);
  }
  shell("rm -r %s", folder);
}

UNIT_TEST(a_choice_that_its_library_refuses_is_measured_again) {
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  expect_found(folder, NULL, 2, 0);
  expect_found(folder, "cublasLtMatmulAlgoCheck=15", 1, 1);
  expect_found(folder, "cudnnSetConvolutionMathType:2=1", 1, 1);
  shell("rm -r %s", folder);
}

UNIT_TEST(another_driver_measures_again) {
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  expect_found(folder, NULL, 2, 0);
  setenv("CLEAVE_CUDA_DRIVER", "12080", 1);
  expect_found(folder, NULL, 2, 0);
  expect_found(folder, never_again, 0, 2);
  setenv("CLEAVE_CUDA_CAPABILITY", "80", 1);
  expect_found(folder, NULL, 2, 0);
  unsetenv("CLEAVE_CUDA_DRIVER");
  unsetenv("CLEAVE_CUDA_CAPABILITY");
  expect_found(folder, never_again, 0, 2);
  shell("rm -r %s", folder);
}

/* ---- what fails ---- */

/* Compiled while something fails, the product takes this algorithm; `timed` says whether it was measured. */
static void expect_under(const char *fail, int number, int timed) {
  begin("cublasLtMatmul=5/3/4");
  gpu_case_fail(fail);
  session_case_t c = compile_case(gpu_case_graph(), NULL);
  ck_assert_int_eq(count_of("choices.timed"), timed);
  expect_algorithm(&c, "cublasLtMatmul", number);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

UNIT_TEST(without_memory_the_first_is_taken_and_not_kept) {
  expect_under("cuMemAlloc_v2:1=2", 0, 0);
  session_case_t c = compile_case(gpu_case_graph(), NULL); /* now there is memory */
  ck_assert_int_eq(count_of("choices.timed"), 1);
  expect_algorithm(&c, "cublasLtMatmul", 1);
  session_case_deinit(&c);
}

UNIT_TEST(without_events_the_first_is_taken) {
  expect_under("cuEventCreate:2=2", 0, 0);
}

UNIT_TEST(without_a_stream_the_first_is_taken) {
  expect_under("cuStreamCreate:2=2", 0, 0);
}

UNIT_TEST(memory_that_cannot_be_zeroed_is_none) {
  expect_under("cuMemsetD8Async=1", 0, 0);
}

UNIT_TEST(a_product_that_does_not_run_is_left_out) {
  expect_under("cublasLtMatmul.1=15", 2, 1);
}

UNIT_TEST(a_first_product_that_does_not_run_is_left_out) {
  expect_under("cublasLtMatmul.0=15,cublasLtMatmul.1=15", 2, 1);
}

UNIT_TEST(kernels_multiply_where_no_algorithm_runs) {
  begin("");
  gpu_case_fail("cublasLtMatmul=15");
  session_case_t c = compile_case(gpu_case_graph(), NULL);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

UNIT_TEST(who_cannot_be_captured_is_left_out) {
  begin("cublasLtMatmul=0.005/0.003/0.004");
  gpu_case_fail("cublasLtMatmul.1:3=14"); /* the third call is the first one of the graph */
  session_case_t c = compile_case(gpu_case_graph(), NULL);
  expect_algorithm(&c, "cublasLtMatmul", 2);
  session_case_deinit(&c);
}

UNIT_TEST(without_graphs_calls_are_timed_one_by_one) {
  begin("cublasLtMatmul=0.005/0.003/0.004");
  gpu_case_fail("cuGraphInstantiateWithFlags=1");
  session_case_t c = compile_case(gpu_case_graph(), NULL);
  expect_algorithm(&c, "cublasLtMatmul", 1);
  session_case_deinit(&c);
}

/* ---- the table ---- */

UNIT_TEST(a_table_finds_what_it_holds) {
  enum { COUNT = 5000 };
  cuda_table_t table = {.buckets = NULL};
  cuda_entry_t *entries = calloc(COUNT, sizeof *entries);
  ck_assert_ptr_nonnull(entries);
  ck_assert_ptr_null(cuda_table_find(&table, (cuda_key_t){{0, 0}}));
  ck_assert_ptr_null(cuda_table_take(&table));
  for (int k = 0; k < COUNT; k++) {
    entries[k].key = k % 2 == 0 ? cuda_key_add((cuda_key_t){{0, 0}}, &k, sizeof k)
                                : (cuda_key_t){{1, (uint64_t)k}}; /* one bucket for many */
    ck_assert_ptr_null(cuda_table_find(&table, entries[k].key));
    ck_assert(cuda_table_add(&table, &entries[k]));
  }
  for (int k = 0; k < COUNT; k++) {
    ck_assert_ptr_eq(cuda_table_find(&table, entries[k].key), &entries[k]);
  }
  int taken = 0;
  while (cuda_table_take(&table) != NULL) {
    taken++;
  }
  ck_assert_int_eq(taken, COUNT);
  ck_assert_ptr_null(table.buckets);
  free(entries);
}

UNIT_SUITE("cuda choices")
