// SPDX-License-Identifier: Apache-2.0
// Programs of backends/kernels against a copy of the same inputs and outputs: chains of simple operators over
// 16M floats, and rows. Medians, and the fastest of each; arguments: threads, runs, a part of
// the names of what is measured.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/execute/execute.h"
#include "program_read.h"
#include "system/threads.h"

typedef struct copy {
  float *to;
  const float *from;
} copy_t;

static void copy_part(void *context, int64_t begin, int64_t end) {
  const copy_t *copy = context;
  memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin) * sizeof *copy->to);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int compare(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

static const cleave_host_t host = {.size = sizeof(cleave_host_t), .parallel_for = cleave_parallel_for};

enum { MAX_RUNS = 101 };

static const char *wanted = "";

/* in0 is [rows, columns], in1 and in2 are [columns], in3 is as in0; the output is as in0. */
static void measure(const char *name, const char *text, int64_t rows, int64_t columns, int32_t threads,
                    int runs) {
  cleave_message_t message = {.text = ""};
  if (strstr(name, wanted) == NULL) {
    return;
  }
  kernel_program_t *program = NULL;
  kernel_plan_t *plan = NULL;
  if (kernel_program_read(text, strlen(text), &program, &message) != CLEAVE_OK ||
      kernel_plan_create(program, kernel_loops_choose(2), &plan, &message) != CLEAVE_OK) {
    printf("%s: %s\n", name, message.text);
    exit(1);
  }
  size_t count = (size_t)(rows * columns);
  int64_t dims[] = {rows, columns};
  float *memory[5];
  kernel_tensor_t inputs[4];
  int large = 0; /* inputs of the full size */
  for (int k = 0; k < 5; k++) {
    size_t elements = k == 1 || k == 2 ? (size_t)columns : count;
    memory[k] = aligned_alloc(64, (elements * sizeof(float) + 63) / 64 * 64);
    for (size_t e = 0; e < elements; e++) {
      memory[k][e] = (float)(e % 1000) * 0.001f + 0.5f;
    }
    if (k < 4) {
      bool is_row = k == 1 || k == 2;
      inputs[k] =
          (kernel_tensor_t){.data = memory[k], .rank = is_row ? 1 : 2, .dims = is_row ? dims + 1 : dims};
    }
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    large += program->inputs[k].rank == 2;
  }
  void *outputs[] = {memory[4]};
  kernel_call_t call = {
      .host = &host, .threads = threads, .inputs = inputs, .outputs = outputs, .dims = {rows, columns}};
  call.scratch = aligned_alloc(64, (kernel_scratch_bytes(plan, dims, threads) + 63) / 64 * 64);
  double times[MAX_RUNS];
  double copies[MAX_RUNS];
  copy_t copy = {.to = memory[4], .from = memory[0]};
  for (int k = -2; k < runs; k++) {
    double start = now();
    kernel_run(plan, &call);
    double middle = now();
    cleave_parallel_for(threads, (int64_t)count, 1 << 16, copy_part, &copy);
    double end = now();
    if (k >= 0) {
      times[k] = middle - start;
      copies[k] = end - middle;
    }
  }
  qsort(times, (size_t)runs, sizeof times[0], compare);
  qsort(copies, (size_t)runs, sizeof copies[0], compare);
  double time = times[runs / 2];
  /* A copy reads one tensor and writes one. */
  double bound = copies[runs / 2] * (large + 1) / 2;
  double fastest = copies[0] * (large + 1) / 2;
  printf("%-28s %6lld x %-8lld %9.3f ms  copy %9.3f ms  %5.2f   fastest %9.3f ms  copy %9.3f ms  %5.2f\n",
         name, (long long)rows, (long long)columns, time, bound, time / bound, times[0], fastest,
         times[0] / fastest);
  free(call.scratch);
  for (int k = 0; k < 5; k++) {
    free(memory[k]);
  }
  kernel_plan_destroy(plan);
  kernel_program_destroy(program);
}

static void measure_chain(int length, int32_t threads, int runs) {
  char text[4096];
  char name[32];
  int used = snprintf(text, sizeof text,
                      "kernel rank 2 reduced 0\nin0 f32 [0 1]\n%%0 = load in0\n%%1 = constant f32 1.001\n"
                      "%%2 = constant f32 0.25\n");
  for (int k = 0; k < length; k++) {
    used += snprintf(text + used, sizeof text - (size_t)used, "%%%d = ", k + 3);
    int from = k == 0 ? 0 : k + 2;
    switch (k % 4) {
      case 0: used += snprintf(text + used, sizeof text - (size_t)used, "Mul %%%d %%1\n", from); break;
      case 1: used += snprintf(text + used, sizeof text - (size_t)used, "Add %%%d %%2\n", from); break;
      case 2: used += snprintf(text + used, sizeof text - (size_t)used, "Max %%%d %%1\n", from); break;
      default: used += snprintf(text + used, sizeof text - (size_t)used, "Sub %%%d %%2\n", from); break;
    }
  }
  snprintf(text + used, sizeof text - (size_t)used, "out0 f32 = %%%d\n", length + 2);
  snprintf(name, sizeof name, "chain of %d", length);
  measure(name, text, 1, 1 << 24, threads, runs);
}

int main(int argc, char **argv) {
  int32_t threads = argc > 1 ? (int32_t)atoi(argv[1]) : 2;
  int runs = argc > 2 ? atoi(argv[2]) : 21;
  wanted = argc > 3 ? argv[3] : "";
  runs = runs < 1 || runs > MAX_RUNS ? 21 : runs;
  printf("%d threads, %s\n", (int)threads, kernel_loops_choose(2)->name);
  measure_chain(4, threads, runs);
  measure_chain(8, threads, runs);
  measure_chain(16, threads, runs);
  measure("exp", "kernel rank 2 reduced 0\nin0 f32 [0 1]\n%0 = load in0\n%1 = Exp %0\nout0 f32 = %1\n", 1,
          1 << 24, threads, runs);
  measure("tanh", "kernel rank 2 reduced 0\nin0 f32 [0 1]\n%0 = load in0\n%1 = Tanh %0\nout0 f32 = %1\n", 1,
          1 << 24, threads, runs);
  measure(
      "bias, gelu",
      "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "%3 = GeluErf %2\nout0 f32 = %3\n",
      4096, 768, threads, runs);
#define SOFTMAX                                                                                             \
  "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceMax %0\n%2 = Sub %0 %1\n%3 = Exp %2\n" \
  "%4 = ReduceSum %3\n%5 = Reciprocal %4\n%6 = Mul %3 %5\nout0 f32 = %6\n"
  measure("softmax", SOFTMAX, 4096, 768, threads, runs);
  measure("softmax", SOFTMAX, 9408, 49, threads, runs);
#define NORM(x)                                                                     \
  "%4 = ReduceMean " x "\n%5 = Sub " x                                              \
  " %4\n%6 = MeanSquare %5\n%7 = constant f32 1e-5\n%8 = Add %6 %7\n%9 = Sqrt %8\n" \
  "%10 = Reciprocal %9\n%11 = Mul %5 %10\n%12 = Mul %11 %1\n%13 = Add %12 %2\nout0 f32 = %13\n"
#define INPUTS "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [. 0]\nin2 f32 [. 0]\n"
#define LOADS "%0 = load in0\n%1 = load in1\n%2 = load in2\n"
  measure("layer norm", INPUTS LOADS "%3 = load in0\n" NORM("%0"), 4096, 768, threads, runs);
#define RESIDUAL_NORM                                                                                 \
  INPUTS                                                                                              \
  "in3 f32 [0 1]\n" LOADS                                                                             \
  "%3 = load in3\n%4 = Add %0 %3\n%5 = ReduceMean %4\n%6 = Sub %4 %5\n"                               \
  "%7 = MeanSquare %6\n%8 = constant f32 1e-5\n%9 = Add %7 %8\n%10 = Sqrt %9\n%11 = Reciprocal %10\n" \
  "%12 = Mul %6 %11\n%13 = Mul %12 %1\n%14 = Add %13 %2\nout0 f32 = %14\n"
  measure("residual, layer norm", RESIDUAL_NORM, 4096, 768, threads, runs);
  measure("residual, layer norm", RESIDUAL_NORM, 3136, 96, threads, runs);
  return 0;
}
