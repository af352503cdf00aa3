// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of two broadcast inputs share this. An operator has one row function per dtype, in an array
 * indexed by dtype; a row sees each input either dense or as one repeated element (stride 0). If there is
 * none for a dtype, the operands are converted in blocks to the dtype it computes in.
 */
#ifndef CLEAVE_CPU_BINARY_H
#define CLEAVE_CPU_BINARY_H

#include "cpu/common/loop.h"
#include "kernels/vector_math.h"

enum { CPU_DTYPE_COUNT = CLEAVE_DTYPE_BF16 + 1 };

typedef struct cpu_binary_state {
  cpu_row_fn_t row;       /* gets this state as its context */
  cleave_dtype_t compute; /* of both operands inside `row` */
  cleave_dtype_t result;  /* of what `row` writes */
  bool converts;          /* the tensors have other dtypes than `row` */
  cleave_dtype_t a;
  cleave_dtype_t b;
  cleave_dtype_t out;
  int64_t cost;
} cpu_binary_state_t;

/* Chooses the row for inputs of one dtype, and an output of the same dtype or of BOOL. */
CLEAVE_MUST_USE cleave_status_t cpu_binary_prepare(const cpu_prepare_t *prepare, cpu_binary_state_t *state,
                                                   const cpu_row_fn_t *rows, bool to_bool,
                                                   cleave_message_t *message);

CLEAVE_MUST_USE cleave_status_t cpu_binary_run(const cpu_call_t *call, cleave_message_t *message);

/* Applies the state's operator to two tensors that broadcast to `output`, whose shape has been checked. */
void cpu_binary_apply(const cpu_call_t *call, const cpu_binary_state_t *state, cpu_tensor_t *output,
                      const cpu_tensor_t *a, const cpu_tensor_t *b);

/* A row function from an expression of x and y. */
#define CPU_BINARY_ROW(attribute, name, T, R, EXPRESSION)                                           \
  attribute static void name(void *context, unsigned char *const *pointers, const int64_t *strides, \
                             int64_t count) {                                                       \
    (void)context;                                                                                  \
    R *out = (R *)(void *)pointers[0];                                                              \
    const T *a = (const T *)(const void *)pointers[1];                                              \
    const T *b = (const T *)(const void *)pointers[2];                                              \
    if (strides[1] != 0 && strides[2] != 0) {                                                       \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        T x = a[k];                                                                                 \
        T y = b[k];                                                                                 \
        out[k] = (R)(EXPRESSION);                                                                   \
      }                                                                                             \
    } else if (strides[1] != 0) {                                                                   \
      T y = *b;                                                                                     \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        T x = a[k];                                                                                 \
        out[k] = (R)(EXPRESSION);                                                                   \
      }                                                                                             \
    } else {                                                                                        \
      T x = *a;                                                                                     \
      int64_t step = strides[2] != 0;                                                               \
      if (step == 0) {                                                                              \
        T y = *b;                                                                                   \
        R value = (R)(EXPRESSION);                                                                  \
        for (int64_t k = 0; k < count; k++) {                                                       \
          out[k] = value;                                                                           \
        }                                                                                           \
        return;                                                                                     \
      }                                                                                             \
      CPU_INDEPENDENT                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                         \
        T y = b[k];                                                                                 \
        out[k] = (R)(EXPRESSION);                                                                   \
      }                                                                                             \
    }                                                                                               \
  }

/* Every integer type: X(short name, type, unsigned type in which arithmetic wraps without promotion to int).
 */
#define CPU_SIGNED_TYPES(X) \
  X(i8, int8_t, uint32_t)   \
  X(i16, int16_t, uint32_t) \
  X(i32, int32_t, uint32_t) \
  X(i64, int64_t, uint64_t)

#define CPU_UNSIGNED_TYPES(X) \
  X(u8, uint8_t, uint32_t)    \
  X(u16, uint16_t, uint32_t)  \
  X(u32, uint32_t, uint32_t)  \
  X(u64, uint64_t, uint64_t)

#define CPU_INTEGER_TYPES(X) CPU_SIGNED_TYPES(X) CPU_UNSIGNED_TYPES(X)

/* Initialisers of an array of rows indexed by dtype, for functions named <op>_<type>. */
#define CPU_FLOAT_ROWS(op) [CLEAVE_DTYPE_F32] = op##_f32, [CLEAVE_DTYPE_F64] = op##_f64
#define CPU_UNSIGNED_ROWS(op)                                                                \
  [CLEAVE_DTYPE_U8] = op##_u8, [CLEAVE_DTYPE_U16] = op##_u16, [CLEAVE_DTYPE_U32] = op##_u32, \
  [CLEAVE_DTYPE_U64] = op##_u64
#define CPU_SIGNED_ROWS(op)                                                                  \
  [CLEAVE_DTYPE_I8] = op##_i8, [CLEAVE_DTYPE_I16] = op##_i16, [CLEAVE_DTYPE_I32] = op##_i32, \
  [CLEAVE_DTYPE_I64] = op##_i64
#define CPU_INTEGER_ROWS(op) CPU_SIGNED_ROWS(op), CPU_UNSIGNED_ROWS(op)
#define CPU_NUMBER_ROWS(op) CPU_FLOAT_ROWS(op), CPU_INTEGER_ROWS(op)

#endif /* CLEAVE_CPU_BINARY_H */
