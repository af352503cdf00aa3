// SPDX-License-Identifier: Apache-2.0
/* Names and kinds of element types; sizes are in cleave/backend.h. */
#ifndef CLEAVE_TENSOR_DTYPE_H
#define CLEAVE_TENSOR_DTYPE_H

#include "base/status.h"

/* "float32", "int64", "bool", ...: NumPy's names, "unknown" for others. */
const char *cleave_dtype_name(cleave_dtype_t dtype);
/* The dtype of a name; "float", "double", "half" and short forms "f32", "i64", "u8" too. UNKNOWN if none. */
cleave_dtype_t cleave_dtype_find(const char *name);
/* A dtype that cleave knows, STRING among them? For numbers out of files. */
bool cleave_dtype_is_valid(int64_t number);
bool cleave_dtype_is_float(cleave_dtype_t dtype);   /* f64 f32 f16 bf16 */
bool cleave_dtype_is_integer(cleave_dtype_t dtype); /* signed and unsigned, without bool */

/* IEEE binary16 and bfloat16 to and from binary32, round to nearest even. */

#endif /* CLEAVE_TENSOR_DTYPE_H */
