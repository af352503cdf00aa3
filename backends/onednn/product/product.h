// SPDX-License-Identifier: Apache-2.0
/*
 * Shapes and operands of one matrix product, MatMul or Gemm. A right-hand side that is one matrix makes the
 * left-hand side one tall matrix; products of rank 3 get a leading one.
 */
#ifndef ONEDNN_PRODUCT_H
#define ONEDNN_PRODUCT_H

#include "onednn/plan/fit.h"
#include "onednn/plan/tensors.h"

// Shapes of one product, operands with rank at least 2.
typedef struct product {
  onednn_shape_t a;       // [..., M, K]
  onednn_shape_t b;       // [..., K, N]
  onednn_shape_t result;  // of the node
  onednn_shape_t kernel;  // of the primitive
  bool tall;              // b is one matrix, a and the result are merged to matrices
} onednn_product_t;

/* The size of the dimension `back` from the end, 1 being the last. */
int64_t onednn_product_last(const onednn_shape_t *shape, int32_t back);

/* A tensor as a matrix, or several: vectors get a dimension, as a row or a column; `transposed` turns it. */
CLEAVE_MUST_USE cleave_status_t onednn_product_matrix(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                      bool transposed, bool column, onednn_tensor_t *out);

/* Do the inner dimensions agree? */
CLEAVE_MUST_USE cleave_status_t onednn_product_check(const onednn_plan_t *plan,
                                                     const cleave_node_view_t *node,
                                                     const onednn_product_t *product);

/* From the shapes of operands and result, those of the primitive. */
void onednn_product_shapes(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                           onednn_product_t *product);

/* An operand in a type and under a shape that matmul reads directly. */
CLEAVE_MUST_USE cleave_status_t onednn_product_operand(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                       dnnl_data_type_t type, const onednn_shape_t *shape,
                                                       onednn_tensor_t *out);

/* The wanted order of the result, if the primitive's shape can say it; plain otherwise. */
onednn_layout_t onednn_product_result(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                      const onednn_product_t *product, dnnl_data_type_t type);

/* A factor and a term per column, which a product takes from the posts behind it. */
typedef struct onednn_folding {
  float *scale;
  float *shift;
  uint32_t posts; /* that they are made of */
  bool scaled;    /* some factor is not 1 */
  bool shifted;   /* some term is not 0 */
} onednn_folding_t;

/* `constant`: weights that factors can be multiplied into. */
CLEAVE_MUST_USE cleave_status_t onednn_product_fold(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                    const onednn_product_t *product, bool constant,
                                                    onednn_folding_t *folding);

/* The terms as a constant that is broadcast to the kernel's shape. */
CLEAVE_MUST_USE cleave_status_t onednn_product_bias(onednn_plan_t *plan, const onednn_product_t *product,
                                                    const onednn_folding_t *folding, onednn_tensor_t *out);

/* emit_matrix.c: a product by kernels/matrix. The first sum with a tensor of the result's shape, and bounds
 * or a function behind it, are part of the step; with AMX the rounding to integers behind these, too. */
typedef struct onednn_matrix_request {
  onednn_matrix_kind_t kind;
  kernel_matrix_t matrix;        /* without bounds and strides of what is added and of the result */
  onednn_tensor_t source;        /* rows of the matrix: float32; for AMX bfloat16 or integers */
  onednn_tensor_t weights;       /* constant: in panels of the matrix, or packed integers */
  const kernel_narrow_t *narrow; /* how those are packed, if they are integers */
  onednn_tensor_t scale;         /* if source and weights are integers: one per column, for their sums */
  onednn_tensor_t bias;          /* if `has_bias` */
  bool has_bias;
  onednn_shape_t shape;   /* of the result, as the graph sees it */
  onednn_layout_t result; /* with one stride for all rows, and no gap between columns */
  const onednn_post_t *posts;
  uint32_t post_count;
  const char *label;
} onednn_matrix_request_t;

/* Does kernels/matrix multiply it by AMX, with all posts? The request has its source, but not its weights. */
bool onednn_amx_suits(const onednn_plan_t *plan, const onednn_matrix_request_t *request);

/* Does kernels/amx multiply it in thirds? */
bool onednn_thirds_suit(onednn_plan_t *plan, const onednn_matrix_request_t *request);

/* The weights of a request for AMX, from a constant matrix. */
CLEAVE_MUST_USE cleave_status_t onednn_amx_pack(onednn_plan_t *plan, const onednn_tensor_t *weights,
                                                onednn_matrix_request_t *request);

/* The wanted layout of the result if its rows have one stride and no gaps, or else row-major. */
onednn_layout_t onednn_matrix_result(const onednn_layout_t *wanted, const onednn_product_t *product);

/* Both add the steps and bind the result of the kernel. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_product(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_matrix(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                   const onednn_matrix_request_t *request);

#endif /* ONEDNN_PRODUCT_H */
