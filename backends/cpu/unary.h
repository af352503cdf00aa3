/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators of one float input share: a list of operators expands into one float and one double loop
 * each, a table, and kernel entries. Float16 and bfloat16 go through the float loop in blocks. A list has
 * entries X(Name, float expression of x, double expression of x, cost, name and default of two attributes)
 * The expressions may use `alpha` and `beta`, the values of the attributes. Attribute name "" is none.
 */
#ifndef CLEAVE_CPU_UNARY_H
#define CLEAVE_CPU_UNARY_H

#include "vector_math.h"

typedef void (*cpu_unary_f32_t)(const float *x, float *y, int64_t count, float alpha, float beta);
typedef void (*cpu_unary_f64_t)(const double *x, double *y, int64_t count, double alpha, double beta);

typedef struct cpu_unary_entry {
  const char *op;
  cpu_unary_f32_t f32;
  cpu_unary_f64_t f64;
  int64_t cost; /* as for cpu_loop_run */
  const char *alpha_name;
  double alpha;
  const char *beta_name;
  double beta;
} cpu_unary_entry_t;

typedef struct cpu_unary_state {
  const cpu_unary_entry_t *entry;
  double alpha;
  double beta;
} cpu_unary_state_t;

/* Finds the entry of the node's operator (or `variant`, where not NULL) and reads the attributes. */
CLEAVE_MUST_USE cleave_status_t cpu_unary_prepare(cpu_prepare_t *prepare, cpu_unary_state_t *state,
                                                  const cpu_unary_entry_t *entries, size_t count,
                                                  const char *variant, cleave_message_t *message);

CLEAVE_MUST_USE cleave_status_t cpu_unary_run(const cpu_call_t *call, cleave_message_t *message);

#define CPU_UNARY_LOOPS(name, f32_expression, f64_expression, cost, ...)                                   \
  CPU_VECTOR static void name##_f32(const float *in, float *out, int64_t count, float alpha, float beta) { \
    (void)alpha;                                                                                           \
    (void)beta;                                                                                            \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      float x = in[k];                                                                                     \
      out[k] = (f32_expression);                                                                           \
    }                                                                                                      \
  }                                                                                                        \
  static void name##_f64(const double *in, double *out, int64_t count, double alpha, double beta) {        \
    (void)alpha;                                                                                           \
    (void)beta;                                                                                            \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      double x = in[k];                                                                                    \
      out[k] = (f64_expression);                                                                           \
    }                                                                                                      \
  }

#define CPU_UNARY_ENTRY(name, f32_expression, f64_expression, cost, ...) \
  {#name, name##_f32, name##_f64, cost, __VA_ARGS__},

#define CPU_UNARY_KERNEL(name, f32_expression, f64_expression, cost, ...) \
  {.op = #name,                                                           \
   .state_size = sizeof(cpu_unary_state_t),                               \
   .prepare = prepare_unary,                                              \
   .run = cpu_unary_run,                                                  \
   .inplace = 1,                                                          \
   .required_inputs = 1},

#endif /* CLEAVE_CPU_UNARY_H */
