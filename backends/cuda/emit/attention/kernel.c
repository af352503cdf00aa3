// SPDX-License-Identifier: Apache-2.0
// The kernels of attention: what stands before their texts, and their arguments.
#include "attention.h"

#include <stdio.h>

#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { JOIN_BLOCK = 256, MARGIN = 256 /* rows that are computed, but not there */ };

typedef struct kernel {
  cuda_plan_t *plan;
  const cuda_attention_t *attention;
  cuda_attention_tiles_t tiles;
  uint32_t parts; /* slot of what the splits of keys make */
} kernel_t;

/* Elements that are accessed at once: all of a row are, and rows begin at multiples of them. */
static int32_t pack_of(const cuda_attention_t *attention, const cuda_matrices_t *matrices, int64_t size) {
  int32_t pack = 16 / (int32_t)cleave_dtype_size(attention->dtype);
  while (pack > 1 && (size % pack != 0 || matrices->row % pack != 0 || matrices->head % pack != 0 ||
                      matrices->batch % pack != 0)) {
    pack /= 2;
  }
  return pack;
}

static int64_t rows_of(const cuda_attention_t *attention) {
  return attention->query_heads / attention->key_heads * attention->queries;
}

static int64_t part_count(const kernel_t *self) {
  const cuda_attention_t *a = self->attention;
  return self->tiles.splits * a->batches * a->key_heads * rows_of(a) * (a->value_size + 2);
}

static bool is_wide(const kernel_t *self) {
  const cuda_attention_t *a = self->attention;
  const cuda_matrices_t *const all[] = {&a->q, &a->k, &a->v, &a->y};
  const int64_t dims[4] = {a->batches, a->query_heads, a->queries, a->keys};
  bool is_wide = cuda_is_wide(part_count(self));
  int64_t mask = 0;
  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
    is_wide = is_wide || cuda_is_wide(all[k]->batch * a->batches + all[k]->row * MARGIN);
  }
  for (int d = 0; d < 4; d++) {
    mask += dims[d] * a->mask_strides[d];
  }
  return is_wide || cuda_is_wide(mask + MARGIN) || cuda_is_wide(a->keys + a->queries + MARGIN);
}

/* ---- texts ---- */

static void write_numbers(cuda_writer_t *writer, const kernel_t *self) {
  const cuda_attention_t *a = self->attention;
  const cuda_attention_tiles_t *tiles = &self->tiles;
  bool has_mask = a->mask.slot != CUDA_NO_SLOT;
  bool is_flags = has_mask && a->mask_dtype == CLEAVE_DTYPE_BOOL;
  cuda_write(writer, "#define SIZE %lld\n#define VALUE_SIZE %lld\n#define SLICE %d\n#define SLICES %d\n",
             (long long)a->size, (long long)a->value_size, (int)tiles->slice, (int)tiles->slices);
  cuda_write(writer, "#define ROWS %d\n#define KEYS %d\n#define THREADS %d\n#define SPLITS %lld\n",
             (int)tiles->rows, (int)tiles->keys, (int)tiles->threads, (long long)tiles->splits);
  cuda_write(writer, "#define CAUSAL %d\n#define VALID %d\n#define MASK %d\ntypedef %s mask_element;\n",
             a->is_causal ? 1 : 0, a->valid.slot != CUDA_NO_SLOT ? 1 : 0,
             is_flags   ? 2
             : has_mask ? 1
                        : 0,
             is_flags ? "u8" : "element");
  cuda_write(writer, "#define SCALE ((number)%.17g)\n#define CAPPED %d\n#define CAP ((number)%.17g)\n",
             a->scale, a->softcap > 0 ? 1 : 0, a->softcap);
  cuda_write(writer, "#define Q_PACK %d\n#define K_PACK %d\n#define V_PACK %d\n",
             (int)pack_of(a, &a->q, a->size), (int)pack_of(a, &a->k, a->size),
             (int)pack_of(a, &a->v, a->value_size));
  if (tiles->is_mma) {
    cuda_write(writer, "#define Y_PACK %d\n#define FORM %d\n#define QUERY_WARPS %d\n#define KEY_WARPS %d\n",
               (int)pack_of(a, &a->y, a->value_size),
               a->dtype == CLEAVE_DTYPE_F16    ? 0
               : a->dtype == CLEAVE_DTYPE_BF16 ? 1
                                               : 2,
               (int)tiles->query_warps, (int)tiles->key_warps);
  } else {
    cuda_write(writer, "#define OWN_ROWS %d\n#define COLUMNS %d\n", (int)tiles->own_rows,
               (int)tiles->neighbours);
  }
}

static void add_matrices(cuda_kernel_call_t *call, const cuda_matrices_t *matrices) {
  call->numbers[call->number_count++] = matrices->batch;
  call->numbers[call->number_count++] = matrices->head;
  call->numbers[call->number_count++] = matrices->row;
}

/* Addresses and numbers as attention_rows.cu lists them. */
static void fill_call(const kernel_t *self, cuda_kernel_call_t *call) {
  const cuda_attention_t *a = self->attention;
  const cuda_pointer_t parts = {self->tiles.splits > 1 ? self->parts : CUDA_NO_SLOT, 0};
  const cuda_pointer_t pointers[] = {a->q.at, a->k.at, a->v.at, a->y.at, a->mask, a->valid, parts};
  const int64_t numbers[] = {a->batches, a->key_heads,     a->query_heads / a->key_heads, a->queries, a->keys,
                             a->past,    self->tiles.split};
  for (size_t k = 0; k < sizeof pointers / sizeof pointers[0]; k++) {
    if (pointers[k].slot != CUDA_NO_SLOT) {
      call->pointers[call->pointer_count++] = pointers[k];
    }
  }
  for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
    call->numbers[call->number_count++] = numbers[k];
  }
  add_matrices(call, &a->q);
  add_matrices(call, &a->k);
  add_matrices(call, &a->v);
  add_matrices(call, &a->y);
  for (int d = 0; d < 4 && a->mask.slot != CUDA_NO_SLOT; d++) {
    call->numbers[call->number_count++] = a->mask_strides[d];
  }
}

static cleave_status_t emit_kernel(const kernel_t *self) {
  const cuda_attention_t *a = self->attention;
  const cuda_attention_tiles_t *tiles = &self->tiles;
  char types[256];
  cuda_writer_t defines = {0};
  cuda_kernel_call_t call = {.text = tiles->is_mma ? "attention_mma" : "attention",
                             .label = a->label,
                             .is_wide = is_wide(self),
                             .block = (uint32_t)tiles->threads};
  (void)cuda_text_defines(a->dtype, types, sizeof types);
  cuda_write(&defines, "%s", types);
  write_numbers(&defines, self);
  cuda_write(&defines, "%s", cuda_text_find("attention_rows"));
  if (defines.failed) {
    cuda_writer_deinit(&defines);
    return cuda_plan_no_memory(self->plan);
  }
  call.defines = defines.text;
  fill_call(self, &call);
  call.threads = (rows_of(a) + tiles->rows - 1) / tiles->rows * a->batches * a->key_heads * tiles->slices *
                 tiles->splits * tiles->threads;
  cleave_status_t status = cuda_plan_kernel(self->plan, &call);
  cuda_writer_deinit(&defines);
  return status;
}

/* ---- keys that are split ---- */

static cleave_status_t emit_join(const kernel_t *self) {
  const cuda_attention_t *a = self->attention;
  char types[256];
  char defines[400];
  int64_t rows = rows_of(a);
  int64_t all = a->batches * a->key_heads * rows;
  (void)cuda_text_defines(a->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines, "%s#define SPLITS %lld\n#define VALUE_SIZE %lld\n", types,
                 (long long)self->tiles.splits, (long long)a->value_size);
  const cuda_kernel_call_t call = {.text = "attention_join",
                                   .label = a->label,
                                   .defines = defines,
                                   .is_wide = is_wide(self),
                                   .pointer_count = 2,
                                   .pointers = {{self->parts, 0}, a->y.at},
                                   .number_count = 8,
                                   .numbers = {all, rows, a->key_heads, a->query_heads / a->key_heads,
                                               a->queries, a->y.batch, a->y.head, a->y.row},
                                   .threads = all * a->value_size,
                                   .block = JOIN_BLOCK};
  return cuda_plan_kernel(self->plan, &call);
}

cleave_status_t cuda_attention_compute(cuda_plan_t *plan, const cuda_attention_t *attention) {
  kernel_t self = {.plan = plan,
                   .attention = attention,
                   .tiles = cuda_attention_find_tiles(plan, attention),
                   .parts = CUDA_NO_SLOT};
  if (self.tiles.splits <= 1) {
    return emit_kernel(&self);
  }
  int64_t bytes = part_count(&self) * (int64_t)cleave_dtype_size(kernel_compute_dtype(attention->dtype));
  CUDA_TRY(cuda_plan_scratch(plan, bytes, &self.parts));
  CUDA_TRY(emit_kernel(&self));
  return emit_join(&self);
}
