// SPDX-License-Identifier: Apache-2.0
// RandomNormal, RandomUniform, their Like forms and Bernoulli: the numbers that `cpu` draws.
#include <math.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256 };

static void write_defines(cuda_writer_t *writer, const cleave_node_view_t *node, cleave_dtype_t dtype,
                          int mode) {
  double seed = cleave_view_float(node, "seed", 0.0);
  uint64_t bits = 0;
  memcpy(&bits, &seed, sizeof bits);
  cuda_write(writer, "typedef %s element;\n#define narrow(x) %s\n#define MODE %d\n#define SEED %lluull\n",
             cuda_type(dtype),
             dtype == CLEAVE_DTYPE_F16    ? "double_to_half(x)"
             : dtype == CLEAVE_DTYPE_BF16 ? "double_to_bfloat(x)"
                                          : "(element)(x)",
             mode, (unsigned long long)bits);
  cuda_write(writer, "#define FIRST (%.17g)\n#define SECOND (%.17g)\n",
             cleave_view_float(node, mode == 1 ? "mean" : "low", 0.0),
             cleave_view_float(node, mode == 1 ? "scale" : "high", 1.0));
}

static cleave_status_t emit_random(cuda_plan_t *plan, const cleave_node_view_t *node, int mode) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  cuda_writer_t defines = {0};
  write_defines(&defines, node, y->dtype, mode);
  cuda_kernel_call_t call = {.text = "random",
                             .label = node->op,
                             .threads = cleave_view_element_count(y),
                             .number_count = 1,
                             .block = BLOCK};
  if (mode == 2) {
    cuda_write(&defines, "typedef %s probability;\n#define widen_probability(x) (double)%s(x)\n",
               cuda_type(x->dtype),
               x->dtype == CLEAVE_DTYPE_F16    ? "half_to_float"
               : x->dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float"
                                               : "");
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->inputs[0], 0};
  }
  call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[0], 0};
  call.defines = defines.text;
  call.numbers[0] = call.threads;
  call.is_wide = cuda_is_wide(call.threads);
  cleave_status_t status = defines.failed ? cuda_plan_no_memory(plan) : cuda_plan_kernel(plan, &call);
  cuda_writer_deinit(&defines);
  return status;
}

cleave_status_t cuda_emit_random(cuda_plan_t *plan, const cleave_node_view_t *node) {
  bool is_normal = strncmp(node->op, "RandomNormal", strlen("RandomNormal")) == 0;
  double first = cleave_view_float(node, is_normal ? "mean" : "low", 0.0);
  double second = cleave_view_float(node, is_normal ? "scale" : "high", 1.0);
  if (!cpu_dtype_is_float(cuda_output(plan, node, 0)->dtype) || !isfinite(first) || !isfinite(second)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE,
                            "it makes integers, or its bounds or moments are not finite");
  }
  return emit_random(plan, node, is_normal ? 1 : 0);
}

cleave_status_t cuda_emit_bernoulli(cuda_plan_t *plan, const cleave_node_view_t *node) {
  if (!cpu_dtype_is_float(cuda_input(plan, node, 0)->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "its probabilities are no floating-point numbers");
  }
  return emit_random(plan, node, 2);
}
