// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of other sets as what they mean in ONNX's own: a function makes the nodes, of canonical
 * operators, that take the place of a call. After a failure all that follows does nothing.
 */
#ifndef CLEAVE_FORMATS_ONNX_READ_ONNX_MAKER_H
#define CLEAVE_FORMATS_ONNX_READ_ONNX_MAKER_H

#include "formats/onnx/read/onnx_canonical.h"

typedef struct cleave_onnx_maker {
  cleave_onnx_call_t *call;
  cleave_node_t last; /* that was made; its types are inferred once its attributes are there */
  cleave_status_t status;
  cleave_error_t *error;
} cleave_onnx_maker_t;

typedef void (*cleave_onnx_meaning_t)(cleave_onnx_maker_t *maker);

#define CLEAVE_ONNX_NONE CLEAVE_VALUE_NONE

/* Input `index` of the call, or NONE. */
cleave_value_t cleave_make_input(const cleave_onnx_maker_t *maker, uint32_t index);
bool cleave_make_has(const cleave_onnx_maker_t *maker, uint32_t index);

/* A node with these inputs: its only output, or its first one of `output_count`. NONE after a failure. */
cleave_value_t cleave_make_node(cleave_onnx_maker_t *maker, const char *op, const cleave_value_t *inputs,
                                uint32_t input_count, uint32_t output_count);
/* CLEAVE_MAKE(maker, "Add", a, b): one output. */
#define CLEAVE_MAKE(maker, op, ...)                                  \
  cleave_make_node(maker, op, (const cleave_value_t[]){__VA_ARGS__}, \
                   sizeof((const cleave_value_t[]){__VA_ARGS__}) / sizeof(cleave_value_t), 1)
/* Output `index` of the node that was made last. */
cleave_value_t cleave_make_result(cleave_onnx_maker_t *maker, uint32_t index);
/* Attributes of the node that was made last. */
void cleave_make_int(cleave_onnx_maker_t *maker, const char *name, int64_t value);
void cleave_make_float(cleave_onnx_maker_t *maker, const char *name, double value);
void cleave_make_ints(cleave_onnx_maker_t *maker, const char *name, const int64_t *values, size_t count);
void cleave_make_text(cleave_onnx_maker_t *maker, const char *name, const char *value);
/* Attributes of the call whose names are in `names`, with blanks between them, if it has them. */
void cleave_make_copy(cleave_onnx_maker_t *maker, const char *names);

/* Constants: a scalar of the dtype of `like`; a vector of int64, or an int64 scalar. */
cleave_value_t cleave_make_number(cleave_onnx_maker_t *maker, cleave_value_t like, double number);
cleave_value_t cleave_make_list(cleave_onnx_maker_t *maker, const int64_t *values, uint32_t count);
#define CLEAVE_MAKE_LIST(maker, ...)                      \
  cleave_make_list(maker, (const int64_t[]){__VA_ARGS__}, \
                   sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
cleave_value_t cleave_make_index(cleave_onnx_maker_t *maker, int64_t number);

/* Sums of what is there: NONE is nothing. */
cleave_value_t cleave_make_sum(cleave_onnx_maker_t *maker, cleave_value_t a, cleave_value_t b);
cleave_value_t cleave_make_cast(cleave_onnx_maker_t *maker, cleave_value_t value, cleave_dtype_t dtype);
cleave_value_t cleave_make_transpose(cleave_onnx_maker_t *maker, cleave_value_t value, const int64_t *perm,
                                     size_t rank);
/* Size of axis `axis`, as int64[1]. */
cleave_value_t cleave_make_size(cleave_onnx_maker_t *maker, cleave_value_t value, int64_t axis);
/* 0, 1, ..., size - 1; the size is int64, a scalar or of one element. */
cleave_value_t cleave_make_range(cleave_onnx_maker_t *maker, cleave_value_t size);

/* What is known: rank or -1, size or -1, dtype or UNKNOWN. */
int32_t cleave_make_rank(cleave_onnx_maker_t *maker, cleave_value_t value);
int64_t cleave_make_dim(cleave_onnx_maker_t *maker, cleave_value_t value, int32_t axis);
cleave_dtype_t cleave_make_dtype(cleave_onnx_maker_t *maker, cleave_value_t value);

/* Output `index` of the call is this value. Outputs that are used and that no value becomes are refused. */
void cleave_make_output(cleave_onnx_maker_t *maker, uint32_t index, cleave_value_t value);
void cleave_make_refuse(cleave_onnx_maker_t *maker, const char *reason);
/* Refuses unless an attribute is this number, which it is, too, if it is left out. */
void cleave_make_expect(cleave_onnx_maker_t *maker, const char *name, int64_t value);
/* Refuses if one of the inputs first .. last is given. */
void cleave_make_without(cleave_onnx_maker_t *maker, uint32_t first, uint32_t last);

/* Puts the nodes in the place of the call. */
CLEAVE_STATUS cleave_onnx_make(cleave_onnx_call_t *call, cleave_onnx_meaning_t meaning,
                               cleave_error_t *error);

/* The meaning of an operator of the domain com.microsoft, or of one that ONNX Runtime writes into the default
 * domain; NULL if it is not read (onnx_microsoft.c). */
cleave_onnx_meaning_t cleave_onnx_find_microsoft(const cleave_onnx_node_t *node);

/* The meanings, by subject. */
void cleave_onnx_mean_attention(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_multi_head_attention(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_group_query_attention(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_rotary_embedding(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_rotary_embedding_23(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_q_linear(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_q_linear_concat(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_q_linear_pool(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_dynamic_quantize_matmul(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_matmul_integer_to_float(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_quantize(cleave_onnx_maker_t *maker);
void cleave_onnx_mean_gather_block_quantized(cleave_onnx_maker_t *maker);

#endif /* CLEAVE_FORMATS_ONNX_READ_ONNX_MAKER_H */
