// SPDX-License-Identifier: Apache-2.0
// Programs of backends/kernels against a copy of the same inputs and outputs: chains of simple operators over
// 16M floats, and rows. Medians, and the fastest of each; arguments: threads, runs, a part of
// the names of what is measured ("joined": loads of the parts of a Concat, over the Concat and the kernel).
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

enum { MAX_RUNS = 101, MAX_PARTS = 8, GRAIN = 1 << 16 };

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

/* ---- loads of several inputs ---- */

/* A Concat: [rows, run] of each part to [rows, parts * run]. */
typedef struct join_copy {
  float *to;
  const float *from[MAX_PARTS];
  int64_t parts;
  int64_t run;
} join_copy_t;

static void copy_runs(void *context, int64_t begin, int64_t end) {
  const join_copy_t *copy = context;
  for (int64_t k = begin; k < end; k++) {
    int64_t row = k / copy->parts;
    memcpy(copy->to + k * copy->run, copy->from[k % copy->parts] + row * copy->run,
           (size_t)copy->run * sizeof(float));
  }
}

typedef struct prepared {
  kernel_program_t *program;
  kernel_plan_t *plan;
  kernel_call_t call;
} prepared_t;

static prepared_t prepare(const char *inputs, const char *load, const char *rest,
                          const kernel_tensor_t *tensors, void *const *outputs, int32_t threads) {
  char text[2048];
  cleave_message_t message = {.text = ""};
  prepared_t self = {.call = {.host = &host, .threads = threads, .inputs = tensors, .outputs = outputs}};
  snprintf(text, sizeof text, "%s%%0 = load %s\n%s", inputs, load, rest);
  if (kernel_program_read(text, strlen(text), &self.program, &message) != CLEAVE_OK ||
      kernel_plan_create(self.program, kernel_loops_choose(2), &self.plan, &message) != CLEAVE_OK ||
      kernel_space(self.plan, tensors, self.call.dims, &message) != CLEAVE_OK) {
    printf("%s\n%s\n", message.text, text);
    exit(1);
  }
  size_t bytes = kernel_scratch_bytes(self.plan, self.call.dims, threads);
  self.call.scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
  return self;
}

static void release(prepared_t *self) {
  free(self->call.scratch);
  kernel_plan_destroy(self->plan);
  kernel_program_destroy(self->program);
}

/* A kernel that loads the parts of a Concat where they lie, over the Concat as a copy and then the kernel. */
static void measure_join(const char *name, int32_t reduced, const char *rest, int64_t elements, int64_t parts,
                         int64_t run, int32_t threads, int runs) {
  char head[64];
  char inputs[512];
  char load[128] = "";
  int64_t rows = elements / (parts * run);
  int64_t columns = parts * run;
  if (strstr(name, wanted) == NULL) {
    return;
  }
  const int64_t own[] = {rows, run};
  const int64_t whole[] = {rows, columns};
  size_t count = (size_t)(rows * columns);
  join_copy_t copy = {.parts = parts, .run = run, .to = aligned_alloc(64, count * sizeof(float))};
  float *result = aligned_alloc(64, count * sizeof(float));
  float *row = aligned_alloc(64, ((size_t)columns * sizeof(float) + 63) / 64 * 64);
  kernel_tensor_t tensors[MAX_PARTS + 1];
  void *outputs[] = {result};
  int used = 0;
  for (int64_t k = 0; k < columns; k++) {
    row[k] = 1.0f + (float)k / (float)columns;
  }
  snprintf(head, sizeof head, "kernel rank 2 reduced %d\nin0 f32 [. 0]\n", (int)reduced);
  used = snprintf(inputs, sizeof inputs, "%s", head);
  tensors[0] = (kernel_tensor_t){.data = row, .rank = 1, .dims = &whole[1]};
  for (int64_t p = 0; p < parts; p++) {
    float *data = aligned_alloc(64, count / (size_t)parts * sizeof(float));
    for (size_t k = 0; k < count / (size_t)parts; k++) {
      data[k] = (float)(k % 1000) * 0.001f;
    }
    copy.from[p] = data;
    tensors[p + 1] = (kernel_tensor_t){.data = data, .rank = 2, .dims = own};
    used += snprintf(inputs + used, sizeof inputs - (size_t)used, "in%d f32 [0 1]\n", (int)p + 1);
    snprintf(load + strlen(load), sizeof load - strlen(load), "in%d ", (int)p + 1);
  }
  snprintf(load + strlen(load), sizeof load - strlen(load), "along 1");
  const kernel_tensor_t copied[] = {tensors[0], {.data = copy.to, .rank = 2, .dims = whole}};
  prepared_t joined = prepare(inputs, load, rest, tensors, outputs, threads);
  snprintf(head + strlen(head), sizeof head - strlen(head), "in1 f32 [0 1]\n");
  prepared_t plain = prepare(head, "in1", rest, copied, outputs, threads);
  double times[2][MAX_RUNS];
  for (int k = -2; k < runs; k++) {
    double start = now();
    kernel_run(joined.plan, &joined.call);
    double middle = now();
    cleave_parallel_for(threads, rows * parts, run < GRAIN ? GRAIN / run : 1, copy_runs, &copy);
    kernel_run(plain.plan, &plain.call);
    if (k >= 0) {
      times[0][k] = middle - start;
      times[1][k] = now() - middle;
    }
  }
  for (int k = 0; k < 2; k++) {
    qsort(times[k], (size_t)runs, sizeof times[k][0], compare);
  }
  printf("%-16s %9lld elements, %lld parts of %7lld: joined %9.3f ms  copied %9.3f ms  %5.2f\n", name,
         (long long)count, (long long)parts, (long long)run, times[0][runs / 2], times[1][runs / 2],
         times[0][runs / 2] / times[1][runs / 2]);
  release(&joined);
  release(&plain);
  for (int64_t p = 0; p < parts; p++) {
    free((void *)(uintptr_t)copy.from[p]);
  }
  free(copy.to);
  free(result);
  free(row);
}

static void measure_joins(int32_t threads, int runs) {
  static const char *const relu = "%1 = load in0\n%2 = Mul %0 %1\n%3 = Relu %2\nout0 f32 = %3\n";
  static const char *const norm =
      "%1 = load in0\n%2 = ReduceMean %0\n%3 = Sub %0 %2\n%4 = MeanSquare %3\n%5 = Sqrt %4\n%6 = Reciprocal "
      "%5\n%7 = Mul %3 %6\n%8 = Mul %7 %1\nout0 f32 = %8\n";
  static const int64_t lengths[] = {4, 8, 16, 32, 64, 128, 512, 3136, 50176};
  for (int64_t elements = 1 << 20; elements <= 1 << 24; elements *= 16) {
    for (int64_t parts = 2; parts <= 4; parts += 2) {
      for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        measure_join("joined mul, relu", 0, relu, elements, parts, lengths[k], threads, runs);
      }
    }
  }
  measure_join("joined norm", 1, norm, 1 << 20, 2, 32, threads, runs);
  measure_join("joined norm", 1, norm, 1 << 20, 2, 384, threads, runs);
  measure_join("joined norm", 1, norm, 1 << 22, 2, 4096, threads, runs);
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
  measure_joins(threads, runs);
  return 0;
}
