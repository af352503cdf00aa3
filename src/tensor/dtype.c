// SPDX-License-Identifier: Apache-2.0
/* One table of names; conversions of the 16-bit floats that are exact or round to nearest even. */
#include "tensor/dtype.h"

#include <string.h>

typedef struct dtype_name {
  const char *name;
  const char *short_name;
  const char *other_name;
  cleave_dtype_t dtype;
} dtype_name_t;

static const dtype_name_t names[] = {
    {"float32", "f32", "float", CLEAVE_DTYPE_F32},  {"uint8", "u8", "uint8", CLEAVE_DTYPE_U8},
    {"int8", "i8", "int8", CLEAVE_DTYPE_I8},        {"uint16", "u16", "uint16", CLEAVE_DTYPE_U16},
    {"int16", "i16", "int16", CLEAVE_DTYPE_I16},    {"int32", "i32", "int", CLEAVE_DTYPE_I32},
    {"int64", "i64", "long", CLEAVE_DTYPE_I64},     {"string", "str", "object", CLEAVE_DTYPE_STRING},
    {"bool", "bool", "boolean", CLEAVE_DTYPE_BOOL}, {"float16", "f16", "half", CLEAVE_DTYPE_F16},
    {"float64", "f64", "double", CLEAVE_DTYPE_F64}, {"uint32", "u32", "uint", CLEAVE_DTYPE_U32},
    {"uint64", "u64", "ulong", CLEAVE_DTYPE_U64},   {"bfloat16", "bf16", "bfloat16", CLEAVE_DTYPE_BF16},
};

const char *cleave_dtype_name(cleave_dtype_t dtype) {
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (names[k].dtype == dtype) {
      return names[k].name;
    }
  }
  return "unknown";
}

cleave_dtype_t cleave_dtype_find(const char *name) {
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(names[k].name, name) == 0 || strcmp(names[k].short_name, name) == 0 ||
        strcmp(names[k].other_name, name) == 0) {
      return names[k].dtype;
    }
  }
  return CLEAVE_DTYPE_UNKNOWN;
}

bool cleave_dtype_is_valid(int64_t number) {
  return number > 0 && number <= CLEAVE_DTYPE_BF16 && cleave_dtype_size((cleave_dtype_t)number) > 0;
}

bool cleave_dtype_is_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64 || dtype == CLEAVE_DTYPE_F16 ||
         dtype == CLEAVE_DTYPE_BF16;
}

bool cleave_dtype_is_integer(cleave_dtype_t dtype) {
  return (dtype >= CLEAVE_DTYPE_U8 && dtype <= CLEAVE_DTYPE_I64) || dtype == CLEAVE_DTYPE_U32 ||
         dtype == CLEAVE_DTYPE_U64;
}
