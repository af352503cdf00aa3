// SPDX-License-Identifier: Apache-2.0
// From a call to variant, grid and arguments. Chunks are 16 bytes of the widest tensor that is read or
// written along the row, because accesses of 16 bytes are what reaches the memory's bandwidth; a row of up to
// 32 chunks has a part of a warp, a longer one a warp or several.
#include <inttypes.h>
#include <string.h>

#include "arguments.h"
#include "kernels/execute/space.h"
#include "phases.h"

enum {
  CHUNK_BYTES = 16,
  WARP = 32,
  BLOCK = 512,               /* threads, without reductions */
  SMALL_BLOCK = 128,         /* for spaces that would fill few blocks */
  ROWS_BLOCK = 256,          /* where a block has several rows */
  MAX_THREADS = 1024,        /* of a row */
  FEW_CHUNKS = 4,            /* of a row in the registers of a thread, as long as there are threads */
  FILLING_THREADS = 1 << 16, /* about what a device has in flight */
  KEPT_BYTES = 256,          /* of registers, per thread, with 512 threads in a block */
};

typedef struct planning {
  const kernel_cuda_t *kernel;
  const kernel_cuda_call_t *call;
  kernel_cuda_variant_t *variant;
  kernel_space_t space;
  int64_t length; /* of a row */
  int64_t rows;
} planning_t;

static int32_t first_inner(const planning_t *planning) {
  return planning->variant->rank - planning->variant->row_rank;
}

static bool is_aligned(const void *data, int64_t bytes) {
  return (uintptr_t)data % (uintptr_t)bytes == 0;
}

/* Whether the input runs through a row in one go. */
static bool is_dense(const planning_t *planning, uint32_t input) {
  const kernel_space_t *space = &planning->space;
  int64_t expected = 1;
  if (space->along[input] >= 0) {
    return false;
  }
  for (int32_t d = space->rank - 1; d >= first_inner(planning); d--) {
    if (space->strides[input][d] != expected) {
      return false;
    }
    expected *= space->dims[d];
  }
  return true;
}

/* Whether it stays where it is along a row. */
static bool is_one(const planning_t *planning, uint32_t input) {
  if (planning->space.along[input] >= 0) {
    return false;
  }
  for (int32_t d = first_inner(planning); d < planning->space.rank; d++) {
    if (planning->space.strides[input][d] != 0) {
      return false;
    }
  }
  return true;
}

static int64_t last_stride(const planning_t *planning, uint32_t input) {
  return planning->space.rank > 0 ? planning->space.strides[input][planning->space.rank - 1] : 0;
}

/* Elements that fit into a chunk of every tensor that is accessed chunk by chunk. */
static int32_t find_lanes(const planning_t *planning) {
  const kernel_program_t *program = &planning->kernel->program;
  size_t widest = 1;
  bool is_whole = true; /* no input needs coordinates that a chunk could cross */
  int64_t run = planning->space.rank > 0 ? planning->space.dims[planning->space.rank - 1] : 1;
  for (uint32_t k = 0; k < program->input_count; k++) {
    size_t size = cleave_dtype_size(program->inputs[k].dtype);
    if (!planning->kernel->loads[k] || is_one(planning, k)) {
      continue;
    }
    is_whole = is_whole && is_dense(planning, k);
    if (last_stride(planning, k) == 1) {
      widest = size > widest ? size : widest;
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    size_t size = cleave_dtype_size(program->outputs[k].dtype);
    if (planning->call->outputs[k] != NULL && !planning->kernel->per_row[k]) {
      widest = size > widest ? size : widest;
    }
  }
  int32_t lanes = CHUNK_BYTES / (int32_t)widest;
  bool fits = !planning->kernel->reduces || (planning->length % lanes == 0 && (is_whole || run % lanes == 0));
  return fits ? lanes : 1;
}

static bool strides_fit(const planning_t *planning, uint32_t input, int32_t end, int64_t lanes) {
  for (int32_t d = 0; d < end; d++) {
    if (planning->space.strides[input][d] % lanes != 0) {
      return false;
    }
  }
  return true;
}

/* Whether a chunk lies together in one part of a load, which `input` is a part of: all parts have one access.
 */
static bool parts_fit(const planning_t *planning, uint32_t input) {
  const kernel_space_t *space = &planning->space;
  const kernel_cuda_variant_t *variant = planning->variant;
  const kernel_value_t *load = kernel_program_join_of(&planning->kernel->program, input);
  int64_t lanes = variant->lanes;
  bool fits = variant->whole_runs != 0;
  for (uint32_t k = load->input; k < load->input + load->parts && fits; k++) {
    int64_t bytes = lanes * (int64_t)cleave_dtype_size(planning->kernel->program.inputs[k].dtype);
    bool is_cut = space->along[k] == space->rank - 1; /* a chunk could reach over its ends */
    fits = last_stride(planning, k) == 1 && is_aligned(planning->call->inputs[k].data, bytes) &&
           strides_fit(planning, k, variant->rank - 1, lanes) && (!is_cut || space->ends[k] % lanes == 0);
  }
  return fits;
}

static kernel_cuda_access_t input_access(const planning_t *planning, uint32_t input) {
  const kernel_cuda_variant_t *variant = planning->variant;
  int64_t lanes = variant->lanes;
  int64_t bytes = lanes * (int64_t)cleave_dtype_size(planning->kernel->program.inputs[input].dtype);
  bool is_on_chunk = is_aligned(planning->call->inputs[input].data, bytes);
  if (!planning->kernel->loads[input]) {
    return KERNEL_CUDA_ABSENT;
  }
  if (planning->space.along[input] >= 0) {
    return parts_fit(planning, input) ? KERNEL_CUDA_STRIDED : KERNEL_CUDA_STRIDED_EACH;
  }
  if (is_one(planning, input)) {
    return KERNEL_CUDA_ONE;
  }
  if (is_dense(planning, input)) {
    bool fits = is_on_chunk && strides_fit(planning, input, first_inner(planning), lanes);
    return fits ? KERNEL_CUDA_DENSE : KERNEL_CUDA_DENSE_EACH;
  }
  int64_t stride = last_stride(planning, input);
  if (stride == 1 && variant->whole_runs != 0 && is_on_chunk &&
      strides_fit(planning, input, variant->rank - 1, lanes)) {
    return KERNEL_CUDA_STRIDED;
  }
  return stride == 0 && variant->whole_runs != 0 ? KERNEL_CUDA_STRIDED_ONE : KERNEL_CUDA_STRIDED_EACH;
}

/* Which axes an input moves along, as far as its access does not say so. */
static uint8_t input_moves(const planning_t *planning, uint32_t input, kernel_cuda_access_t access) {
  uint8_t moves = 0;
  int32_t end = access >= KERNEL_CUDA_STRIDED ? planning->variant->rank : first_inner(planning);
  for (int32_t d = 0; access != KERNEL_CUDA_ABSENT && d < end; d++) {
    bool counts = planning->space.strides[input][d] != 0 || planning->space.along[input] == d;
    moves = (uint8_t)(moves | (counts ? 1u << d : 0u));
  }
  return moves;
}

static kernel_cuda_access_t output_access(const planning_t *planning, uint32_t output) {
  void *data = planning->call->outputs[output];
  int64_t size = (int64_t)cleave_dtype_size(planning->kernel->program.outputs[output].dtype);
  if (data == NULL) {
    return KERNEL_CUDA_ABSENT;
  }
  if (planning->kernel->per_row[output]) {
    return KERNEL_CUDA_ONE;
  }
  return is_aligned(data, size * planning->variant->lanes) ? KERNEL_CUDA_DENSE : KERNEL_CUDA_DENSE_EACH;
}

/* Accesses with chunks of this size; says whether any tensor is accessed a chunk at once. */
static bool find_accesses(planning_t *planning, int32_t lanes) {
  const kernel_program_t *program = &planning->kernel->program;
  kernel_cuda_variant_t *variant = planning->variant;
  bool is_any = false;
  variant->lanes = lanes;
  variant->whole_runs = lanes == 1 || planning->kernel->reduces ||
                        (variant->rank > 0 && planning->space.dims[variant->rank - 1] % lanes == 0);
  bool is_strided = false;
  for (uint32_t k = 0; k < program->input_count; k++) {
    kernel_cuda_access_t access = input_access(planning, k);
    variant->inputs[k] = (uint8_t)access;
    variant->moves[k] = input_moves(planning, k, access);
    variant->along[k] = (uint8_t)(access == KERNEL_CUDA_ABSENT ? 0 : planning->space.along[k] + 1);
    is_any = is_any || access == KERNEL_CUDA_DENSE || access == KERNEL_CUDA_STRIDED;
    is_strided = is_strided || access >= KERNEL_CUDA_STRIDED;
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    variant->outputs[k] = (uint8_t)output_access(planning, k);
    is_any = is_any || variant->outputs[k] == KERNEL_CUDA_DENSE;
  }
  if (!is_strided && !planning->kernel->reduces && lanes > 1) {
    variant->whole_runs = 0; /* one kernel for whole chunks and others */
  }
  return is_any;
}

/* Whether some index or offset needs more than 31 bits; the threads behind the last element count, too. */
static bool is_wide(const planning_t *planning) {
  const kernel_space_t *space = &planning->space;
  const int64_t limit = INT64_C(1) << 31;
  if (space->total >= limit - MAX_THREADS * KERNEL_CUDA_MAX_LANES || space->rows >= limit - MAX_THREADS) {
    return true;
  }
  for (uint32_t k = 0; k < planning->kernel->program.input_count; k++) {
    int64_t reach = 0;
    for (int32_t d = 0; d < space->rank; d++) {
      int64_t stride = space->strides[k][d] < 0 ? -space->strides[k][d] : space->strides[k][d];
      if (stride >= limit || (space->dims[d] > 0 && stride > (limit - reach) / space->dims[d])) {
        return true;
      }
      reach += stride * space->dims[d];
    }
  }
  return false;
}

static int64_t at_least(int64_t count) {
  int64_t power = 1;
  while (power < count) {
    power *= 2;
  }
  return power;
}

static int64_t pieces(int64_t count, int64_t size) {
  return count / size + (count % size != 0);
}

/* Threads of a row, and how much of it each keeps. */
static void find_threads(const planning_t *planning) {
  kernel_cuda_variant_t *variant = planning->variant;
  int64_t chunks = pieces(planning->length, variant->lanes);
  int64_t threads = chunks <= WARP                      ? at_least(chunks)
                    : chunks <= WARP * FEW_CHUNKS       ? WARP
                    : chunks < MAX_THREADS * FEW_CHUNKS ? at_least(pieces(chunks, FEW_CHUNKS))
                                                        : MAX_THREADS;
  int64_t own = pieces(chunks, threads);
  int64_t kept = planning->kernel->kept_bytes * variant->lanes;
  if (threads == MAX_THREADS && own * kept > KEPT_BYTES / 2) {
    threads /= 2;
    own = pieces(chunks, threads);
  }
  variant->threads = (int32_t)threads;
  /* Without anything to keep, it is the loads in flight that count. */
  bool fits = own * kept <= KEPT_BYTES && own * variant->lanes <= KEPT_BYTES / 4;
  variant->chunks = fits ? (int32_t)(own > 0 ? own : 1) : 0;
  if (!fits) {
    variant->threads = MAX_THREADS;
  }
}

static cleave_status_t find_grid(const planning_t *planning, kernel_cuda_launch_t *launch,
                                 cleave_message_t *message) {
  const kernel_cuda_variant_t *variant = planning->variant;
  int64_t blocks = 0;
  if (variant->threads == 0) {
    int64_t chunks = pieces(planning->length, variant->lanes);
    launch->block = chunks >= FILLING_THREADS ? BLOCK : SMALL_BLOCK;
    blocks = pieces(chunks, launch->block);
  } else if (variant->threads > WARP) {
    launch->block = (uint32_t)variant->threads;
    blocks = planning->rows;
  } else {
    bool is_full = planning->rows >= FILLING_THREADS / variant->threads;
    launch->block = is_full ? ROWS_BLOCK : 2 * WARP;
    blocks = pieces(planning->rows, launch->block / (uint32_t)variant->threads);
  }
  if (blocks > INT32_MAX) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "a grid of %" PRId64 " blocks, expected at most %" PRId32,
                       blocks, INT32_MAX);
  }
  launch->grid = (uint32_t)blocks;
  return CLEAVE_OK;
}

static uint64_t argument_value(const planning_t *planning, const cuda_argument_t *argument) {
  switch (argument->kind) {
    case CUDA_ARGUMENT_INPUT: return (uint64_t)(uintptr_t)planning->call->inputs[argument->tensor].data;
    case CUDA_ARGUMENT_OUTPUT: return (uint64_t)(uintptr_t)planning->call->outputs[argument->tensor];
    case CUDA_ARGUMENT_LENGTH: return (uint64_t)planning->length;
    case CUDA_ARGUMENT_ROWS: return (uint64_t)planning->rows;
    case CUDA_ARGUMENT_DIM: return (uint64_t)planning->space.dims[argument->axis];
    case CUDA_ARGUMENT_END: return (uint64_t)planning->space.ends[argument->tensor];
    case CUDA_ARGUMENT_STRIDE: break;
  }
  return (uint64_t)planning->space.strides[argument->tensor][argument->axis];
}

static cleave_status_t pack_arguments(const planning_t *planning, kernel_cuda_launch_t *launch,
                                      cleave_message_t *message) {
  cuda_argument_t arguments[CUDA_MAX_ARGUMENTS];
  uint32_t count = cuda_arguments_list(&planning->kernel->program, planning->variant, arguments);
  uint32_t at = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint64_t value = argument_value(planning, &arguments[k]);
    bool is_long = arguments[k].kind <= CUDA_ARGUMENT_OUTPUT || planning->variant->is_wide != 0;
    uint32_t number = (uint32_t)value;
    uint32_t size = is_long ? 8 : 4;
    if (at + size > KERNEL_CUDA_ARGUMENT_BYTES) {
      return kernel_fail(message, CLEAVE_ERROR_LIMIT, "the arguments of the kernel take more than %d bytes",
                         KERNEL_CUDA_ARGUMENT_BYTES);
    }
    memcpy(launch->arguments + at, is_long ? (const void *)&value : (const void *)&number, size);
    at += size;
  }
  memset(launch->arguments + at, 0, at % 8);
  launch->argument_bytes = at + at % 8;
  return CLEAVE_OK;
}

cleave_status_t kernel_cuda_prepare(const kernel_cuda_t *kernel, const kernel_cuda_call_t *call,
                                    kernel_cuda_launch_t *out_launch, cleave_message_t *message) {
  planning_t planning = {.kernel = kernel, .call = call, .variant = &out_launch->variant};
  kernel_cuda_variant_t *variant = planning.variant;
  const kernel_program_t *program = &kernel->program;
  memset(variant, 0, sizeof *variant);
  kernel_space_merge(program, kernel->reduces ? program->reduced : 0, call->dims, call->inputs,
                     &planning.space);
  variant->rank = planning.space.rank;
  variant->row_rank = kernel->reduces ? planning.space.row_rank : planning.space.rank;
  variant->fast_math = kernel->fast_math;
  planning.rows = kernel->reduces ? planning.space.rows : 1;
  planning.length = kernel->reduces ? planning.space.row_length : planning.space.total;
  int32_t lanes = find_lanes(&planning);
  if (!find_accesses(&planning, lanes) && lanes > 1) {
    find_accesses(&planning, 1);
  }
  variant->is_wide = is_wide(&planning);
  if (kernel->reduces) {
    find_threads(&planning);
  }
  out_launch->shared_bytes = 0;
  out_launch->argument_bytes = 0;
  cleave_status_t status = find_grid(&planning, out_launch, message);
  return status == CLEAVE_OK ? pack_arguments(&planning, out_launch, message) : status;
}
