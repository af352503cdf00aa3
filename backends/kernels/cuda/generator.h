// SPDX-License-Identifier: Apache-2.0
/* The files that write a kernel share this: text.c writes its rows and phases, chunk.c what a thread does
 * with a chunk. */
#ifndef CLEAVE_KERNELS_CUDA_GENERATOR_H
#define CLEAVE_KERNELS_CUDA_GENERATOR_H

#include "arguments.h"
#include "expression.h"
#include "phases.h"

typedef struct generator {
  const kernel_program_t *program;
  const kernel_cuda_variant_t *variant;
  cuda_phases_t phases;
  bool wanted[KERNEL_MAX_TENSORS]; /* outputs */
  bool marks[KERNEL_MAX_VALUES];   /* what the phase wants per element */
  uint32_t phase;
  bool keeps;     /* registers hold a row */
  bool is_partly; /* the last chunk may be shorter */
  cuda_writer_t body;
  int indent;
} generator_t;

static inline void indent(generator_t *generator) {
  for (int k = 0; k < generator->indent; k++) {
    cuda_write(&generator->body, "  ");
  }
}

#define LINE(generator, ...)                     \
  do {                                           \
    indent(generator);                           \
    cuda_write(&(generator)->body, __VA_ARGS__); \
    cuda_write(&(generator)->body, "\n");        \
  } while (0)

static inline void open_block(generator_t *generator) {
  generator->indent++;
}

static inline void close_block(generator_t *generator) {
  generator->indent--;
  LINE(generator, "}");
}

static inline int32_t first_inner(const generator_t *generator) {
  return generator->variant->rank - generator->variant->row_rank;
}

static inline kernel_cuda_access_t access_of(const generator_t *generator, uint32_t input) {
  return (kernel_cuda_access_t)generator->variant->inputs[input];
}

static inline bool is_load(const generator_t *generator, uint32_t value, kernel_cuda_access_t access) {
  const kernel_value_t *self = &generator->program->values[value];
  return self->op == KERNEL_LOAD && access_of(generator, self->input) == access;
}

/* A load of several inputs. */
static inline bool joins(const generator_t *generator, uint32_t value) {
  const kernel_value_t *self = &generator->program->values[value];
  return self->op == KERNEL_LOAD && self->parts > 0;
}

/* Computed in this phase, not read from registers. */
static inline bool is_fresh(const generator_t *generator, uint32_t value) {
  return generator->marks[value] && !(generator->keeps && generator->phases.first[value] < generator->phase);
}

static inline bool is_kept(const generator_t *generator, uint32_t value) {
  return generator->keeps && generator->phases.kept[value] && !is_load(generator, value, KERNEL_CUDA_ONE);
}

/* Whether the phase stores the output in this way. */
static inline bool stores(const generator_t *generator, uint32_t output, kernel_cuda_access_t access) {
  return generator->wanted[output] && generator->variant->outputs[output] == (uint8_t)access &&
         generator->phases.ready[generator->program->outputs[output].value] == generator->phase;
}

/* Writes where each input begins for the row. */
void cuda_write_bases(generator_t *generator);

/* The address that offsets along the row count from, into `out`. */
const char *cuda_base_of(const generator_t *generator, uint32_t input, char *out, size_t size);

/* Writes what the phase does with the chunk that begins at i. */
void cuda_write_chunk(generator_t *generator);

/* The value of an output as it is stored in place of `element`, on top of what is there if it adds. */
void cuda_write_stored(generator_t *generator, uint32_t output, const char *element);

#endif /* CLEAVE_KERNELS_CUDA_GENERATOR_H */
