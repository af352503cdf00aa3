// SPDX-License-Identifier: Apache-2.0
/*
 * Types of elements beside float32, and whether this processor multiplies them faster than float32.
 */
#ifndef ONEDNN_TYPES_H
#define ONEDNN_TYPES_H

#include "onednn/library/support.h"

/* The type of a name that rules know ("float32", "bfloat16", "float16"), or dnnl_data_type_undef. "int8" is
 * float32: fusions say which products multiply integers (analysis/quantization.h), and all else stays what it
 * is. */
dnnl_data_type_t onednn_type_named(const char *name);
const char *onednn_type_name(dnnl_data_type_t type);

/* The type of elements of a value that programs can hold: float32 and 8-bit integers; or
 * dnnl_data_type_undef.
 */
dnnl_data_type_t onednn_type_of(cleave_dtype_t dtype);

/* Is it an 8-bit integer? */
bool onednn_type_is_byte(dnnl_data_type_t type);

/* Why oneDNN does not multiply numbers of this type on this processor, or does so no faster than float32, in
 * words; NULL if it does. The variable DNNL_MAX_CPU_ISA of the environment counts. */
const char *onednn_type_missing(dnnl_data_type_t type);

/* Why sums of products of 8-bit integers saturate on this processor, in words; NULL if they do not. Without
 * VNNI two products are added up in 16 bits: exact for unsigned data and weights from -64 to 64. */
const char *onednn_bytes_saturate(void);

#endif /* ONEDNN_TYPES_H */
