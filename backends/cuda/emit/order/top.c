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
  const cuda_order_t *order;
  bool is_wide;
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
  const cuda_order_t *order = top->order;
  cleave_dtype_t dtype = order->dtype;
  int digits = (int)cleave_dtype_size(dtype);
  bool is_signed = dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 ||
                   dtype == CLEAVE_DTYPE_I64;
  cuda_write(writer, "typedef u%d word;\n#define DIGITS %d\n#define KIND %d\n#define LARGEST %d\n",
             8 * digits, digits, cpu_dtype_is_float(dtype) ? 2 : is_signed, order->is_largest);
  cuda_write(writer, "#define INFINITE %s\n#define VALUES %d\n#define INDICES %d\n#define INNER %d\n",
             infinity_of(dtype), order->values != CUDA_NO_SLOT, order->indices != CUDA_NO_SLOT,
             order->inner > 1);
  cuda_write(writer, "#define FINAL %d\n#define FROM_ENTRIES %d\n#define THREADS %d\n", level->is_final,
             top->entries != CUDA_NO_SLOT, (int)level->threads);
  if (level->span > 0) {
    cuda_write(writer, "#define SPAN %d\n#define ROOM %d\n", (int)level->span, (int)level->room);
  }
  cuda_write(writer, "%s", cuda_text_find("top_entries"));
}

/* Addresses as top_entries.cu lists them. A kernel that is not the last one makes entries for the next. */
static cleave_status_t add_pointers(top_t *top, const level_t *level, cuda_kernel_call_t *call) {
  const cuda_order_t *order = top->order;
  int64_t size = cleave_dtype_size(order->dtype) > 4 ? 16 : 8;
  uint32_t made = CUDA_NO_SLOT;
  call->pointers[call->pointer_count++] = (cuda_pointer_t){order->from, 0};
  if (top->entries != CUDA_NO_SLOT) {
    call->pointers[call->pointer_count++] = (cuda_pointer_t){top->entries, 0};
  }
  if (!level->is_final) {
    CUDA_TRY(cuda_plan_scratch(top->plan, order->rows * level->kept * size, &made));
    call->pointers[call->pointer_count++] = (cuda_pointer_t){made, 0};
    top->entries = made;
    return CLEAVE_OK;
  }
  const uint32_t results[2] = {order->values, order->indices};
  for (uint32_t k = 0; k < 2; k++) {
    if (results[k] != CUDA_NO_SLOT) {
      call->pointers[call->pointer_count++] = (cuda_pointer_t){results[k], 0};
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_level(top_t *top, const level_t *level) {
  cuda_writer_t defines = {0};
  const cuda_order_t *order = top->order;
  cuda_kernel_call_t call = {.text = level->text,
                             .label = order->label,
                             .is_wide = top->is_wide,
                             .number_count = 7,
                             .numbers = {order->rows, order->inner, order->length, order->keep, top->source,
                                         level->chunk, level->chunks},
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
                   .chunks = (top->order->length - 1) / chunk + 1,
                   .span = span,
                   .room = room,
                   .threads = room < SORTED_CHUNK ? room / 2 : room / 4};
  level.is_final = level.chunks == 1;
  level.kept = level.chunks * (top->order->keep < span ? top->order->keep : span);
  level.blocks = (top->order->rows * level.chunks - 1) / (room / span) + 1;
  return level;
}

static cleave_status_t emit_selections(top_t *top) {
  int64_t room = power_above(top->order->keep);
  int64_t chunk = LEAST_RATIO * room > LEAST_CHUNK ? LEAST_RATIO * room : LEAST_CHUNK;
  bool is_done = false;
  while (!is_done) {
    level_t level = {
        .text = "top_select", .chunk = chunk, .chunks = (top->source - 1) / chunk + 1, .threads = BLOCK};
    level.is_final = level.chunks == 1;
    level.kept = level.chunks * top->order->keep;
    level.span = level.is_final ? room : 0;
    level.room = level.span;
    level.blocks = top->order->rows * level.chunks;
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
    level.kept = pairs * (2 * level.chunk < top->order->keep ? 2 * level.chunk : top->order->keep);
    level.blocks = (top->order->rows * pairs * 2 * level.chunk - 1) / BLOCK + 1;
    runs = pairs;
    CUDA_TRY(emit_level(top, &level));
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_order(cuda_plan_t *plan, const cuda_order_t *order) {
  top_t top = {.plan = plan, .order = order, .entries = CUDA_NO_SLOT, .source = order->length};
  if (order->keep == 0 || order->rows == 0) {
    return CLEAVE_OK;
  }
  top.is_wide = cuda_is_wide(2 * order->rows * (order->length + SORTED_CHUNK));
  if (order->length <= MAX_SORTED) {
    const level_t level = sorting(&top, order->length, MIN_ROOM);
    return emit_level(&top, &level);
  }
  return order->keep <= MAX_SORTED ? emit_selections(&top) : emit_merges(&top);
}

cleave_status_t cuda_emit_top(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *values = cuda_output(plan, node, 0);
  const cleave_tensor_view_t *indices = cuda_output(plan, node, 1);
  const cleave_tensor_view_t *y = values != NULL ? values : indices;
  int64_t axis = cleave_view_int(node, "axis", -1);
  axis = axis < 0 ? axis + x->rank : axis;
  if (y == NULL) {
    return CLEAVE_OK;
  }
  if (axis < 0 || axis >= x->rank || y->rank != x->rank || y->dims[axis] > x->dims[axis] ||
      x->dims[axis] >= UINT32_MAX) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axis is outside of the shape, or has fewer elements than wanted or 2^32");
  }
  const cuda_order_t order = {.label = node->op,
                              .dtype = x->dtype,
                              .is_largest = cleave_view_int(node, "largest", 1) != 0,
                              .from = node->inputs[0],
                              .values = values != NULL ? node->outputs[0] : CUDA_NO_SLOT,
                              .indices = indices != NULL ? node->outputs[1] : CUDA_NO_SLOT,
                              .rows = x->dims[axis] > 0 ? cleave_view_element_count(x) / x->dims[axis] : 0,
                              .inner = cuda_product_of(x->dims + axis + 1, x->rank - (int32_t)axis - 1),
                              .length = x->dims[axis],
                              .keep = y->dims[axis]};
  return cuda_emit_order(plan, &order);
}
