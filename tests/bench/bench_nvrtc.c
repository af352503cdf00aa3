// SPDX-License-Identifier: Apache-2.0
// What NVRTC takes for generated kernels, and what the cache on disk takes to give a cubin: medians of seven.
// It needs NVRTC (CUDA_PATH, or where the loader looks), and neither a GPU nor libcuda. Arguments: a part of
// the names of what is measured.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/compiler/compiler.h"
#include "kernels/cuda/cuda.h"
#include "kernels/execute/space.h"
#include "program_read.h"
#include "system/clock.h"

enum { RUNS = 7, MAX_TEXT = 8192, ELEMENTS = 1 << 22, ROW = 768, FIRST_WITH_CACHE = 128 };

static void need(cleave_status_t status, const cleave_message_t *message) {
  if (status != CLEAVE_OK) {
    fprintf(stderr, "%s\n", message->text);
    exit(EXIT_FAILURE);
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times) {
  qsort(times, RUNS, sizeof *times, by_size);
  return times[RUNS / 2];
}

/* The text of the kernel for tensors of 4M floats that are aligned. */
static char *text_of(const char *text) {
  static const int64_t dims[] = {ELEMENTS / ROW, ROW};
  const int64_t row[] = {ROW};
  cleave_message_t message = {.text = ""};
  kernel_program_t *program = NULL;
  kernel_cuda_t *kernel = NULL;
  kernel_cuda_launch_t launch;
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  void *outputs[1];
  int64_t space[CLEAVE_MAX_RANK];
  char *made = NULL;
  need(kernel_program_read(text, strlen(text), &program, &message), &message);
  for (uint32_t k = 0; k < program->input_count; k++) {
    bool is_row = program->inputs[k].rank == 1;
    inputs[k] = (kernel_tensor_t){.data = &launch,
                                  .rank = is_row ? 1 : 2,
                                  .dims = is_row ? row : dims}; /* never read: an aligned address */
  }
  outputs[0] = &launch;
  need(kernel_cuda_create(program, false, &kernel, &message), &message);
  need(kernel_program_space(program, inputs, space, &message), &message);
  const kernel_cuda_call_t call = {.inputs = inputs, .outputs = outputs, .dims = space};
  need(kernel_cuda_prepare(kernel, &call, &launch, &message), &message);
  need(kernel_cuda_text(kernel, &launch.variant, "bench_nvrtc", &made, &message), &message);
  kernel_cuda_destroy(kernel);
  kernel_program_destroy(program);
  return made;
}

/* A cubin, written once and read; milliseconds per read. */
static double read_back(const cuda_image_t *image) {
  char folder[] = "/tmp/bench_nvrtc.XXXXXX";
  char path[128];
  double times[RUNS];
  const cuda_key_t key = {{1, 2}};
  if (mkdtemp(folder) == NULL) {
    return -1;
  }
  cuda_store_write(folder, CUDA_STORE_CUBIN, key, *image);
  for (int k = 0; k < RUNS; k++) {
    cuda_image_t read = {NULL, 0};
    uint64_t begin = cleave_clock_now();
    bool is_there = cuda_store_read(folder, CUDA_STORE_CUBIN, key, &read);
    times[k] = is_there ? cleave_clock_ms(begin, cleave_clock_now()) : -1;
    free(read.bytes);
  }
  (void)snprintf(path, sizeof path, "%s/%016llx%016llx.cubin", folder, 1ull, 2ull);
  (void)unlink(path);
  (void)rmdir(folder);
  return median(times);
}

static void measure(cuda_state_t *state, const char *name, const char *wanted, const char *program) {
  static const char *const architectures[] = {"sm_80", "sm_90"};
  cleave_message_t message = {.text = ""};
  if (strstr(name, wanted) == NULL) {
    return;
  }
  char *text = text_of(program);
  int major = 0;
  int minor = 0;
  (void)state->libraries.nvrtc.version(&major, &minor);
  const char *const options[] = {"--std=c++17", "--no-cache"};
  const cuda_source_t source = {.text = text,
                                .entry = KERNEL_CUDA_ENTRY,
                                .options = options,
                                .option_count = major * 10 + minor >= FIRST_WITH_CACHE ? 2 : 1,
                                .nodes = name};
  printf("%-36s", name);
  for (int a = 0; a < 2; a++) {
    double times[RUNS];
    cuda_image_t image = {NULL, 0};
    for (int k = 0; k < RUNS; k++) {
      free(image.bytes);
      uint64_t begin = cleave_clock_now();
      need(cuda_nvrtc_compile(state, &source, architectures[a], false, &image, &message), &message);
      times[k] = cleave_clock_ms(begin, cleave_clock_now());
    }
    printf("  %s: first %6.1f ms, median %6.1f ms, from disk %.3f ms", architectures[a], times[0],
           median(times), read_back(&image));
    free(image.bytes);
  }
  printf("\n");
  free(text);
}

/* `length` operators; every `each`-th is a function, if that is not 0. */
static void measure_chain(cuda_state_t *state, const char *wanted, int length, int each) {
  static const char *const simple[] = {"Mul %%%d %%1\n", "Add %%%d %%2\n", "Max %%%d %%1\n",
                                       "Sub %%%d %%2\n"};
  static const char *const functions[] = {"Tanh %%%d\n", "Sigmoid %%%d\n", "Exp %%%d\n", "GeluErf %%%d\n"};
  char text[MAX_TEXT];
  char name[64];
  int used =
      snprintf(text, sizeof text,
               "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. 0]\n%%0 = load in0\n%%1 = load in1\n"
               "%%2 = constant f32 0.25\n");
  for (int k = 0; k < length; k++) {
    bool is_function = each > 0 && k % each == each - 1;
    used += snprintf(text + used, sizeof text - (size_t)used, "%%%d = ", k + 3);
    used += snprintf(text + used, sizeof text - (size_t)used,
                     is_function ? functions[k / each % 4] : simple[k % 4], k == 0 ? 0 : k + 2);
  }
  (void)snprintf(text + used, sizeof text - (size_t)used, "out0 f32 = %%%d\n", length + 2);
  (void)snprintf(name, sizeof name, "chain of %d%s", length, each > 0 ? ", half functions" : "");
  measure(state, name, wanted, text);
}

int main(int argc, char **argv) {
  static cuda_state_t state;
  static const cleave_host_t host = {.size = sizeof(cleave_host_t)};
  const char *wanted = argc > 1 ? argv[1] : "";
  state.host = &host;
  uint64_t begin = cleave_clock_now();
  if (!cuda_libraries_init(&state.libraries) || !cuda_library_open(&state.libraries, CUDA_LIBRARY_NVRTC)) {
    printf("skipped: %s\n", state.libraries.items[CUDA_LIBRARY_NVRTC].reason);
    return 77;
  }
  int major = 0;
  int minor = 0;
  (void)state.libraries.nvrtc.version(&major, &minor);
  printf("NVRTC %d.%d, opened in %.1f ms\n", major, minor, cleave_clock_ms(begin, cleave_clock_now()));
  measure_chain(&state, wanted, 1, 0);
  measure_chain(&state, wanted, 4, 0);
  measure_chain(&state, wanted, 8, 0);
  measure_chain(&state, wanted, 8, 2);
  measure_chain(&state, wanted, 32, 0);
  measure_chain(&state, wanted, 32, 2);
  measure(
      &state, "residual, layer norm", wanted,
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f32 [. 0]\n%0 = load in0\n%1 = load in1\n"
      "%2 = load in2\n%3 = Add %0 %1\n%4 = ReduceMean %3\n%5 = Sub %3 %4\n%6 = MeanSquare %5\n"
      "%7 = constant f32 1e-5\n%8 = Add %6 %7\n%9 = Sqrt %8\n%10 = Div %5 %9\n%11 = Mul %10 %2\n"
      "out0 f32 = %11\n");
  cuda_libraries_deinit(&state.libraries);
  return EXIT_SUCCESS;
}
