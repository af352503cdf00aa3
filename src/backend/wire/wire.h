// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between two processes of one machine: numbers, texts and arrays, each at its own alignment, so
 * that a reader points into the message and copies nothing. Whoever reads trusts nothing: every take is
 * checked against what is left, and after the first failure all others give zeros.
 */
#ifndef CLEAVE_BACKEND_WIRE_WIRE_H
#define CLEAVE_BACKEND_WIRE_WIRE_H

#include "base/memory.h"

/* ---- writing: all zero is an empty message; a lack of memory is found at the end, in `failed` ---- */

typedef struct cleave_wire_out {
  unsigned char *data; /* owned; aligned for any type */
  size_t length;
  size_t capacity;
  bool failed;
} cleave_wire_out_t;

/* Empties the message and keeps its memory. */
void cleave_wire_reset(cleave_wire_out_t *out);
void cleave_wire_deinit(cleave_wire_out_t *out);
/* Memory for messages of so many bytes; false without memory. */
bool cleave_wire_reserve(cleave_wire_out_t *out, size_t bytes);

void cleave_wire_put(cleave_wire_out_t *out, const void *data, size_t bytes, size_t alignment);
void cleave_wire_put_u32(cleave_wire_out_t *out, uint32_t value);
void cleave_wire_put_u64(cleave_wire_out_t *out, uint64_t value);
void cleave_wire_put_f64(cleave_wire_out_t *out, double value);
/* A text that may be NULL. */
void cleave_wire_put_text(cleave_wire_out_t *out, const char *text);
/* A text of `length` bytes, which may hold NUL. */
void cleave_wire_put_string(cleave_wire_out_t *out, const char *text, uint32_t length);
void cleave_wire_put_pairs(cleave_wire_out_t *out, const cleave_key_value_t *pairs, uint32_t count);

/* ---- reading: what is given out points into the message ---- */

typedef struct cleave_wire_in {
  const unsigned char *data; /* of the whole message; aligned for any type */
  size_t at;
  size_t length;
  bool failed;
} cleave_wire_in_t;

cleave_wire_in_t cleave_wire_read(const void *data, size_t length);

/* `count` elements of `size` bytes, aligned; NULL, and `failed`, if they are not there. */
const void *cleave_wire_take(cleave_wire_in_t *in, size_t count, size_t size, size_t alignment);
uint32_t cleave_wire_u32(cleave_wire_in_t *in);
uint64_t cleave_wire_u64(cleave_wire_in_t *in);
double cleave_wire_f64(cleave_wire_in_t *in);
/* Ends in NUL. NULL if NULL was put, or if the reading failed; "" stands in for it in _named. */
const char *cleave_wire_text(cleave_wire_in_t *in);
const char *cleave_wire_named(cleave_wire_in_t *in);
const char *cleave_wire_string(cleave_wire_in_t *in, uint32_t *out_length);
/* A number of things that take at least `least` bytes each in what is left; fails if they cannot. */
uint32_t cleave_wire_count(cleave_wire_in_t *in, size_t least);
/* A number below `limit`; fails otherwise, and gives 0. */
uint32_t cleave_wire_index(cleave_wire_in_t *in, uint32_t limit);
/* Everything was read, and nothing is left. */
bool cleave_wire_is_done(const cleave_wire_in_t *in);

#endif /* CLEAVE_BACKEND_WIRE_WIRE_H */
