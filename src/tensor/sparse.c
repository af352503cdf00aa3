// SPDX-License-Identifier: Apache-2.0
// Sparse forms, made of the dense one in two passes: counting what is not zero, and storing it.
#include "tensor/sparse.h"

#include <string.h>

/* `count` pieces of `bytes` each: elements or rows. */
typedef struct pieces {
  const unsigned char *data;
  size_t bytes;
} pieces_t;

static bool is_zero(const pieces_t *pieces, int64_t index) {
  const unsigned char *piece = pieces->data + (size_t)index * pieces->bytes;
  // All zero, if the first byte is and each is like the one before it.
  return pieces->bytes == 0 || (piece[0] == 0 && memcmp(piece, piece + 1, pieces->bytes - 1) == 0);
}

static int64_t count_stored(const pieces_t *pieces, int64_t count) {
  int64_t stored = 0;
  for (int64_t k = 0; k < count; k++) {
    stored += is_zero(pieces, k) ? 0 : 1;
  }
  return stored;
}

static cleave_status_t allocate(cleave_sparse_t *sparse, int64_t stored, int64_t offsets, size_t piece_bytes,
                                cleave_error_t *error) {
  // Not more than the dense tensor has, whose sizes are checked.
  sparse->bytes = (size_t)stored * piece_bytes;
  sparse->places = cleave_allocate((size_t)(stored + offsets), sizeof *sparse->places);
  sparse->data = cleave_allocate_aligned(sparse->bytes);
  sparse->view = (cleave_sparse_view_t){.size = sizeof sparse->view,
                                        .stored = stored,
                                        .indices = sparse->places,
                                        .offsets = offsets > 0 ? sparse->places + stored : NULL};
  return sparse->places == NULL || sparse->data == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* Stores the pieces from `first` to before `end` that are not zero; their indices count from `first`. */
static int64_t store(cleave_sparse_t *sparse, const pieces_t *pieces, int64_t first, int64_t end,
                     int64_t stored) {
  for (int64_t k = first; k < end; k++) {
    if (!is_zero(pieces, k)) {
      memcpy((unsigned char *)sparse->data + (size_t)stored * pieces->bytes,
             pieces->data + (size_t)k * pieces->bytes, pieces->bytes);
      sparse->places[stored++] = k - first;
    }
  }
  return stored;
}

static cleave_status_t fill(cleave_sparse_t *sparse, const cleave_tensor_t *tensor, cleave_error_t *error) {
  size_t element = cleave_dtype_size(tensor->dtype);
  int64_t rows = tensor->dims[0];
  pieces_t pieces = {.data = tensor->data, .bytes = element};
  if (tensor->rank == 2) {
    int64_t columns = tensor->dims[1];
    sparse->storage = CLEAVE_STORAGE_CSR;
    CLEAVE_TRY(allocate(sparse, count_stored(&pieces, tensor->count), rows + 1, element, error));
    int64_t *offsets = sparse->places + sparse->view.stored;
    offsets[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
      offsets[row + 1] = store(sparse, &pieces, row * columns, (row + 1) * columns, offsets[row]);
    }
    return CLEAVE_OK;
  }
  sparse->storage = CLEAVE_STORAGE_ROW_SPARSE;
  pieces.bytes = rows == 0 ? 0 : tensor->bytes / (size_t)rows;
  CLEAVE_TRY(allocate(sparse, count_stored(&pieces, rows), 0, pieces.bytes, error));
  (void)store(sparse, &pieces, 0, rows, 0);
  return CLEAVE_OK;
}

cleave_status_t cleave_tensor_add_sparse(cleave_tensor_t *tensor, cleave_error_t *error) {
  if (tensor->rank == 0 || tensor->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "scalars and strings have no sparse form");
  }
  cleave_sparse_t *sparse = cleave_allocate_zeroed(1, sizeof *sparse);
  CLEAVE_TRY_MEMORY(sparse, error);
  CLEAVE_TRY_OR(fill(sparse, tensor, error), cleave_sparse_destroy(sparse));
  cleave_sparse_destroy(tensor->sparse);
  tensor->sparse = sparse;
  return CLEAVE_OK;
}

void cleave_sparse_destroy(cleave_sparse_t *sparse) {
  if (sparse != NULL) {
    cleave_free(sparse->places);
    cleave_free(sparse->data);
    cleave_free(sparse);
  }
}
