// SPDX-License-Identifier: Apache-2.0
// TopK: the entries of a row become fewer from kernel to kernel, until the last one writes the result.
#include <stdio.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/writer.h"

enum {
  BLOCK = 256,
  MAX_SORTED = 1024, /* elements of a row that are sorted as they are, and of a result that is selected */
  MIN_ROOM = 512,    /* entries of a block that sorts: two for each thread at first */
  SORTED_CHUNK = 2048,
  LEAST_CHUNK = 4096, /* that is selected from */
  LEAST_RATIO = 8     /* of a chunk and what is selected of it */
};

typedef struct top {
  cuda_plan_t *plan;
  const cleave_node_view_t *node;
  const cleave_tensor_view_t *x;
  bool is_largest;
  bool has_values;
  bool has_indices;
  bool is_wide;
  int64_t rows;
  int64_t inner;
  int64_t length;
  int64_t keep;
  uint32_t entries; /* slot of what the kernel before made, or CUDA_NO_SLOT */
  int64_t source;   /* entries of a row there; elements, if there are none */
} top_t;

/* One kernel: what it reads at a time, and what it makes of it. */
typedef struct level {
  const char *text;
  int64_t chunk;
  int64_t chunks;
  int64_t kept; /* entries that it makes of a row; FINAL is set if they are the result */
  bool is_final;
  int64_t span; /* entries that a block sorts, and has room for; 0: it sorts none */
  int64_t room;
  int64_t threads;
  int64_t blocks;
} level_t;

static int64_t power_above(int64_t count) {
  int64_t power = 1;
  while (power < count) {
    power *= 2;
  }
  return power;
}

static const char *infinity_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16    ? "0x7c00u"
         : dtype == CLEAVE_DTYPE_BF16 ? "0x7f80u"
         : dtype == CLEAVE_DTYPE_F32  ? "0x7f800000u"
                                      : "0x7ff0000000000000ull";
}

static void write_defines(const top_t *top, const level_t *level, cuda_writer_t *writer) {
  cleave_dtype_t dtype = top->x->dtype;
  int digits = (int)cleave_dtype_size(dtype);
  bool is_signed = dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 ||
                   dtype == CLEAVE_DTYPE_I64;
  cuda_write(writer, "typedef u%d word;\n#define DIGITS %d\n#define KIND %d\n#define LARGEST %d\n",
             8 * digits, digits, cpu_dtype_is_float(dtype) ? 2 : is_signed, top->is_largest);
  cuda_write(writer, "#define INFINITE %s\n#define VALUES %d\n#define INDICES %d\n#define INNER %d\n",
             infinity_of(dtype), top->has_values, top->has_indices, top->inner > 1);
  cuda_write(writer, "#define FINAL %d\n#define FROM_ENTRIES %d\n#define THREADS %d\n", level->is_final,
             top->entries != CUDA_NO_SLOT, (int)level->threads);
  if (level->span > 0) {
    cuda_write(writer, "#define SPAN %d\n#define ROOM %d\n", (int)level->span, (int)level->room);
  }
  cuda_write(writer, "%s", cuda_text_find("top_entries"));
}

/* Addresses as top_entries.cu lists them. A kernel that is not the last one makes entries for the next. */
static cleave_status_t add_pointers(top_t *top, const level_t *level, cuda_kernel_call_t *call) {
  int64_t size = cleave_dtype_size(top->x->dtype) > 4 ? 16 : 8;
  uint32_t made = CUDA_NO_SLOT;
  call->pointers[call->pointer_count++] = (cuda_pointer_t){top->node->inputs[0], 0};
  if (top->entries != CUDA_NO_SLOT) {
    call->pointers[call->pointer_count++] = (cuda_pointer_t){top->entries, 0};
  }
  if (!level->is_final) {
    CUDA_TRY(cuda_plan_scratch(top->plan, top->rows * level->kept * size, &made));
    call->pointers[call->pointer_count++] = (cuda_pointer_t){made, 0};
    top->entries = made;
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < 2; k++) {
    if (k == 0 ? top->has_values : top->has_indices) {
      call->pointers[call->pointer_count++] = (cuda_pointer_t){top->node->outputs[k], 0};
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_level(top_t *top, const level_t *level) {
  cuda_writer_t defines = {0};
  cuda_kernel_call_t call = {
      .text = level->text,
      .label = top->node->op,
      .is_wide = top->is_wide,
      .number_count = 7,
      .numbers = {top->rows, top->inner, top->length, top->keep, top->source, level->chunk, level->chunks},
      .threads = level->blocks * level->threads,
      .block = (uint32_t)level->threads};
  write_defines(top, level, &defines);
  call.defines = defines.text;
  cleave_status_t status = defines.failed ? cuda_plan_no_memory(top->plan) : add_pointers(top, level, &call);
  status = status == CLEAVE_OK ? cuda_plan_kernel(top->plan, &call) : status;
  cuda_writer_deinit(&defines);
  top->source = level->kept;
  return status;
}

/* ---- the ways from a row to its result ---- */

static level_t sorting(const top_t *top, int64_t chunk, int64_t room) {
  int64_t span = power_above(chunk);
  room = room > span ? room : span;
  level_t level = {.text = "top_sort",
                   .chunk = chunk,
                   .chunks = (top->length - 1) / chunk + 1,
                   .span = span,
                   .room = room,
                   .threads = room < SORTED_CHUNK ? room / 2 : room / 4};
  level.is_final = level.chunks == 1;
  level.kept = level.chunks * (top->keep < span ? top->keep : span);
  level.blocks = (top->rows * level.chunks - 1) / (room / span) + 1;
  return level;
}

static cleave_status_t emit_selections(top_t *top) {
  int64_t room = power_above(top->keep);
  int64_t chunk = LEAST_RATIO * room > LEAST_CHUNK ? LEAST_RATIO * room : LEAST_CHUNK;
  bool is_done = false;
  while (!is_done) {
    level_t level = {
        .text = "top_select", .chunk = chunk, .chunks = (top->source - 1) / chunk + 1, .threads = BLOCK};
    level.is_final = level.chunks == 1;
    level.kept = level.chunks * top->keep;
    level.span = level.is_final ? room : 0;
    level.room = level.span;
    level.blocks = top->rows * level.chunks;
    is_done = level.is_final;
    CUDA_TRY(emit_level(top, &level));
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_merges(top_t *top) {
  level_t sorted = sorting(top, SORTED_CHUNK, SORTED_CHUNK);
  int64_t runs = sorted.chunks;
  CUDA_TRY(emit_level(top, &sorted));
  while (runs > 1) {
    int64_t pairs = (runs + 1) / 2;
    level_t level = {.text = "top_merge", .chunk = top->source / runs, .chunks = runs, .threads = BLOCK};
    level.is_final = pairs == 1;
    level.kept = pairs * (2 * level.chunk < top->keep ? 2 * level.chunk : top->keep);
    level.blocks = (top->rows * pairs * 2 * level.chunk - 1) / BLOCK + 1;
    runs = pairs;
    CUDA_TRY(emit_level(top, &level));
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_top(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *outputs[2] = {cuda_output(plan, node, 0), cuda_output(plan, node, 1)};
  const cleave_tensor_view_t *y = outputs[0] != NULL ? outputs[0] : outputs[1];
  top_t top = {.plan = plan,
               .node = node,
               .x = cuda_input(plan, node, 0),
               .is_largest = cleave_view_int(node, "largest", 1) != 0,
               .has_values = outputs[0] != NULL,
               .has_indices = outputs[1] != NULL,
               .entries = CUDA_NO_SLOT};
  int64_t axis = cleave_view_int(node, "axis", -1);
  axis = axis < 0 ? axis + top.x->rank : axis;
  if (y == NULL) {
    return CLEAVE_OK;
  }
  if (axis < 0 || axis >= top.x->rank || y->rank != top.x->rank || y->dims[axis] > top.x->dims[axis] ||
      top.x->dims[axis] >= UINT32_MAX) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axis is outside of the shape, or has fewer elements than wanted or 2^32");
  }
  int64_t elements = cleave_view_element_count(top.x);
  top.length = top.x->dims[axis];
  top.keep = y->dims[axis];
  top.inner = cuda_product_of(top.x->dims + axis + 1, top.x->rank - (int32_t)axis - 1);
  if (top.keep == 0 || elements == 0) {
    return CLEAVE_OK;
  }
  top.source = top.length;
  top.rows = elements / top.length;
  top.is_wide = cuda_is_wide(2 * elements + 2 * top.rows * SORTED_CHUNK);
  if (top.length <= MAX_SORTED) {
    const level_t level = sorting(&top, top.length, MIN_ROOM);
    return emit_level(&top, &level);
  }
  return top.keep <= MAX_SORTED ? emit_selections(&top) : emit_merges(&top);
}
