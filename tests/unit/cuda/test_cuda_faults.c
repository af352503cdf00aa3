// SPDX-License-Identifier: Apache-2.0
// What can go wrong on a GPU, on demand: libraries that are missing, an old driver, full memory, launches
// that fail, a device that is lost. An error is one line that names what failed; with a fallback, cpu
// computes the same.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_case.h"

static void expect_text(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "expected '%s' in '%s'", part, text);
}

static void link_into(const char *folder, const char *name) {
  char from[512];
  char to[512];
  snprintf(from, sizeof from, "%s/tests/cuda/%s", CLEAVE_BINARY_DIR, name);
  snprintf(to, sizeof to, "%s/%s", folder, name);
  ck_assert_int_eq(symlink(from, to), 0);
}

/* ---- the backend does not start ---- */

UNIT_TEST(a_missing_driver_is_named) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_PATH", "/nowhere", 1);
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "libcuda was not found");
  expect_text(error.message, "; also missing: libnvrtc, libcublasLt, libcudnn");
}

UNIT_TEST(a_missing_compiler_is_named) {
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  link_into(folder, "libcuda.so.1");
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_PATH", folder, 1);
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "libnvrtc was not found");
  expect_text(error.message, "; also missing: libcublasLt, libcudnn");
}

UNIT_TEST(an_old_driver_is_refused) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_DRIVER", "11040", 1);
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "the driver is of CUDA 11.4, expected 11.8 or newer");
}

UNIT_TEST(a_machine_without_devices_is_refused) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_DEVICES", "0", 1);
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "the driver finds no device");
}

UNIT_TEST(old_devices_are_refused) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_CAPABILITY", "61", 1);
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "no device has compute capability 7.0");
}

UNIT_TEST(a_driver_that_does_not_start_says_why) {
  gpu_case_stand_ins("cuInit=3");
  cleave_error_t error = gpu_case_refusal();
  expect_text(error.message, "cannot start the driver");
}

UNIT_TEST(a_device_that_the_compiler_does_not_know_is_refused) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_CAPABILITY", "72", 1);
  session_case_t c = gpu_case_graph();
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  ck_assert_uint_gt(cleave_session_note_count(c.session), 0);
  expect_text(cleave_session_note(c.session, 0), "compute capability 7.5 and newer, the device has 7.2");
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

/* ---- parts are missing ---- */

UNIT_TEST(kernels_take_over_from_missing_libraries) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_PATH", CLEAVE_BINARY_DIR "/tests/cuda/alone", 1);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  gpu_case_expect(&c);
  expect_text(gpu_case_ask("libcublasLt"), "missing: libcublasLt was not found");
  expect_text(gpu_case_ask("libcudnn"), "missing: libcudnn was not found");
  session_case_deinit(&c);
}

UNIT_TEST(kernels_take_over_from_a_library_without_algorithm) {
  gpu_case_stand_ins("cublasLtMatmulAlgoGetHeuristic=15");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

UNIT_TEST(a_kernel_that_does_not_compile_leaves_its_nodes_to_cpu) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_NVRTC_FAIL", "compile", 1);
  setenv("CLEAVE_CUDA_CACHE", "", 1);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  ck_assert_uint_gt(cleave_session_note_count(c.session), 0);
  expect_text(cleave_session_note(c.session, 0), "NVRTC does not compile a kernel");
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

/* ---- memory ---- */

UNIT_TEST(a_full_device_is_an_error_or_cpu_takes_over) {
  gpu_case_stand_ins("cuMemAlloc_v2=2");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_ERROR_OUT_OF_MEMORY);
  expect_text(error.message, "device 0 is full");
  ck_assert_int_eq(gpu_case_compile(&c, true, NULL, &error), CLEAVE_OK);
  ck_assert_uint_gt(cleave_session_note_count(c.session), 0);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

UNIT_TEST(copies_do_without_pinned_memory) {
  gpu_case_stand_ins("cuMemHostAlloc=2");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

/* ---- runs ---- */

static void fail_in_run(const char *fail, const char *part) {
  gpu_case_stand_ins(NULL);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  gpu_case_fail(fail);
  error = gpu_case_failed_run(&c);
  expect_text(error.message, part);
  ck_assert_ptr_null(strchr(error.message, '\n'));
  session_case_deinit(&c);
}

UNIT_TEST(a_launch_that_fails_is_an_error) {
  fail_in_run("cuLaunchKernel=1,cuGraphLaunch=1", "cannot launch a kernel: invalid argument");
}

UNIT_TEST(a_product_that_fails_is_an_error) {
  fail_in_run("cublasLtMatmul=14", "cuBLASLt cannot multiply: internal error");
}

UNIT_TEST(a_copy_that_fails_is_an_error) {
  fail_in_run("cuMemcpyHtoDAsync_v2=1", "cannot copy to the device");
}

UNIT_TEST(a_device_that_is_lost_is_an_error_in_this_run_and_later) {
  gpu_case_stand_ins(NULL);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  gpu_case_fail("late:1=700");
  error = gpu_case_failed_run(&c);
  expect_text(error.message, "an illegal memory access was encountered");
  error = gpu_case_failed_run(&c);
  expect_text(error.message, "an illegal memory access was encountered");
  session_case_deinit(&c);
}

UNIT_TEST(cpu_takes_over_from_a_launch_that_fails) {
  gpu_case_stand_ins(NULL);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, true, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  gpu_case_fail("cuLaunchKernel=1,cuGraphLaunch=1");
  gpu_case_expect(&c);
  ck_assert_uint_gt(cleave_session_note_count(c.session), 0);
  session_case_deinit(&c);
}

/* ---- graphs, devices ---- */

UNIT_TEST(the_second_run_is_a_graph) {
  gpu_case_stand_ins(NULL);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  gpu_case_expect(&c);
  gpu_case_expect(&c);
  gpu_case_fail("cuLaunchKernel=701,cublasLtMatmul=14"); /* it is not called any more */
  gpu_case_expect(&c);
  gpu_case_expect(&c);
  session_case_deinit(&c);
}

UNIT_TEST(work_that_cannot_be_captured_is_launched) {
  gpu_case_stand_ins("cuGraphInstantiateWithFlags=1");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t c = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
  for (int k = 0; k < 4; k++) {
    gpu_case_expect(&c);
  }
  session_case_deinit(&c);
}

UNIT_TEST(a_second_device_has_memory_and_kernels_of_its_own) {
  gpu_case_stand_ins(NULL);
  setenv("CLEAVE_CUDA_DEVICES", "2", 1);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  session_case_t first = gpu_case_graph();
  session_case_t second = gpu_case_graph();
  ck_assert_int_eq(gpu_case_compile(&first, false, "0", &error), CLEAVE_OK);
  ck_assert_int_eq(gpu_case_compile(&second, false, "1", &error), CLEAVE_OK);
  for (int k = 0; k < 3; k++) {
    gpu_case_expect(&first);
    gpu_case_expect(&second);
  }
  session_case_deinit(&first);
  session_case_deinit(&second);
}

/* ---- the cache on disk ---- */

static long count_of(const char *key) {
  return strtol(gpu_case_ask(key), NULL, 10);
}

enum { COMPILED = 1, FROM_DISK = 2 };

/* The backend starts once per process: where its kernels came from, in a new one. */
static int run_with_cache(const char *folder) {
  int status = 0;
  (void)fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    gpu_case_stand_ins(NULL);
    setenv("CLEAVE_CUDA_CACHE", folder, 1);
    cleave_error_t error = CLEAVE_ERROR_INIT;
    session_case_t c = gpu_case_graph();
    ck_assert_int_eq(gpu_case_compile(&c, false, NULL, &error), CLEAVE_OK);
    gpu_case_expect(&c);
    int found =
        (count_of("kernels.compiled") > 0 ? COMPILED : 0) | (count_of("kernels.disk") > 0 ? FROM_DISK : 0);
    session_case_deinit(&c);
    _exit(found);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void change_files(const char *folder, const char *how) {
  char command[256];
  snprintf(command, sizeof command, "for f in %s/*.cubin; do %s; done", folder, how);
  ck_assert_int_eq(system(command), 0);
}

UNIT_TEST(kernels_come_from_disk_and_damaged_ones_are_compiled_again) {
  static const char *const damages[] = {"truncate -s 100 $f", "truncate -s -1 $f", ": >$f",
                                        "printf x | dd of=$f bs=1 seek=200 conv=notrunc 2>/dev/null",
                                        "printf x | dd of=$f bs=1 seek=3 conv=notrunc 2>/dev/null"};
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(run_with_cache(folder), COMPILED);
  ck_assert_int_eq(run_with_cache(folder), FROM_DISK);
  for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++) {
    change_files(folder, damages[k]);
    ck_assert_int_eq(run_with_cache(folder), COMPILED);
    ck_assert_int_eq(run_with_cache(folder), FROM_DISK);
  }
  change_files(folder, "rm $f");
  rmdir(folder);
}

UNIT_TEST(a_folder_that_others_may_write_to_is_not_used) {
  char folder[] = "/tmp/cleave_gpu_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(chmod(folder, 0777), 0);
  ck_assert_int_eq(run_with_cache(folder), COMPILED);
  ck_assert_int_eq(run_with_cache(folder), COMPILED);
  ck_assert_int_eq(rmdir(folder), 0);
}

UNIT_SUITE("cuda faults")
