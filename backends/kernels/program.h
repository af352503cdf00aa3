// SPDX-License-Identifier: Apache-2.0
/*
 * The program of a fusion: values over an index space, each from the operators of operators.inc, and what is
 * stored. A program knows dtypes, ranks and what is repeated along which axis; sizes and strides come with
 * each call, so that one program serves every shape. README.md describes the language and its text form.
 *
 * Values are single assignments in topological order; an operator that is there already with the same
 * operands is not added again. The index space has `rank` axes, of which the last `reduced` are a row: a
 * reduction makes one value per row out of one per element. A value per row that meets one per element counts
 * for all elements of its row.
 *
 * Float16 and bfloat16 are dtypes of tensors only: they are float32 from load to store, except for what a
 * cast to them rounds.
 */
#ifndef CLEAVE_KERNELS_PROGRAM_H
#define CLEAVE_KERNELS_PROGRAM_H

#include "cleave/backend.h"

enum {
  KERNEL_MAX_VALUES = 1024,
  KERNEL_MAX_TENSORS = 64, /* inputs, and outputs */
  KERNEL_DTYPE_COUNT = CLEAVE_DTYPE_BF16 + 1,
};

/* Operators: those that have a syntax of their own, then all of operators.inc. */
typedef enum kernel_op {
  KERNEL_LOAD,
  KERNEL_CONSTANT,
  KERNEL_CAST,
  KERNEL_WHERE,
#define KERNEL_UNARY(name, ...) KERNEL_##name,
#define KERNEL_BITWISE_UNARY(name, ...) KERNEL_##name,
#define KERNEL_LOGIC_UNARY(name, ...) KERNEL_##name,
#define KERNEL_BINARY(name, ...) KERNEL_##name,
#define KERNEL_COMPARE(name, ...) KERNEL_##name,
#define KERNEL_LOGIC(name, ...) KERNEL_##name,
#define KERNEL_BITWISE(name, ...) KERNEL_##name,
#define KERNEL_REDUCTION(name, ...) KERNEL_##name,
#define KERNEL_REDUCTION_FLOAT(name, ...) KERNEL_##name,
#define KERNEL_ARGUMENT(name, ...) KERNEL_##name,
#include "operators.inc"
  KERNEL_OP_COUNT
} kernel_op_t;

typedef enum kernel_kind {
  KERNEL_KIND_SPECIAL, /* load, constant, cast, where */
  KERNEL_KIND_UNARY,
  KERNEL_KIND_BINARY,
  KERNEL_KIND_COMPARE, /* two of one type to a bool */
  KERNEL_KIND_REDUCTION
} kernel_kind_t;

/* Which dtypes an operator takes. */
enum { KERNEL_FLOATS = 1, KERNEL_INTEGERS = 2, KERNEL_BOOLS = 4 };

typedef struct kernel_op_info {
  const char *name;
  kernel_kind_t kind;
  uint32_t operand_count;
  uint32_t dtypes;       /* KERNEL_FLOATS and so on; of the operands */
  cleave_dtype_t result; /* UNKNOWN: that of the operands */
  uint32_t immediate_count;
  const char *alpha_name; /* attributes of ONNX with their defaults, for the immediates */
  double alpha;
  const char *beta_name;
  double beta;
  int32_t cost; /* time per element, in quarters of a nanosecond */
} kernel_op_info_t;

const kernel_op_info_t *kernel_op_info(kernel_op_t op);

/* The operator of this name; KERNEL_OP_COUNT: there is none. */
kernel_op_t kernel_op_find(const char *name);

/* The operator in its place if fewer digits will do (option fast_math): often itself. */
kernel_op_t kernel_op_fast(kernel_op_t op);

typedef struct kernel_value {
  kernel_op_t op;
  cleave_dtype_t dtype; /* never F16 or BF16 */
  bool per_row;         /* one per row, not one per element */
  uint32_t operands[3];
  double alpha;
  double beta;
  uint64_t bits;         /* a constant: its element, from the first byte on */
  uint32_t input;        /* a load; of several: the first, the others follow it */
  uint32_t parts;        /* a load: how many inputs it joins, or 0: it is one tensor */
  int32_t along;         /* the axis of the space along which they follow each other */
  cleave_dtype_t rounds; /* a cast: F16 or BF16 where it rounds to that; otherwise UNKNOWN */
} kernel_value_t;

typedef struct kernel_input {
  cleave_dtype_t dtype;
  int32_t rank;
  int8_t axes[CLEAVE_MAX_RANK]; /* per axis of the space: axis of the tensor, or -1: repeated */
  int8_t along;                 /* the axis along which it is a part of a load, or -1: it is none */
} kernel_input_t;

typedef struct kernel_output {
  cleave_dtype_t dtype;
  uint32_t value;
  bool adds; /* to what is in memory, instead of overwriting it */
} kernel_output_t;

typedef struct kernel_program {
  int32_t rank;
  int32_t reduced;
  uint32_t value_count;
  uint32_t input_count;
  uint32_t output_count;
  kernel_value_t values[KERNEL_MAX_VALUES];
  kernel_input_t inputs[KERNEL_MAX_TENSORS];
  kernel_output_t outputs[KERNEL_MAX_TENSORS];
} kernel_program_t;

/* An empty program over a space of `rank` axes, the last `reduced` of which are a row. */
CLEAVE_MUST_USE cleave_status_t kernel_program_create(int32_t rank, int32_t reduced,
                                                      kernel_program_t **out_program,
                                                      cleave_message_t *message);
void kernel_program_destroy(kernel_program_t *program);

/* Everything that adds to a program fails where types or numbers do not fit, says why, and then adds nothing.
 *
 * `axes` has an entry per axis of the space; the axes of the tensor occur once each, in any order. */
CLEAVE_MUST_USE cleave_status_t kernel_program_input(kernel_program_t *program, cleave_dtype_t dtype,
                                                     const int8_t *axes, uint32_t *out_input,
                                                     cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t kernel_program_load(kernel_program_t *program, uint32_t input,
                                                    uint32_t *out_value, cleave_message_t *message);
/* The inputs from `first` on as one tensor: they follow each other along an axis of the space, with sizes of
 * their own there that add up to that of the space. They have one dtype, all of them have that axis, and no
 * other load reads them. */
CLEAVE_MUST_USE cleave_status_t kernel_program_join(kernel_program_t *program, uint32_t first, uint32_t count,
                                                    int32_t along, uint32_t *out_value,
                                                    cleave_message_t *message);
/* The load of several inputs that has this one as a part; NULL: there is none. */
const kernel_value_t *kernel_program_join_of(const kernel_program_t *program, uint32_t input);
/* `element` is one element of the dtype, F16 and BF16 among them. */
CLEAVE_MUST_USE cleave_status_t kernel_program_constant(kernel_program_t *program, cleave_dtype_t dtype,
                                                        const void *element, uint32_t *out_value,
                                                        cleave_message_t *message);
/* Does what ONNX's Cast does; to F16 and BF16 it gives the float32 nearest to the input among those. */
CLEAVE_MUST_USE cleave_status_t kernel_program_cast(kernel_program_t *program, cleave_dtype_t dtype,
                                                    uint32_t value, uint32_t *out_value,
                                                    cleave_message_t *message);
/* Any other operator; KERNEL_WHERE takes a bool and two values of one dtype. */
CLEAVE_MUST_USE cleave_status_t kernel_program_apply(kernel_program_t *program, kernel_op_t op,
                                                     const uint32_t *operands, double alpha, double beta,
                                                     uint32_t *out_value, cleave_message_t *message);
/* Stores a value of this dtype, or a float32 as F16 or BF16; one per row where the value is that. */
CLEAVE_MUST_USE cleave_status_t kernel_program_output(kernel_program_t *program, cleave_dtype_t dtype,
                                                      uint32_t value, bool adds, cleave_message_t *message);

/* ---- what all files of the library use ---- */

/* Writes the line of a refusal, and returns `status`. */
cleave_status_t kernel_fail(cleave_message_t *message, cleave_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For `kernel_fail`, one of two texts, as the count is one or not; and the ending of most nouns:
 * ("%u input%s", count, KERNEL_PLURAL(count)). */
#define KERNEL_BY_COUNT(count, one, many) ((count) == 1 ? (one) : (many))
#define KERNEL_PLURAL(count) KERNEL_BY_COUNT(count, "", "s")

/* "f32"; "?" for what is not a dtype of a tensor here. */
const char *kernel_dtype_name(cleave_dtype_t dtype);

/* The dtype in which a tensor is computed: F32 for the short floats. */
static inline cleave_dtype_t kernel_compute_dtype(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16 ? CLEAVE_DTYPE_F32 : dtype;
}

/* Puts the axes of the space into another order: axis k of the new one is axis axes[k] of the old one, or a
 * part of it. Each old axis occurs at least once, its outer parts before its inner ones; axes of inputs
 * follow in the order of the space. Fails on programs with reductions or with loads of several inputs. */
CLEAVE_MUST_USE cleave_status_t kernel_program_relay(kernel_program_t *program, int32_t rank,
                                                     const int32_t *axes, cleave_message_t *message);

#endif /* CLEAVE_KERNELS_PROGRAM_H */
