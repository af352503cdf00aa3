// SPDX-License-Identifier: Apache-2.0
// Types and instruction sets. oneDNN computes bfloat16 with AVX-512 alone, too, but by emulation, slower than
// float32: that does not count as having it.
#include "onednn/library/types.h"

#include <string.h>

static const struct {
  dnnl_data_type_t type;
  const char *name;
} names[] = {{dnnl_f32, "float32"}, {dnnl_bf16, "bfloat16"}, {dnnl_f16, "float16"}};

enum { TYPES = sizeof(names) / sizeof(names[0]) };

dnnl_data_type_t onednn_type_named(const char *name) {
  if (strcmp(name, "int8") == 0) {
    return dnnl_f32;
  }
  for (size_t k = 0; k < TYPES; k++) {
    if (strcmp(names[k].name, name) == 0) {
      return names[k].type;
    }
  }
  return dnnl_data_type_undef;
}

const char *onednn_type_name(dnnl_data_type_t type) {
  for (size_t k = 0; k < TYPES; k++) {
    if (names[k].type == type) {
      return names[k].name;
    }
  }
  return "another type";
}

dnnl_data_type_t onednn_type_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return dnnl_f32;
    case CLEAVE_DTYPE_U8: return dnnl_u8;
    case CLEAVE_DTYPE_I8: return dnnl_s8;
    default: return dnnl_data_type_undef;
  }
}

bool onednn_type_is_byte(dnnl_data_type_t type) {
  return type == dnnl_u8 || type == dnnl_s8;
}

// Bits of a set are there if those of all sets below it are.
static bool has(dnnl_cpu_isa_t wanted) {
  unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
  return (isa & (unsigned)wanted) == (unsigned)wanted;
}

const char *onednn_type_missing(dnnl_data_type_t type) {
  if (type == dnnl_bf16) {
    return has(dnnl_cpu_isa_avx512_core_bf16) ? NULL : "this processor has no AVX512_BF16";
  }
  if (type == dnnl_f16) {
#if DNNL_VERSION_MAJOR < 3
    return "oneDNN 2 does not multiply float16 numbers on processors";
#else
    return has(dnnl_cpu_isa_avx512_core_fp16) ? NULL : "this processor has no AVX512_FP16";
#endif
  }
  return type == dnnl_f32 ? NULL : "oneDNN does not multiply numbers of this type";
}

const char *onednn_bytes_saturate(void) {
  return has(dnnl_cpu_isa_avx512_core_vnni) || has(dnnl_cpu_isa_avx2_vnni)
             ? NULL
             : "this processor has neither AVX512_VNNI nor AVX_VNNI";
}
