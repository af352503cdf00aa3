// SPDX-License-Identifier: Apache-2.0
// All pairs of element types from one macro; float16 and bfloat16 go through float in blocks.
#include "convert.h"

#include "vector_math.h"

/* Saturating float to integer; LOW and HIGH are the first values outside on either side. */
#define TO_INTEGER(value, T, MINIMUM, MAXIMUM, LOW, HIGH) \
  ((value) > (LOW) && (value) < (HIGH) ? (T)(value)       \
   : (value) >= (HIGH)                 ? (MAXIMUM)        \
   : (value) <= (LOW)                  ? (MINIMUM)        \
                                       : (T)0)

#define LOOP(name, S, T, EXPRESSION) VECTOR_LOOP(, name, S, T, EXPRESSION)

#define VECTOR_LOOP(attribute, name, S, T, EXPRESSION)                               \
  attribute static void name(const void *source, void *destination, int64_t count) { \
    const S *from = source;                                                          \
    T *to = destination;                                                             \
    for (int64_t k = 0; k < count; k++) {                                            \
      S x = from[k];                                                                 \
      to[k] = (EXPRESSION);                                                          \
    }                                                                                \
  }

/* Converts to integers whose bounds are numbers of S: it takes the bounds first, so that loops have no
 * branches. */
#define TO_SHORT(S, value, T, MINIMUM, MAXIMUM)              \
  ((T)(int32_t)((value) != (value)                           \
                    ? (S)0                                   \
                    : ((value) < (S)(MINIMUM) ? (S)(MINIMUM) \
                                              : ((value) > (S)(MAXIMUM) ? (S)(MAXIMUM) : (value)))))

#define FROM_FLOAT(s, S)                                                                                  \
  LOOP(s##_to_f32, S, float, (float)x)                                                                    \
  LOOP(s##_to_f64, S, double, (double)x)                                                                  \
  VECTOR_LOOP(CPU_VECTOR, s##_to_u8, S, uint8_t, TO_SHORT(S, x, uint8_t, 0, UINT8_MAX))                   \
  VECTOR_LOOP(CPU_VECTOR, s##_to_i8, S, int8_t, TO_SHORT(S, x, int8_t, INT8_MIN, INT8_MAX))               \
  VECTOR_LOOP(CPU_VECTOR, s##_to_u16, S, uint16_t, TO_SHORT(S, x, uint16_t, 0, UINT16_MAX))               \
  VECTOR_LOOP(CPU_VECTOR, s##_to_i16, S, int16_t, TO_SHORT(S, x, int16_t, INT16_MIN, INT16_MAX))          \
  LOOP(s##_to_i32, S, int32_t, TO_INTEGER(x, int32_t, INT32_MIN, INT32_MAX, (S)-2147483649.0, (S)0x1p31)) \
  LOOP(s##_to_i64, S, int64_t, TO_INTEGER(x, int64_t, INT64_MIN, INT64_MAX, (S)-0x1p63, (S)0x1p63))       \
  LOOP(s##_to_u32, S, uint32_t, TO_INTEGER(x, uint32_t, 0, UINT32_MAX, (S)-1, (S)0x1p32))                 \
  LOOP(s##_to_u64, S, uint64_t, TO_INTEGER(x, uint64_t, 0, UINT64_MAX, (S)-1, (S)0x1p64))                 \
  LOOP(s##_to_bool, S, uint8_t, (uint8_t)(x != 0))

#define FROM_INTEGER(s, S)                                \
  VECTOR_LOOP(CPU_VECTOR, s##_to_f32, S, float, (float)x) \
  LOOP(s##_to_f64, S, double, (double)x)                  \
  LOOP(s##_to_u8, S, uint8_t, (uint8_t)x)                 \
  LOOP(s##_to_i8, S, int8_t, (int8_t)x)                   \
  LOOP(s##_to_u16, S, uint16_t, (uint16_t)x)              \
  LOOP(s##_to_i16, S, int16_t, (int16_t)x)                \
  LOOP(s##_to_i32, S, int32_t, (int32_t)x)                \
  LOOP(s##_to_i64, S, int64_t, (int64_t)x)                \
  LOOP(s##_to_u32, S, uint32_t, (uint32_t)x)              \
  LOOP(s##_to_u64, S, uint64_t, (uint64_t)x)              \
  LOOP(s##_to_bool, S, uint8_t, (uint8_t)(x != 0))

FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)
FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i8, int8_t)
FROM_INTEGER(u16, uint16_t)
FROM_INTEGER(i16, int16_t)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_INTEGER(u32, uint32_t)
FROM_INTEGER(u64, uint64_t)
VECTOR_LOOP(CPU_VECTOR, f16_to_f32, uint16_t, float, cleave_half_to_float(x))
VECTOR_LOOP(CPU_VECTOR, bf16_to_f32, uint16_t, float, cleave_bfloat_to_float(x))
VECTOR_LOOP(CPU_VECTOR, f32_to_f16, float, uint16_t, cleave_float_to_half(x))
VECTOR_LOOP(CPU_VECTOR, f32_to_bf16, float, uint16_t, cleave_float_to_bfloat(x))

/* Rounding to odd keeps what is lost visible, so that rounding float to half afterwards is exact. */
static float f64_to_odd_f32(double value) {
  float near = (float)value;
  if (value != value || (double)near == value || isinf(near)) {
    return near;
  }
  uint32_t bits = cleave_float_to_bits(near);
  if ((bits & 1u) == 0) {
    bool away = fabs((double)near) > fabs(value);
    bits = away ? bits - 1u : bits + 1u;
  }
  return cleave_bits_to_float(bits);
}

static void f64_to_f16(const void *source, void *destination, int64_t count) {
  const double *from = source;
  uint16_t *to = destination;
  for (int64_t k = 0; k < count; k++) {
    to[k] = cleave_float_to_half(f64_to_odd_f32(from[k]));
  }
}

static void f64_to_bf16(const void *source, void *destination, int64_t count) {
  const double *from = source;
  uint16_t *to = destination;
  for (int64_t k = 0; k < count; k++) {
    to[k] = cleave_float_to_bfloat(f64_to_odd_f32(from[k]));
  }
}

typedef void (*convert_fn_t)(const void *source, void *destination, int64_t count);

enum { COLUMNS = 11 };

static int column(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return 0;
    case CLEAVE_DTYPE_F64: return 1;
    case CLEAVE_DTYPE_U8: return 2;
    case CLEAVE_DTYPE_I8: return 3;
    case CLEAVE_DTYPE_U16: return 4;
    case CLEAVE_DTYPE_I16: return 5;
    case CLEAVE_DTYPE_I32: return 6;
    case CLEAVE_DTYPE_I64: return 7;
    case CLEAVE_DTYPE_U32: return 8;
    case CLEAVE_DTYPE_U64: return 9;
    case CLEAVE_DTYPE_BOOL: return 10;
    default: return -1;
  }
}

#define ROW(s)                                                                                    \
  {                                                                                               \
    s##_to_f32, s##_to_f64, s##_to_u8, s##_to_i8, s##_to_u16, s##_to_i16, s##_to_i32, s##_to_i64, \
        s##_to_u32, s##_to_u64, s##_to_bool                                                       \
  }

static const convert_fn_t table[COLUMNS][COLUMNS] = {
    ROW(f32), ROW(f64), ROW(u8), ROW(i8), ROW(u16), ROW(i16), ROW(i32), ROW(i64), ROW(u32), ROW(u64), ROW(u8),
};

static void convert_from_short(cleave_dtype_t from, const void *source, cleave_dtype_t to, void *destination,
                               int64_t count) {
  float block[CPU_BLOCK];
  size_t size = cleave_dtype_size(to);
  convert_fn_t widen = from == CLEAVE_DTYPE_F16 ? f16_to_f32 : bf16_to_f32;
  for (int64_t k = 0; k < count; k += CPU_BLOCK) {
    int64_t n = count - k < CPU_BLOCK ? count - k : CPU_BLOCK;
    widen((const uint16_t *)source + k, block, n);
    cpu_convert(CLEAVE_DTYPE_F32, block, to, (unsigned char *)destination + (size_t)k * size, n);
  }
}

static void convert_to_short(cleave_dtype_t from, const void *source, cleave_dtype_t to, void *destination,
                             int64_t count) {
  double block[CPU_BLOCK];
  size_t size = cleave_dtype_size(from);
  convert_fn_t narrow = to == CLEAVE_DTYPE_F16 ? f64_to_f16 : f64_to_bf16;
  for (int64_t k = 0; k < count; k += CPU_BLOCK) {
    int64_t n = count - k < CPU_BLOCK ? count - k : CPU_BLOCK;
    cpu_convert(from, (const unsigned char *)source + (size_t)k * size, CLEAVE_DTYPE_F64, block, n);
    narrow(block, (uint16_t *)destination + k, n);
  }
}

void cpu_convert(cleave_dtype_t from, const void *source, cleave_dtype_t to, void *destination,
                 int64_t count) {
  if (from == to) {
    if (count > 0 && source != destination) {
      memmove(destination, source, (size_t)count * cleave_dtype_size(from));
    }
  } else if (from == CLEAVE_DTYPE_F16 && to == CLEAVE_DTYPE_F32) {
    f16_to_f32(source, destination, count);
  } else if (from == CLEAVE_DTYPE_BF16 && to == CLEAVE_DTYPE_F32) {
    bf16_to_f32(source, destination, count);
  } else if (cpu_dtype_is_short_float(from)) {
    convert_from_short(from, source, to, destination, count);
  } else if (from == CLEAVE_DTYPE_F32 && to == CLEAVE_DTYPE_F16) {
    f32_to_f16(source, destination, count);
  } else if (from == CLEAVE_DTYPE_F32 && to == CLEAVE_DTYPE_BF16) {
    f32_to_bf16(source, destination, count);
  } else if (from == CLEAVE_DTYPE_F64 && cpu_dtype_is_short_float(to)) {
    (to == CLEAVE_DTYPE_F16 ? f64_to_f16 : f64_to_bf16)(source, destination, count);
  } else if (cpu_dtype_is_short_float(to)) {
    convert_to_short(from, source, to, destination, count);
  } else if (column(from) >= 0 && column(to) >= 0) {
    table[column(from)][column(to)](source, destination, count);
  }
}
