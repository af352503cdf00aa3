// SPDX-License-Identifier: Apache-2.0
/* Tensors that are summed over all processes, in buckets: a bucket is one block of memory and one transfer.
 */
#ifndef CLEAVE_DISTRIBUTED_EXCHANGE_H
#define CLEAVE_DISTRIBUTED_EXCHANGE_H

#include "base/containers/array.h"
#include "distributed/communicator.h"

typedef struct cleave_exchange_item {
  cleave_tensor_view_t view; /* its memory, once cleave_exchange_allocate was called */
  int64_t *dims;
  size_t offset; /* in its bucket */
  uint32_t bucket;
} cleave_exchange_item_t;

typedef struct cleave_exchange_bucket {
  cleave_dtype_t dtype;
  size_t bytes; /* with what lies between the items */
  unsigned char *data;
  uint64_t number; /* of the transfer */
  bool is_going;
} cleave_exchange_bucket_t;

/* All zero, but for the first two members, is an empty one. */
typedef struct cleave_exchange {
  const cleave_communicator_t *communicator;
  size_t limit; /* bytes of a bucket; an item that is larger has one of its own */
  CLEAVE_ARRAY(cleave_exchange_item_t) items;
  CLEAVE_ARRAY(cleave_exchange_bucket_t) buckets;
  uint64_t going_ns;  /* time in which a transfer was under way */
  uint64_t waited_ns; /* time in which the caller waited for one */
  uint64_t end_ns;    /* of the last transfer */
} cleave_exchange_t;

/* Adds a tensor of float32 or float64 to the last bucket, or to a new one if it does not fit in there. */
CLEAVE_STATUS cleave_exchange_add(cleave_exchange_t *exchange, cleave_dtype_t dtype, int32_t rank,
                                  const int64_t *dims, cleave_error_t *error);
/* Memory for all buckets, zeroed; nothing is added after it. */
CLEAVE_STATUS cleave_exchange_allocate(cleave_exchange_t *exchange, cleave_error_t *error);
void cleave_exchange_deinit(cleave_exchange_t *exchange);

/* Begins to sum a bucket, in place. */
CLEAVE_STATUS cleave_exchange_start(cleave_exchange_t *exchange, uint32_t bucket, cleave_error_t *error);
/* Until its sums are there; at once if nobody started it. */
CLEAVE_STATUS cleave_exchange_wait(cleave_exchange_t *exchange, uint32_t bucket, cleave_error_t *error);

/* The bytes of all buckets. */
size_t cleave_exchange_bytes(const cleave_exchange_t *exchange);

#endif /* CLEAVE_DISTRIBUTED_EXCHANGE_H */
