// SPDX-License-Identifier: Apache-2.0
// Sparse constants: their two forms, ONNX's coordinates, what does not fit, and a library that reads them.
#include "tensor/sparse.h"

#include "backend/registry/registry.h"
#include "graph/order.h"
#include "onnx_builder.h"
#include "session_case.h"
#include "unit.h"

static cleave_tensor_t *make(int32_t rank, const int64_t *dims, const float *values) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, e));
  if (tensor->bytes > 0) {
    memcpy(tensor->data, values, tensor->bytes);
  }
  return tensor;
}

static void expect_ints(const int64_t *found, const int64_t *expected, size_t count) {
  for (size_t k = 0; k < count; k++) {
    ck_assert_int_eq(found[k], expected[k]);
  }
}

/* ---- forms ---- */

UNIT_TEST(a_matrix_is_stored_row_after_row) {
  cleave_tensor_t *tensor = make(2, (int64_t[]){3, 4}, (float[]){0, 5, 0, 6, 0, 0, 0, 0, 7, 0, -0.0F, 0});
  unit_ok(cleave_tensor_add_sparse(tensor, e));
  const cleave_sparse_t *sparse = tensor->sparse;
  ck_assert_int_eq(sparse->storage, CLEAVE_STORAGE_CSR);
  ck_assert_int_eq(sparse->view.stored, 4);
  expect_ints(sparse->view.indices, (int64_t[]){1, 3, 0, 2}, 4);
  expect_ints(sparse->view.offsets, (int64_t[]){0, 2, 2, 4}, 4);
  const float values[4] = {5, 6, 7, -0.0F};
  ck_assert_mem_eq(sparse->data, values, sizeof values);
  cleave_tensor_release(tensor);
}

UNIT_TEST(other_ranks_store_the_rows_that_are_not_zero) {
  cleave_tensor_t *tensor = make(3, (int64_t[]){4, 1, 2}, (float[]){0, 0, 1, 0, 0, 0, 0, 2});
  unit_ok(cleave_tensor_add_sparse(tensor, e));
  const cleave_sparse_t *sparse = tensor->sparse;
  ck_assert_int_eq(sparse->storage, CLEAVE_STORAGE_ROW_SPARSE);
  ck_assert_int_eq(sparse->view.stored, 2);
  ck_assert_ptr_null(sparse->view.offsets);
  expect_ints(sparse->view.indices, (int64_t[]){1, 3}, 2);
  ck_assert_mem_eq(sparse->data, ((float[]){1, 0, 0, 2}), 4 * sizeof(float));
  cleave_tensor_release(tensor);
}

UNIT_TEST(empty_and_zero_tensors_store_nothing) {
  const int64_t shapes[][2] = {{0, 3}, {3, 0}, {2, 2}};
  for (size_t k = 0; k < 3; k++) {
    cleave_tensor_t *tensor = make(2, shapes[k], (float[]){0, 0, 0, 0});
    unit_ok(cleave_tensor_add_sparse(tensor, e));
    ck_assert_int_eq(tensor->sparse->view.stored, 0);
    ck_assert_int_eq(tensor->sparse->view.offsets[shapes[k][0]], 0);
    ck_assert_ptr_nonnull(tensor->sparse->data);
    cleave_tensor_release(tensor);
  }
}

UNIT_TEST(a_change_of_content_ends_the_sparse_form) {
  cleave_tensor_t *tensor = make(1, (int64_t[]){2}, (float[]){0, 1});
  unit_ok(cleave_tensor_add_sparse(tensor, e));
  cleave_tensor_touch(tensor);
  ck_assert_ptr_null(tensor->sparse);
  cleave_tensor_release(tensor);
  tensor = make(0, NULL, (float[]){1});
  unit_fails(cleave_tensor_add_sparse(tensor, e), CLEAVE_ERROR_UNSUPPORTED,
             "scalars and strings have no sparse form");
  cleave_tensor_release(tensor);
}

/* ---- ONNX ---- */

typedef struct coordinates {
  const char *dims;
  const int64_t *indices;
  int64_t count;
  int64_t columns; /* of the indices; 0: a list */
} coordinates_t;

/* A SparseTensorProto "w" of float values 1, 2, 3, ... in a field of `out`. */
static void put_sparse(cleave_text_t *out, uint32_t field, const coordinates_t *c) {
  size_t mark = cleave_protobuf_begin(out, field);
  size_t part = cleave_protobuf_begin(out, ONNX_SPARSE_VALUES);
  cleave_protobuf_put_text(out, ONNX_TENSOR_NAME, "w");
  cleave_protobuf_put_int(out, ONNX_TENSOR_DIMS, c->count);
  cleave_protobuf_put_int(out, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_F32);
  for (int64_t k = 0; k < c->count; k++) {
    cleave_protobuf_put_float(out, ONNX_TENSOR_FLOAT_DATA, (float)(k + 1));
  }
  cleave_protobuf_end(out, part);
  part = cleave_protobuf_begin(out, ONNX_SPARSE_INDICES);
  cleave_protobuf_put_int(out, ONNX_TENSOR_DIMS, c->count);
  if (c->columns > 0) {
    cleave_protobuf_put_int(out, ONNX_TENSOR_DIMS, c->columns);
  }
  cleave_protobuf_put_int(out, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_I64);
  for (int64_t k = 0; k < c->count * (c->columns > 0 ? c->columns : 1); k++) {
    cleave_protobuf_put_int(out, ONNX_TENSOR_INT64_DATA, c->indices[k]);
  }
  cleave_protobuf_end(out, part);
  const char *next = c->dims;
  while (*next != '\0') {
    char *end = NULL;
    cleave_protobuf_put_int(out, ONNX_SPARSE_DIMS, strtoll(next, &end, 10));
    next = end;
  }
  cleave_protobuf_end(out, mark);
}

/* y = x w, with w sparse: an initializer, or the value of a Constant. */
static void product_model(onnx_builder_t *b, const coordinates_t *c, bool as_node) {
  onnx_begin(b, 8, 17);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, "2 3");
  onnx_output(b, "y", CLEAVE_DTYPE_F32, NULL);
  if (as_node) {
    onnx_node(b, "Constant", "", "w");
    size_t mark = cleave_protobuf_begin(&b->graph, ONNX_NODE_ATTRIBUTE);
    cleave_protobuf_put_text(&b->graph, ONNX_ATTRIBUTE_NAME, "sparse_value");
    put_sparse(&b->graph, ONNX_ATTRIBUTE_SPARSE_TENSOR, c);
    cleave_protobuf_put_int(&b->graph, ONNX_ATTRIBUTE_TYPE, ONNX_TYPE_SPARSE_TENSOR);
    cleave_protobuf_end(&b->graph, mark);
    onnx_end_node(b);
  } else {
    put_sparse(&b->graph, ONNX_GRAPH_SPARSE_INITIALIZER, c);
  }
  onnx_simple(b, "MatMul", "x w", "y");
}

static const cleave_tensor_t *find_weight(const cleave_graph_t *graph) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_tensor_t *tensor = cleave_graph_value(graph, (cleave_value_t){k})->tensor;
    if (tensor != NULL && tensor->rank == 2) {
      return tensor;
    }
  }
  return NULL;
}

UNIT_TEST(onnx_coordinates_become_both_forms) {
  const int64_t linear[3] = {1, 4, 5};
  const int64_t pairs[6] = {0, 1, 2, 0, 2, 1};
  const coordinates_t cases[2] = {{"3 2", linear, 3, 0}, {"3 2", pairs, 3, 2}};
  const float dense[6] = {0, 1, 0, 0, 2, 3};
  for (int k = 0; k < 4; k++) {
    onnx_builder_t b;
    cleave_graph_t *graph = NULL;
    product_model(&b, &cases[k % 2], k >= 2);
    unit_ok(onnx_read(&b, &graph, e));
    const cleave_tensor_t *weight = find_weight(graph);
    ck_assert_ptr_nonnull(weight);
    ck_assert_mem_eq(weight->data, dense, sizeof dense);
    ck_assert_ptr_nonnull(weight->sparse);
    expect_ints(weight->sparse->view.indices, (int64_t[]){1, 0, 1}, 3);
    expect_ints(weight->sparse->view.offsets, (int64_t[]){0, 1, 1, 3}, 4);
    cleave_graph_destroy(graph);
  }
}

static void refuses(const coordinates_t *c, cleave_status_t status, const char *message) {
  onnx_builder_t b;
  product_model(&b, c, false);
  onnx_refused(&b, status, message);
}

UNIT_TEST(onnx_coordinates_that_do_not_fit_are_refused) {
  const char *outside = "model: sparse tensor 'w': index 1 is outside of its shape";
  refuses(&(coordinates_t){"3 2", (int64_t[]){1, 6}, 2, 0}, CLEAVE_ERROR_FORMAT, outside);
  refuses(&(coordinates_t){"3 2", (int64_t[]){1, -1}, 2, 0}, CLEAVE_ERROR_FORMAT, outside);
  refuses(&(coordinates_t){"3 2", (int64_t[]){0, 0, 0, 2}, 2, 2}, CLEAVE_ERROR_FORMAT, outside);
  refuses(&(coordinates_t){"3 2", (int64_t[]){0, 0, INT64_MAX, 1}, 2, 2}, CLEAVE_ERROR_FORMAT, outside);
  const char *order = "model: sparse tensor 'w': index 1 is not above the one before it";
  refuses(&(coordinates_t){"3 2", (int64_t[]){4, 4}, 2, 0}, CLEAVE_ERROR_FORMAT, order);
  refuses(&(coordinates_t){"3 2", (int64_t[]){1, 0, 0, 1}, 2, 2}, CLEAVE_ERROR_FORMAT, order);
  refuses(&(coordinates_t){"3 2", (int64_t[]){0, 0, 0}, 1, 3}, CLEAVE_ERROR_FORMAT,
          "model: sparse tensor 'w': its indices are not int64[1] or int64[1,2], as its values need");
  refuses(&(coordinates_t){"", (int64_t[]){0}, 1, 0}, CLEAVE_ERROR_UNSUPPORTED,
          "model: sparse tensor 'w': expected 1 to 8 dimensions");
  refuses(&(coordinates_t){"1000000 1000000", (int64_t[]){0}, 1, 0}, CLEAVE_ERROR_LIMIT,
          "model: sparse tensor 'w': its dense form would have more than 2147483648 bytes");
  refuses(&(coordinates_t){"-3 2", (int64_t[]){0}, 1, 0}, CLEAVE_ERROR_LIMIT,
          "model: sparse tensor 'w': its dense form would have more than 2147483648 bytes");
}

UNIT_TEST(onnx_sparse_tensors_without_parts_are_refused) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_output(&b, "w", CLEAVE_DTYPE_F32, NULL);
  cleave_protobuf_end(&b.graph, cleave_protobuf_begin(&b.graph, ONNX_GRAPH_SPARSE_INITIALIZER));
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: sparse tensor '': it has no values");
}

/* ---- a library ---- */

/* x [2,3] times a matrix [3,2] with three elements that are not zero. */
static session_case_t product_case(bool is_sparse) {
  static const int64_t left[2] = {2, 3};
  static const int64_t right[2] = {3, 2};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, left);
  cleave_value_t w = session_case_floats(&c, "w", 2, right, (float[]){0, 10, 0, 0, 100, 1000});
  if (is_sparse) {
    unit_ok(cleave_tensor_add_sparse(cleave_graph_value(c.graph, w)->tensor, e));
  }
  session_case_output(&c, session_case_node(&c, "MatMul", "product", x, w, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  unit_ok(cleave_registry_load(NULL, CLEAVE_BINARY_DIR "/tests/accelerators/libsparse.so", NULL, e));
  session_case_partition(&c, "MatMul", "sparse");
  session_case_feed(&c, 2, left, (float[]){1, 2, 3, 4, 5, 6});
  return c;
}

UNIT_TEST(a_library_that_takes_sparse_constants_gets_them) {
  session_case_t c = product_case(true);
  ck_assert_uint_eq(c.plan->region_count, 1);
  session_case_compile(&c, NULL);
  session_case_run(&c);
  const float expected[4] = {300, 3010, 600, 6040};
  for (int64_t k = 0; k < 4; k++) {
    ck_assert_float_eq(session_case_value(&c, 0, k), expected[k]);
  }
  session_case_deinit(&c);
}

UNIT_TEST(dense_constants_stay_dense) {
  session_case_t c = product_case(false);
  ck_assert_uint_eq(c.plan->region_count, 0);
  ck_assert_uint_eq(c.plan->note_count, 1);
  ck_assert_ptr_nonnull(strstr(c.plan->notes[0].reason, "the right matrix is not sparse"));
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 6040);
  session_case_deinit(&c);
}

UNIT_SUITE("sparse")
