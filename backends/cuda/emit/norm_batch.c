// SPDX-License-Identifier: Apache-2.0
// Batch normalization: in inference a program over elements. In training, and of its gradient: a program over
// rows that has the sums of each channel, one over channels, and one over elements. cuDNN computes the
// gradient if it is there, between two programs over channels.
#include "emit.h"
#include "kernels/convert.h"

/* ---- with given statistics ---- */

/* Mean and variance of each channel. */
typedef struct statistics {
  uint32_t slots[2];
  cleave_dtype_t dtypes[2];
} statistics_t;

/* y = (x - mean) / sqrt(variance + epsilon) * scale + shift, all but x per channel. */
static cleave_status_t build_batch_norm(cuda_builder_t *builder, const cleave_node_view_t *node,
                                        const statistics_t *statistics) {
  const cuda_plan_t *plan = builder->plan;
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  cleave_dtype_t dtype = kernel_compute_dtype(x->dtype);
  int8_t axes[CLEAVE_MAX_RANK];
  uint32_t values[5];
  uint32_t epsilon = 0;
  for (uint32_t k = 0; k < 5; k++) {
    bool is_input = k < 3;
    for (int32_t d = 0; d < x->rank; d++) {
      axes[d] = k == 0 ? (int8_t)d : d == 1 ? 0 : -1;
    }
    CUDA_TRY(cuda_builder_load(builder,
                               is_input ? cuda_input(plan, node, k)->dtype : statistics->dtypes[k - 3],
                               (cuda_pointer_t){is_input ? node->inputs[k] : statistics->slots[k - 3], 0},
                               axes, k == 0 ? x->rank : 1, k == 0 ? x->dims : &x->dims[1], &values[k]));
    CUDA_TRY(kernel_program_cast(builder->program, dtype, values[k], &values[k], plan->message));
  }
  CUDA_TRY(cuda_builder_number(builder, dtype, cleave_view_float(node, "epsilon", 1e-5), &epsilon));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Add, values[4], epsilon, &values[4]));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Sqrt, values[4], 0, &values[4]));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Div, values[1], values[4], &values[1]));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Sub, values[0], values[3], &values[0]));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Mul, values[0], values[1], &values[0]));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Add, values[0], values[2], &values[0]));
  return cuda_builder_store(builder, x->dtype, values[0], (cuda_pointer_t){node->outputs[0], 0});
}

static cleave_status_t emit_normalized(cuda_plan_t *plan, const cleave_node_view_t *node,
                                       const statistics_t *statistics) {
  cuda_builder_t builder;
  cleave_status_t status = cuda_builder_init(&builder, plan, node->op, cuda_input(plan, node, 0)->rank, 0);
  status = status == CLEAVE_OK ? build_batch_norm(&builder, node, statistics) : status;
  status = status == CLEAVE_OK ? cuda_emit_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}

/* ---- with those of the batch ---- */

typedef struct batch {
  cuda_plan_t *plan;
  const cleave_node_view_t *node;
  cleave_dtype_t dtype; /* that is computed in, and of slots between the programs */
  int64_t dims[3];      /* images, channels, places */
  int64_t channels;
} batch_t;

static const int8_t by_channel[3] = {1, 0, 2}; /* of a space of channels, images and places */
static const int8_t by_element[3] = {0, 1, 2};
static const int8_t per_row[3] = {0, -1, -1};
static const int8_t per_channel[3] = {-1, 0, -1};

/* A part of a program that is being built. */
typedef struct part {
  const batch_t *batch;
  cuda_builder_t builder;
} part_t;

static cleave_status_t load(part_t *part, uint32_t slot, cleave_dtype_t dtype, const int8_t *axes,
                            uint32_t *out) {
  bool is_whole = axes == by_channel || axes == by_element;
  CUDA_TRY(cuda_builder_load(&part->builder, dtype, (cuda_pointer_t){slot, 0}, axes, is_whole ? 3 : 1,
                             is_whole ? part->batch->dims : &part->batch->channels, out));
  return kernel_program_cast(part->builder.program, part->batch->dtype, *out, out,
                             part->batch->plan->message);
}

static cleave_status_t load_input(part_t *part, uint32_t input, const int8_t *axes, uint32_t *out) {
  const batch_t *batch = part->batch;
  return load(part, batch->node->inputs[input], cuda_input(batch->plan, batch->node, input)->dtype, axes,
              out);
}

static cleave_status_t load_slot(part_t *part, uint32_t slot, const int8_t *axes, uint32_t *out) {
  return load(part, slot, part->batch->dtype, axes, out);
}

static cleave_status_t apply(part_t *part, kernel_op_t op, uint32_t a, uint32_t b, uint32_t *out) {
  return cuda_builder_apply(&part->builder, op, a, b, out);
}

/* value op number */
static cleave_status_t bind(part_t *part, kernel_op_t op, double number, uint32_t *value) {
  uint32_t own = 0;
  CUDA_TRY(cuda_builder_number(&part->builder, part->batch->dtype, number, &own));
  return apply(part, op, *value, own, value);
}

static cleave_status_t store_slot(part_t *part, uint32_t slot, uint32_t value) {
  return cuda_builder_store(&part->builder, part->batch->dtype, value, (cuda_pointer_t){slot, 0});
}

/* Nothing, if the output is left out. */
static cleave_status_t store_output(part_t *part, uint32_t output, uint32_t value) {
  const batch_t *batch = part->batch;
  const cleave_tensor_view_t *tensor = cuda_output(batch->plan, batch->node, output);
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  CUDA_TRY(kernel_program_cast(part->builder.program, kernel_compute_dtype(tensor->dtype), value, &value,
                               batch->plan->message));
  return cuda_builder_store(&part->builder, tensor->dtype, value,
                            (cuda_pointer_t){batch->node->outputs[output], 0});
}

typedef cleave_status_t (*build_t)(part_t *part, const uint32_t *slots);

static cleave_status_t emit(const batch_t *batch, int32_t rank, int32_t reduced, build_t build,
                            const uint32_t *slots) {
  part_t part = {.batch = batch};
  cleave_status_t status = cuda_builder_init(&part.builder, batch->plan, batch->node->op, rank, reduced);
  status = status == CLEAVE_OK ? build(&part, slots) : status;
  status = status == CLEAVE_OK && part.builder.program->output_count > 0
               ? cuda_plan_program(batch->plan, part.builder.call)
               : status;
  cuda_builder_deinit(&part.builder);
  return status;
}

/* `data` is the input that is normalized; all others but the first have an element for each channel. */
static cleave_status_t read_batch(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t data,
                                  batch_t *out) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, data);
  if (node->input_count < 5 || x == NULL || x->rank < 2 || !cpu_dtype_is_float(x->dtype) ||
      cleave_view_element_count(x) == 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "it has no channels, or is empty");
  }
  *out = (batch_t){.plan = plan,
                   .node = node,
                   .dtype = kernel_compute_dtype(x->dtype),
                   .dims = {x->dims[0], x->dims[1], cuda_product_of(x->dims + 2, x->rank - 2)},
                   .channels = x->dims[1]};
  for (uint32_t k = 0; k < 5; k++) {
    const cleave_tensor_view_t *tensor = cuda_input(plan, node, k);
    int64_t expected = k > data ? out->channels : cleave_view_element_count(x);
    if (tensor == NULL || !cpu_dtype_is_float(tensor->dtype) ||
        cleave_view_element_count(tensor) != expected) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "input %u does not fit its channels", (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t make_slots(const batch_t *batch, uint32_t count, uint32_t *out_slots) {
  for (uint32_t k = 0; k < count; k++) {
    CUDA_TRY(cuda_plan_scratch(batch->plan, batch->channels * (int64_t)cleave_dtype_size(batch->dtype),
                               &out_slots[k]));
  }
  return CLEAVE_OK;
}

/* ---- training ---- */

enum { X, SCALE, SHIFT, OLD_MEAN, OLD_VARIANCE };
enum { MEAN, VARIANCE, STATISTICS };

static cleave_status_t build_statistics(part_t *part, const uint32_t *slots) {
  uint32_t value = 0;
  uint32_t mean = 0;
  CUDA_TRY(load_input(part, X, by_channel, &value));
  CUDA_TRY(apply(part, KERNEL_ReduceMean, value, 0, &mean));
  CUDA_TRY(apply(part, KERNEL_Sub, value, mean, &value));
  CUDA_TRY(apply(part, KERNEL_MeanSquare, value, 0, &value));
  CUDA_TRY(store_slot(part, slots[MEAN], mean));
  return store_slot(part, slots[VARIANCE], value);
}

/* The running statistics follow those of the batch. */
static cleave_status_t build_running(part_t *part, const uint32_t *slots) {
  double momentum = cleave_view_float(part->batch->node, "momentum", 0.9);
  for (uint32_t k = MEAN; k < STATISTICS; k++) {
    uint32_t own = 0;
    uint32_t old = 0;
    CUDA_TRY(load_slot(part, slots[k], per_row, &own));
    CUDA_TRY(store_output(part, 3 + k, own));
    CUDA_TRY(load_input(part, OLD_MEAN + k, per_row, &old));
    CUDA_TRY(bind(part, KERNEL_Mul, momentum, &old));
    CUDA_TRY(bind(part, KERNEL_Mul, 1 - momentum, &own));
    CUDA_TRY(apply(part, KERNEL_Add, old, own, &own));
    CUDA_TRY(store_output(part, 1 + k, own));
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_batch_training(cuda_plan_t *plan, const cleave_node_view_t *node) {
  batch_t batch;
  uint32_t slots[STATISTICS];
  CUDA_TRY(read_batch(plan, node, X, &batch));
  CUDA_TRY(make_slots(&batch, STATISTICS, slots));
  CUDA_TRY(emit(&batch, 3, 2, build_statistics, slots));
  CUDA_TRY(emit(&batch, 1, 0, build_running, slots));
  if (cuda_output(plan, node, 0) == NULL) {
    return CLEAVE_OK;
  }
  const statistics_t statistics = {.slots = {slots[MEAN], slots[VARIANCE]},
                                   .dtypes = {batch.dtype, batch.dtype}};
  return emit_normalized(plan, node, &statistics);
}

cleave_status_t cuda_emit_batch_norm(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  if (cleave_view_int(node, "training_mode", 0) != 0) {
    CUDA_TRY(cuda_layout_need_inputs(plan, node));
    return cuda_emit_batch_training(plan, node);
  }
  if (cuda_output(plan, node, 1) != NULL || node->input_count < 5 || x->rank < 2 ||
      !cpu_dtype_is_float(x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "it has no channels, or further outputs");
  }
  const statistics_t statistics = {
      .slots = {node->inputs[3], node->inputs[4]},
      .dtypes = {cuda_input(plan, node, 3)->dtype, cuda_input(plan, node, 4)->dtype}};
  return emit_normalized(plan, node, &statistics);
}

/* ---- the gradient ---- */

enum { DY, DATA, GRAD_SCALE, GRAD_MEAN, GRAD_VARIANCE };
enum { SUM, PRODUCT, SUMS };
enum { OF_DY = SUMS, OF_DATA, CONSTANT, SLOTS }; /* dx = dy * a + x * b + c */

/* Builds, for each channel, the sums of dy and of dy * (x - mean). */
static cleave_status_t build_sums(part_t *part, const uint32_t *slots) {
  uint32_t dy = 0;
  uint32_t x = 0;
  uint32_t mean = 0;
  CUDA_TRY(load_input(part, DY, by_channel, &dy));
  CUDA_TRY(load_input(part, DATA, by_channel, &x));
  CUDA_TRY(load_input(part, GRAD_MEAN, per_row, &mean));
  CUDA_TRY(apply(part, KERNEL_Sub, x, mean, &x));
  CUDA_TRY(apply(part, KERNEL_Mul, dy, x, &x));
  CUDA_TRY(apply(part, KERNEL_ReduceSum, dy, 0, &dy));
  CUDA_TRY(apply(part, KERNEL_ReduceSum, x, 0, &x));
  CUDA_TRY(store_slot(part, slots[SUM], dy));
  return store_slot(part, slots[PRODUCT], x);
}

static cleave_status_t build_factors(part_t *part, const uint32_t *slots) {
  const batch_t *batch = part->batch;
  double count = (double)batch->dims[0] * (double)batch->dims[2];
  uint32_t sum = 0;
  uint32_t product = 0;
  uint32_t inverse = 0;
  uint32_t factor = 0;
  uint32_t mean = 0;
  CUDA_TRY(load_slot(part, slots[SUM], per_row, &sum));
  CUDA_TRY(store_output(part, 2, sum));
  CUDA_TRY(load_input(part, GRAD_VARIANCE, per_row, &inverse));
  CUDA_TRY(bind(part, KERNEL_Add, cleave_view_float(batch->node, "epsilon", 1e-5), &inverse));
  CUDA_TRY(apply(part, KERNEL_Sqrt, inverse, 0, &inverse));
  CUDA_TRY(apply(part, KERNEL_Reciprocal, inverse, 0, &inverse));
  CUDA_TRY(load_slot(part, slots[PRODUCT], per_row, &product));
  CUDA_TRY(apply(part, KERNEL_Mul, product, inverse, &product));
  CUDA_TRY(store_output(part, 1, product));
  CUDA_TRY(load_input(part, GRAD_SCALE, per_row, &factor));
  CUDA_TRY(apply(part, KERNEL_Mul, factor, inverse, &factor));
  CUDA_TRY(store_slot(part, slots[OF_DY], factor));
  CUDA_TRY(bind(part, KERNEL_Mul, -1 / count, &factor));
  CUDA_TRY(apply(part, KERNEL_Mul, product, inverse, &product));
  CUDA_TRY(apply(part, KERNEL_Mul, product, factor, &product));
  CUDA_TRY(store_slot(part, slots[OF_DATA], product));
  CUDA_TRY(load_input(part, GRAD_MEAN, per_row, &mean));
  CUDA_TRY(apply(part, KERNEL_Mul, mean, product, &mean));
  CUDA_TRY(apply(part, KERNEL_Mul, sum, factor, &sum));
  CUDA_TRY(apply(part, KERNEL_Sub, sum, mean, &sum));
  return store_slot(part, slots[CONSTANT], sum);
}

static cleave_status_t build_dx(part_t *part, const uint32_t *slots) {
  uint32_t values[2];
  uint32_t factor = 0;
  for (uint32_t k = 0; k < 2; k++) {
    CUDA_TRY(load_input(part, k == 0 ? DY : DATA, by_element, &values[k]));
    CUDA_TRY(load_slot(part, slots[k == 0 ? OF_DY : OF_DATA], per_channel, &factor));
    CUDA_TRY(apply(part, KERNEL_Mul, values[k], factor, &values[k]));
  }
  CUDA_TRY(apply(part, KERNEL_Add, values[0], values[1], &values[0]));
  CUDA_TRY(load_slot(part, slots[CONSTANT], per_channel, &factor));
  CUDA_TRY(apply(part, KERNEL_Add, values[0], factor, &values[0]));
  return store_output(part, 0, values[0]);
}

static cleave_status_t back_by_kernels(const batch_t *batch) {
  uint32_t slots[SLOTS];
  CUDA_TRY(make_slots(batch, SLOTS, slots));
  CUDA_TRY(emit(batch, 3, 2, build_sums, slots));
  CUDA_TRY(emit(batch, 1, 0, build_factors, slots));
  return emit(batch, 3, 0, build_dx, slots);
}

/* ---- the gradient by cuDNN ---- */

/* Its operands of channels have the dtype that is computed in: slots of their own unless they have it. */
enum { OF_SCALE, OF_MEAN, OF_DEVIATION, SCALE_GRADIENT, SHIFT_GRADIENT, OPERANDS };
enum { MAX_IMAGES = 65535 };

static bool is_for_library(const batch_t *batch) {
  const cuda_plan_t *plan = batch->plan;
  cleave_dtype_t dtype = cuda_input(plan, batch->node, DATA)->dtype;
  return plan->options.has_dnn && dtype != CLEAVE_DTYPE_BF16 &&
         cuda_input(plan, batch->node, DY)->dtype == dtype && batch->dims[0] <= MAX_IMAGES &&
         batch->dims[0] * batch->dims[1] * batch->dims[2] < INT32_MAX;
}

/* Is the tensor stored in a slot of the program's own, and not where the node has it? */
static bool is_apart(const batch_t *batch, const cleave_tensor_view_t *tensor) {
  return tensor == NULL || tensor->dtype != batch->dtype;
}

static cleave_status_t build_operands(part_t *part, const uint32_t *slots) {
  const batch_t *batch = part->batch;
  uint32_t value = 0;
  for (uint32_t k = OF_SCALE; k <= OF_MEAN; k++) {
    if (is_apart(batch, cuda_input(batch->plan, batch->node, GRAD_SCALE + k))) {
      CUDA_TRY(load_input(part, GRAD_SCALE + k, per_row, &value));
      CUDA_TRY(store_slot(part, slots[k], value));
    }
  }
  CUDA_TRY(load_input(part, GRAD_VARIANCE, per_row, &value));
  CUDA_TRY(bind(part, KERNEL_Add, cleave_view_float(batch->node, "epsilon", 1e-5), &value));
  CUDA_TRY(apply(part, KERNEL_Sqrt, value, 0, &value));
  CUDA_TRY(apply(part, KERNEL_Reciprocal, value, 0, &value));
  return store_slot(part, slots[OF_DEVIATION], value);
}

static cleave_status_t build_results(part_t *part, const uint32_t *slots) {
  const batch_t *batch = part->batch;
  for (uint32_t k = 1; k <= 2; k++) {
    const cleave_tensor_view_t *tensor = cuda_output(batch->plan, batch->node, k);
    if (tensor != NULL && is_apart(batch, tensor)) {
      uint32_t value = 0;
      CUDA_TRY(load_slot(part, slots[SCALE_GRADIENT + k - 1], per_row, &value));
      CUDA_TRY(store_output(part, k, value));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t find_operands(const batch_t *batch, uint32_t *out_slots) {
  const cleave_node_view_t *node = batch->node;
  CUDA_TRY(make_slots(batch, OPERANDS, out_slots));
  for (uint32_t k = OF_SCALE; k <= OF_MEAN; k++) {
    bool is_own = is_apart(batch, cuda_input(batch->plan, node, GRAD_SCALE + k));
    out_slots[k] = is_own ? out_slots[k] : node->inputs[GRAD_SCALE + k];
  }
  for (uint32_t k = 1; k <= 2; k++) {
    bool is_own = is_apart(batch, cuda_output(batch->plan, node, k));
    uint32_t *slot = &out_slots[SCALE_GRADIENT + k - 1];
    *slot = is_own ? *slot : node->outputs[k];
  }
  return CLEAVE_OK;
}

static cleave_status_t back_by_library(const batch_t *batch) {
  const cleave_node_view_t *node = batch->node;
  const cleave_tensor_view_t *dx = cuda_output(batch->plan, node, 0);
  cuda_plan_t *plan = batch->plan;
  cuda_step_t *step = NULL;
  uint32_t slots[OPERANDS];
  uint32_t result = dx != NULL ? node->outputs[0] : 0;
  CUDA_TRY(find_operands(batch, slots));
  CUDA_TRY(emit(batch, 1, 0, build_operands, slots));
  if (dx == NULL) {
    const cleave_tensor_view_t *x = cuda_input(plan, node, DATA);
    CUDA_TRY(cuda_plan_scratch(plan, cleave_view_element_count(x) * (int64_t)cleave_dtype_size(x->dtype),
                               &result));
  }
  const cuda_pointer_t pointers[8] = {{node->inputs[DY], 0},      {node->inputs[DATA], 0},
                                      {slots[OF_SCALE], 0},       {slots[OF_MEAN], 0},
                                      {slots[OF_DEVIATION], 0},   {result, 0},
                                      {slots[SCALE_GRADIENT], 0}, {slots[SHIFT_GRADIENT], 0}};
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_NORM_BACK, node->op, pointers, 8, &step));
  step->norm = cuda_plan_allocate(plan, 1, sizeof *step->norm);
  if (step->norm == NULL) {
    return cuda_plan_no_memory(plan);
  }
  *step->norm = (cuda_norm_t){.dtype = cuda_input(plan, node, DATA)->dtype,
                              .images = (int32_t)batch->dims[0],
                              .channels = (int32_t)batch->dims[1],
                              .places = (int32_t)batch->dims[2],
                              .epsilon = cleave_view_float(node, "epsilon", 1e-5)};
  return emit(batch, 1, 0, build_results, slots);
}

cleave_status_t cuda_emit_batch_norm_back(cuda_plan_t *plan, const cleave_node_view_t *node) {
  batch_t batch;
  CUDA_TRY(read_batch(plan, node, DATA, &batch));
  return is_for_library(&batch) ? back_by_library(&batch) : back_by_kernels(&batch);
}
