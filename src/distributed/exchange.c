// SPDX-License-Identifier: Apache-2.0
#include "distributed/exchange.h"

#include <string.h>

#include "system/clock.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

enum { ALIGNMENT = 64 }; /* of items, so that sessions write them where they are */

cleave_status_t cleave_exchange_add(cleave_exchange_t *exchange, cleave_dtype_t dtype, int32_t rank,
                                    const int64_t *dims, cleave_error_t *error) {
  int64_t count = 0;
  size_t bytes = 0;
  cleave_exchange_item_t item = {0};
  if (!cleave_shape_element_count(rank, dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(dtype), &bytes) ||
      bytes > SIZE_MAX - ALIGNMENT) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "a tensor to be summed over processes is too large");
  }
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t last = exchange->buckets.count;
  const cleave_exchange_bucket_t *open = last > 0 ? &exchange->buckets.items[last - 1] : NULL;
  if (open == NULL || open->dtype != dtype || (open->bytes > 0 && bytes > exchange->limit - open->bytes) ||
      open->bytes >= exchange->limit) {
    const cleave_exchange_bucket_t bucket = {.dtype = dtype};
    CLEAVE_ARRAY_PUSH(&exchange->buckets, bucket, error);
  }
  cleave_exchange_bucket_t *bucket = &exchange->buckets.items[exchange->buckets.count - 1];
  CLEAVE_TRY(cleave_array_reserve(&exchange->items, 1, error));
  item.dims = cleave_allocate((size_t)rank + 1, sizeof *item.dims);
  if (item.dims == NULL) {
    return cleave_error_out_of_memory(error);
  }
  if (rank > 0) {
    memcpy(item.dims, dims, (size_t)rank * sizeof *dims);
  }
  item.view =
      (cleave_tensor_view_t){.size = sizeof item.view, .dtype = dtype, .rank = rank, .dims = item.dims};
  item.offset = bucket->bytes;
  item.bucket = (uint32_t)exchange->buckets.count - 1;
  cleave_array_push_reserved(&exchange->items, item);
  bucket->bytes += bytes;
  return CLEAVE_OK;
}

cleave_status_t cleave_exchange_allocate(cleave_exchange_t *exchange, cleave_error_t *error) {
  for (size_t k = 0; k < exchange->buckets.count; k++) {
    cleave_exchange_bucket_t *bucket = &exchange->buckets.items[k];
    bucket->data = cleave_allocate_aligned(bucket->bytes + 1);
    if (bucket->data == NULL) {
      return cleave_error_out_of_memory(error);
    }
    memset(bucket->data, 0, bucket->bytes);
  }
  for (size_t k = 0; k < exchange->items.count; k++) {
    cleave_exchange_item_t *item = &exchange->items.items[k];
    item->view.data = exchange->buckets.items[item->bucket].data + item->offset;
  }
  return CLEAVE_OK;
}

void cleave_exchange_deinit(cleave_exchange_t *exchange) {
  for (size_t k = 0; k < exchange->buckets.count; k++) {
    if (!exchange->buckets.items[k].is_going) { /* else a transfer that failed may still use it */
      cleave_free(exchange->buckets.items[k].data);
    }
  }
  for (size_t k = 0; k < exchange->items.count; k++) {
    cleave_free(exchange->items.items[k].dims);
  }
  cleave_array_free(&exchange->buckets);
  cleave_array_free(&exchange->items);
}

cleave_status_t cleave_exchange_start(cleave_exchange_t *exchange, uint32_t bucket, cleave_error_t *error) {
  cleave_exchange_bucket_t *going = &exchange->buckets.items[bucket];
  const cleave_transfer_t transfer = {.size = sizeof transfer,
                                      .kind = CLEAVE_TRANSFER_SUM,
                                      .dtype = going->dtype,
                                      .data = going->data,
                                      .count = (int64_t)(going->bytes / cleave_dtype_size(going->dtype))};
  CLEAVE_TRY(cleave_communicator_start(exchange->communicator, &transfer, &going->number, error));
  going->is_going = true;
  return CLEAVE_OK;
}

cleave_status_t cleave_exchange_wait(cleave_exchange_t *exchange, uint32_t bucket, cleave_error_t *error) {
  cleave_exchange_bucket_t *going = &exchange->buckets.items[bucket];
  cleave_transfer_times_t times = {0};
  if (!going->is_going) {
    return CLEAVE_OK;
  }
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_communicator_wait(exchange->communicator, going->number, &times, error));
  going->is_going = false;
  exchange->waited_ns += cleave_clock_now() - start;
  /* Buckets start and are waited for in the same order; times in which several go on count once. */
  uint64_t from = times.start_ns > exchange->end_ns ? times.start_ns : exchange->end_ns;
  exchange->going_ns += times.end_ns > from ? times.end_ns - from : 0;
  exchange->end_ns = times.end_ns > exchange->end_ns ? times.end_ns : exchange->end_ns;
  return CLEAVE_OK;
}

size_t cleave_exchange_bytes(const cleave_exchange_t *exchange) {
  size_t bytes = 0;
  for (size_t k = 0; k < exchange->buckets.count; k++) {
    bytes += exchange->buckets.items[k].bytes;
  }
  return bytes;
}
