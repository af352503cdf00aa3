// SPDX-License-Identifier: Apache-2.0
/* An imperative environment: a pool of memory, compiled operators, an engine. */
#ifndef CLEAVE_IMPERATIVE_IMPERATIVE_H
#define CLEAVE_IMPERATIVE_IMPERATIVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/containers/array.h"
#include "base/memory.h"
#include "cleave/array.h"
#include "ops/ops.h"

/* memory_pool.c: Memory of arrays: blocks of released ones are kept for the next of about the same size. Any
 * thread. */

enum { MEMORY_POOL_CLASSES = 4 * 58 };

typedef struct memory_pool {
  pthread_mutex_t lock;
  void *free[MEMORY_POOL_CLASSES]; /* lists; a block begins with the next one */
  size_t limit;                    /* of bytes that are kept */
  size_t kept_bytes;
  size_t used_bytes;
} memory_pool_t;

void memory_pool_init(memory_pool_t *pool, size_t limit);
/* Every block is back. */
void memory_pool_deinit(memory_pool_t *pool);

/* 64-byte aligned memory for at least `bytes`, not zeroed; NULL: there is none. */
void *memory_pool_take(memory_pool_t *pool, size_t bytes);
/* `bytes` as they were asked for. NULL is a no-op. */
void memory_pool_give(memory_pool_t *pool, void *memory, size_t bytes);

void memory_pool_count(memory_pool_t *pool, uint64_t *out_used, uint64_t *out_kept);

typedef struct imperative_operator imperative_operator_t;
typedef struct imperative_call imperative_call_t;
typedef struct record_form record_form_t;

struct cleave_array {
  cleave_imperative_t *owner;
  cleave_variable_t *variable;
  _Atomic uint32_t references;
  cleave_dtype_t dtype;
  int32_t rank; /* -1 until the call has run that tells its shape */
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count;
  size_t bytes;
  void *data;
  bool is_literal;  /* numbers of a program's text: constants of graphs that are made of its calls */
  bool is_computed; /* false: the call that should have done it has not run, or failed */
};

/* Compiled operators by what they were compiled for. */
typedef struct imperative_table {
  imperative_operator_t **buckets; /* as many as a power of two, or NULL at first */
  size_t bucket_count;
  size_t count;
} imperative_table_t;

struct cleave_imperative {
  cleave_context_t *context; /* retained; NULL: the process's own */
  cleave_engine_t *engine;
  memory_pool_t pool;
  char *backend;
  cleave_session_options_t options; /* of the sessions in which operators run */
  cleave_program_cache_t *programs;
  pthread_mutex_t lock; /* of what follows */
  imperative_table_t table;
  CLEAVE_ARRAY(unsigned char) key;     /* of the operator that is looked up */
  CLEAVE_ARRAY(record_form_t *) forms; /* of gradients that were compiled */
  imperative_call_t *free_calls;
  uint32_t ahead; /* calls that were pushed and have not run */
  pthread_cond_t caught_up;
  uint64_t call_count;
  uint64_t compiled_count;
};

/* An array with memory for its shape; rank -1: without. */
CLEAVE_STATUS cleave_array_allocate(cleave_imperative_t *imperative, cleave_dtype_t dtype, int32_t rank,
                                    const int64_t *dims, cleave_array_t **out_array, cleave_error_t *error);
/* Gives it shape and memory. */
CLEAVE_STATUS cleave_array_set_shape(cleave_array_t *array, int32_t rank, const int64_t *dims,
                                     cleave_error_t *error);

/* The array as sessions see it. */
static inline cleave_tensor_view_t cleave_array_view(const cleave_array_t *array) {
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = array->dtype,
                                .rank = array->rank,
                                .dims = array->dims,
                                .data = array->data};
}

/* A call of an operator that was found, with attributes of graphs. `inputs` have shapes. */
typedef struct imperative_request {
  const cleave_op_t *op;
  cleave_array_t *const *inputs;
  uint32_t input_count;
  const cleave_attribute_t *attributes;
  uint32_t attribute_count;
  uint32_t output_count;
} imperative_request_t;

/* Does what cleave_array_call does. `place`, where the call is written, is for errors of its run; NULL:
 * nowhere. */
CLEAVE_STATUS cleave_imperative_call(cleave_imperative_t *imperative, const imperative_request_t *request,
                                     const char *place, cleave_array_t **outputs, cleave_error_t *error);

#endif /* CLEAVE_IMPERATIVE_IMPERATIVE_H */
