// SPDX-License-Identifier: Apache-2.0
// Attributes of RNN, GRU and LSTM, and the numeric code (recurrent.inc) for float and double. Sums may be
// fused multiply-adds: this file is compiled with -ffp-contract=fast, and its loops for several instruction
// sets.
#include "cpu/recurrent/recurrent.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && __GNUC__ >= 12 && \
    !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&   \
    !defined(__SANITIZE_THREAD__)
#define RECURRENT_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
// For the loops that only processors with AVX-512 run.
#define RECURRENT_WIDE __attribute__((target("arch=x86-64-v4,prefer-vector-width=512")))
#else
#define RECURRENT_VECTOR
#endif

// Part of the function that it stands in, so that it is compiled for the same instruction sets.
#define RECURRENT_INLINE static inline __attribute__((always_inline))

#if defined(__GNUC__) && !defined(__clang__)
#define RECURRENT_PRAGMA(text) _Pragma(#text)
#define RECURRENT_UNROLL(count) RECURRENT_PRAGMA(GCC unroll count)
#else
#define RECURRENT_UNROLL(count)
#endif

enum {
  MAX_GATES = 4,
  NARROW_ROWS = 6,        // rows of a product that are in registers of 32 bytes at the same time
  WIDE_ROWS = 8,          // the same, in registers of 64 bytes
  AHEAD = 16,             // rows of a panel, 64 bytes each, between what is read and what is prefetched
  CHUNK_ROWS = 96,        // rows of X that one item of work multiplies
  MIN_PRODUCTS = 1 << 15  // multiply-adds that are worth a thread
};

static const struct {
  const char *name;
  bool has_alpha;
  bool has_beta;
  double alpha;
  double beta;
} functions[CPU_RECURRENT_FUNCTION_COUNT] = {
    [CPU_RECURRENT_TANH] = {"tanh", false, false, 0, 0},
    [CPU_RECURRENT_SIGMOID] = {"sigmoid", false, false, 0, 0},
    [CPU_RECURRENT_RELU] = {"relu", false, false, 0, 0},
    [CPU_RECURRENT_AFFINE] = {"affine", true, true, 1, 0},
    [CPU_RECURRENT_LEAKY_RELU] = {"leakyrelu", true, false, 0.01, 0},
    [CPU_RECURRENT_THRESHOLDED_RELU] = {"thresholdedrelu", true, false, 1, 0},
    [CPU_RECURRENT_SCALED_TANH] = {"scaledtanh", true, true, 1, 1},
    [CPU_RECURRENT_HARD_SIGMOID] = {"hardsigmoid", true, true, 0.2, 0.5},
    [CPU_RECURRENT_ELU] = {"elu", true, false, 1, 0},
    [CPU_RECURRENT_SOFTSIGN] = {"softsign", false, false, 0, 0},
    [CPU_RECURRENT_SOFTPLUS] = {"softplus", false, false, 0, 0},
};

static bool same_name(const char *name, const char *lower) {
  while (*name != '\0' && tolower((unsigned char)*name) == *lower) {
    name++;
    lower++;
  }
  return *name == *lower;
}

// Activations are f, g, h per direction. Scales are taken in order, by the functions that have them.
static cleave_status_t read_activations(const cleave_node_view_t *node, cpu_recurrent_t *out,
                                        cleave_message_t *message) {
  static const cpu_recurrent_function_t defaults[][3] = {
      [CPU_RNN] = {CPU_RECURRENT_TANH, CPU_RECURRENT_TANH, CPU_RECURRENT_TANH},
      [CPU_GRU] = {CPU_RECURRENT_SIGMOID, CPU_RECURRENT_TANH, CPU_RECURRENT_TANH},
      [CPU_LSTM] = {CPU_RECURRENT_SIGMOID, CPU_RECURRENT_TANH, CPU_RECURRENT_TANH},
  };
  static const uint32_t per_direction[] = {[CPU_RNN] = 1, [CPU_GRU] = 2, [CPU_LSTM] = 3};
  const cleave_attribute_view_t *names = cleave_view_attribute(node, "activations");
  const cleave_attribute_view_t *alphas = cleave_view_attribute(node, "activation_alpha");
  const cleave_attribute_view_t *betas = cleave_view_attribute(node, "activation_beta");
  uint32_t given = names != NULL && names->kind == CLEAVE_ATTRIBUTE_STRINGS ? names->count : 0;
  uint32_t wanted = per_direction[out->kind];
  if (given != 0 && given != wanted * (uint32_t)out->directions) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%u activation%s, expected %u", given,
                       KERNEL_PLURAL(given), wanted * (uint32_t)out->directions);
  }
  uint32_t next_alpha = 0;
  uint32_t next_beta = 0;
  for (uint32_t k = 0; k < wanted * (uint32_t)out->directions; k++) {
    cpu_recurrent_activation_t *activation = &out->activations[k / wanted][k % wanted];
    int function = (int)defaults[out->kind][k % wanted];
    if (given != 0) {
      function = 0;
      while (function < CPU_RECURRENT_FUNCTION_COUNT &&
             !same_name(names->strings[k], functions[function].name)) {
        function++;
      }
      if (function == CPU_RECURRENT_FUNCTION_COUNT) {
        return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "activation '%.32s' is unknown",
                           names->strings[k]);
      }
    }
    activation->function = (cpu_recurrent_function_t)function;
    activation->alpha = functions[function].alpha;
    activation->beta = functions[function].beta;
    if (functions[function].has_alpha && alphas != NULL && alphas->kind == CLEAVE_ATTRIBUTE_FLOATS &&
        next_alpha < alphas->count) {
      activation->alpha = (double)alphas->floats[next_alpha++];
    }
    if (functions[function].has_beta && betas != NULL && betas->kind == CLEAVE_ATTRIBUTE_FLOATS &&
        next_beta < betas->count) {
      activation->beta = (double)betas->floats[next_beta++];
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_recurrent_read(const cleave_node_view_t *node, cpu_recurrent_t *out,
                                   cleave_message_t *message) {
  static const int64_t gates[] = {[CPU_RNN] = 1, [CPU_GRU] = 3, [CPU_LSTM] = 4};
  const char *direction = cleave_view_string(node, "direction", "forward");
  if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 &&
      strcmp(direction, "bidirectional") != 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "direction '%.32s' is unknown", direction);
  }
  *out = (cpu_recurrent_t){.kind = strcmp(node->op, "LSTM") == 0  ? CPU_LSTM
                                   : strcmp(node->op, "GRU") == 0 ? CPU_GRU
                                                                  : CPU_RNN};
  out->gates = gates[out->kind];
  out->directions = direction[0] == 'b' ? 2 : 1;
  out->reverse = direction[0] == 'r';
  out->batch_first = cleave_view_int(node, "layout", 0) != 0;
  out->linear_before_reset = cleave_view_int(node, "linear_before_reset", 0) != 0;
  out->input_forget = cleave_view_int(node, "input_forget", 0) != 0;
  double clip = cleave_view_float(node, "clip", 0);
  out->clip = clip > 0 ? clip : INFINITY;
  return read_activations(node, out, message);
}

cleave_status_t cpu_recurrent_measure(const cpu_recurrent_t *recurrent, const cleave_region_view_t *region,
                                      const cleave_node_view_t *node, cpu_recurrent_sizes_t *out,
                                      cleave_message_t *message) {
  enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, INPUTS };
  const cleave_value_view_t *x = cleave_view_input(region, node, X);
  const cleave_value_view_t *w = cleave_view_input(region, node, W);
  const cleave_value_view_t *r = cleave_view_input(region, node, R);
  const char *name = node->name == NULL ? "" : node->name;
  if (x == NULL || w == NULL || r == NULL || x->tensor.rank != 3 || w->tensor.rank != 3 ||
      r->tensor.rank != 3 || x->tensor.dims[2] != w->tensor.dims[2]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s '%.100s': the shapes of X, W and R do not fit",
                       node->op, name);
  }
  int32_t time = recurrent->batch_first ? 1 : 0;
  *out = (cpu_recurrent_sizes_t){.steps = x->tensor.dims[time],
                                 .batch = x->tensor.dims[1 - time],
                                 .input = x->tensor.dims[2],
                                 .hidden = r->tensor.dims[2]};
  double hidden = (double)out->hidden;
  double rows = (double)recurrent->directions * (double)recurrent->gates * hidden;
  double states = (double)recurrent->directions * hidden * (double)out->batch;
  const double counts[] = {[X] = (double)out->steps * (double)out->batch * (double)out->input,
                           [W] = rows * (double)out->input,
                           [R] = rows * hidden,
                           [B] = 2 * rows,
                           [LENGTHS] = (double)out->batch,
                           [INITIAL_H] = states,
                           [INITIAL_C] = states,
                           [P] = 3 * (double)recurrent->directions * hidden,
                           [INPUTS] = states * (double)out->steps, /* Y, Y_h, Y_c */
                           states,
                           states};
  for (uint32_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    bool is_input = k < INPUTS;
    uint32_t place = is_input ? k : k - INPUTS;
    const cleave_value_view_t *value =
        is_input ? cleave_view_input(region, node, place) : cleave_view_output(region, node, place);
    if (value != NULL && (double)cleave_view_element_count(&value->tensor) != counts[k]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s '%.100s': %s %u has %lld element%s, expected %.0f",
                         node->op, name, is_input ? "input" : "output", (unsigned)place,
                         (long long)cleave_view_element_count(&value->tensor),
                         KERNEL_PLURAL(cleave_view_element_count(&value->tensor)), counts[k]);
    }
  }
  return CLEAVE_OK;
}

#define TANH PICK(cpu_tanhf, tanh)
#define SIGMOID(x) PICK(cpu_sigmoidf(x), (1 / (1 + exp(-(x)))))
#define FOR_REALS "cpu/recurrent/recurrent.inc"
#include "cpu/common/for_reals.inc"
