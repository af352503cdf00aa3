// SPDX-License-Identifier: Apache-2.0
/*
 * What every file of the oneDNN backend stands on: one-line failures, oneDNN status codes turned into
 * them, checked sizes, and the arena that holds whatever lives as long as one analysis or one compile.
 */
#ifndef ONEDNN_SUPPORT_H
#define ONEDNN_SUPPORT_H

#include "cleave/backend.h"
#include "kernels/arena.h"
#include "kernels/program.h"
#include "onednn/library/library.h"

/* Returns from the enclosing function with the status of `expression` if that is a failure. */
#define ONEDNN_TRY(expression)                 \
  do {                                         \
    cleave_status_t try_status = (expression); \
    if (try_status != CLEAVE_OK) {             \
      return try_status;                       \
    }                                          \
  } while (0)

/* CLEAVE_OK for dnnl_success; else a failure "`what`: oneDNN says ...". */
CLEAVE_MUST_USE cleave_status_t onednn_check(dnnl_status_t status, const char *what,
                                             cleave_message_t *message);

/* The name of the implementation, "" if oneDNN does not say, and whether `part` is in it. */
const char *onednn_implementation(const_dnnl_primitive_desc_t description);
bool onednn_is_named(const_dnnl_primitive_desc_t description, const char *part);

/* Is it oneDNN's reference implementation, which is a thousand times slower than others? */
bool onednn_is_reference(const_dnnl_primitive_desc_t description);

/* May it raise the flag "invalid" because of what lies in its scratch memory? With AMX, oneDNN computes whole
 * tiles, post-ops included: rows that are no results too. */
bool onednn_reads_scratch(const_dnnl_primitive_desc_t description);

/* Both false on overflow, `*out` then untouched. */
bool onednn_multiply(size_t a, size_t b, size_t *out);
bool onednn_add(size_t a, size_t b, size_t *out);

/* Rounds up to a multiple of 64; sizes come from checked tensors, far below the end of size_t. */
size_t onednn_round_up(size_t bytes);

#endif /* ONEDNN_SUPPORT_H */
