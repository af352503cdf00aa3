// SPDX-License-Identifier: Apache-2.0
/* Weights: typed and raw data, data in other files, what does not fit; and files with one tensor. */
#include <sys/stat.h>
#include <unistd.h>

#include "onnx_builder.h"
#include "system/clock.h"
#include "unit.h"

/* A folder of its own for a test that needs files. */
static const char *temporary_folder(void) {
  static char folder[32];
  (void)snprintf(folder, sizeof folder, "/tmp/cleave_onnx_XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  return folder;
}

static const char *path_in(const char *folder, const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_model(onnx_builder_t *builder, const char *path) {
  cleave_text_t bytes = onnx_finish(builder);
  unit_ok(cleave_file_write(path, bytes.data, bytes.length, e));
  cleave_text_deinit(&bytes);
}

static const cleave_tensor_t *constant_named(const cleave_graph_t *graph, const char *name) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    if (strcmp(cleave_value_name(graph, (cleave_value_t){k}), name) == 0) {
      return cleave_graph_value(graph, (cleave_value_t){k})->tensor;
    }
  }
  return NULL;
}

/* A model with one initializer, whose fields `put` writes. */
static void begin_tensor(onnx_builder_t *b, size_t *mark) {
  onnx_begin(b, 8, 17);
  *mark = cleave_protobuf_begin(&b->graph, ONNX_GRAPH_INITIALIZER);
  cleave_protobuf_put_text(&b->graph, ONNX_TENSOR_NAME, "w");
}

UNIT_TEST(converts_typed_data) {
  onnx_builder_t b;
  size_t mark = 0;
  cleave_graph_t *graph = NULL;
  begin_tensor(&b, &mark);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 3);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_I8);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_INT32_DATA, -3);
  cleave_protobuf_put_bytes(&b.graph, ONNX_TENSOR_INT32_DATA, "\x05\x7f", 2);
  cleave_protobuf_end(&b.graph, mark);
  mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INITIALIZER);
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_NAME, "h");
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_F16);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_INT32_DATA, 0x3c00);
  cleave_protobuf_end(&b.graph, mark);
  mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INITIALIZER);
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_NAME, "s");
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 2);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_STRING);
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_STRING_DATA, "first");
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_STRING_DATA, "");
  cleave_protobuf_end(&b.graph, mark);
  mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INITIALIZER);
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_NAME, "t");
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 3);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_BOOL);
  cleave_protobuf_put_bytes(&b.graph, ONNX_TENSOR_RAW_DATA, "\x00\x01\x40", 3);
  cleave_protobuf_end(&b.graph, mark);
  unit_ok(onnx_read(&b, &graph, e));
  const cleave_tensor_t *w = constant_named(graph, "w");
  ck_assert_int_eq(cleave_tensor_get_int(w, 0), -3);
  ck_assert_int_eq(cleave_tensor_get_int(w, 1), 5);
  ck_assert_int_eq(cleave_tensor_get_int(w, 2), 127);
  const cleave_tensor_t *h = constant_named(graph, "h");
  ck_assert_int_eq(h->rank, 0);
  ck_assert_double_eq(cleave_tensor_get_float(h, 0), 1.0);
  const cleave_tensor_t *s = constant_named(graph, "s");
  ck_assert_str_eq(((const char *const *)s->data)[0], "first");
  ck_assert_str_eq(((const char *const *)s->data)[1], "");
  const unsigned char *t = constant_named(graph, "t")->data;
  ck_assert_uint_eq(t[0], 0);
  ck_assert_uint_eq(t[1], 1);
  ck_assert_uint_eq(t[2], 1);
  cleave_graph_destroy(graph);
}

static void refuses_tensor(int64_t dtype, int64_t dim, uint32_t field, const void *data, size_t size,
                           cleave_status_t status, const char *message) {
  onnx_builder_t b;
  size_t mark = 0;
  begin_tensor(&b, &mark);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, dim);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, dtype);
  if (field != 0) {
    cleave_protobuf_put_bytes(&b.graph, field, data, size);
  }
  cleave_protobuf_end(&b.graph, mark);
  onnx_refused(&b, status, message);
}

/* int4 and uint4: two in a byte, the first one in its low half; raw, or a byte per number of int32_data. */
UNIT_TEST(widens_elements_of_four_bits) {
  static const int8_t signs[5] = {-8, 7, -1, 0, 5};
  static const uint8_t numbers[2] = {15, 9};
  onnx_builder_t b;
  size_t mark = 0;
  cleave_graph_t *graph = NULL;
  begin_tensor(&b, &mark);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 5);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, 22);
  cleave_protobuf_put_bytes(&b.graph, ONNX_TENSOR_RAW_DATA, "\x78\x0f\xf5", 3);
  cleave_protobuf_end(&b.graph, mark);
  mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INITIALIZER);
  cleave_protobuf_put_text(&b.graph, ONNX_TENSOR_NAME, "u");
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 1);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 2);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, 21);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_INT32_DATA, 0x9f);
  cleave_protobuf_end(&b.graph, mark);
  onnx_output(&b, "w", CLEAVE_DTYPE_I8, "5");
  onnx_output(&b, "u", CLEAVE_DTYPE_U8, "1 2");
  unit_ok(onnx_read(&b, &graph, e));
  const cleave_tensor_t *w = constant_named(graph, "w");
  const cleave_tensor_t *u = constant_named(graph, "u");
  ck_assert(w->dtype == CLEAVE_DTYPE_I8 && w->rank == 1 && w->count == 5);
  ck_assert_mem_eq(w->data, signs, sizeof signs);
  ck_assert(u->dtype == CLEAVE_DTYPE_U8 && u->rank == 2 && u->dims[1] == 2);
  ck_assert_mem_eq(u->data, numbers, sizeof numbers);
  cleave_graph_destroy(graph);
  refuses_tensor(22, 5, ONNX_TENSOR_RAW_DATA, "\x78\x0f", 2, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': its shape of int8 asks for 3 bytes, found 2 of raw data");
}

UNIT_TEST(refuses_tensors_whose_data_does_not_fit) {
  refuses_tensor(CLEAVE_DTYPE_F32, 2, ONNX_TENSOR_RAW_DATA, "1234567", 7, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': its shape of float32 asks for 8 bytes, found 7 of raw data");
  refuses_tensor(CLEAVE_DTYPE_F32, 1000000000000, 0, NULL, 0, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': it has no data, expected 1000000000000 elements of float32");
  refuses_tensor(CLEAVE_DTYPE_F32, 1000000000000, ONNX_TENSOR_FLOAT_DATA, "1234", 4, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': its shape asks for 1000000000000 elements, found 1");
  refuses_tensor(CLEAVE_DTYPE_F64, INT64_MAX, ONNX_TENSOR_RAW_DATA, "12345678", 8, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': its shape overflows 64 bits");
  refuses_tensor(CLEAVE_DTYPE_F32, -1, ONNX_TENSOR_RAW_DATA, "1234", 4, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': dimension 0 is -1");
  refuses_tensor(CLEAVE_DTYPE_F32, 2, ONNX_TENSOR_INT64_DATA, "\x01\x02", 2, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': its data is in field 7, expected 4 for float32");
  refuses_tensor(15, 2, ONNX_TENSOR_RAW_DATA, "\x01\x02", 2, CLEAVE_ERROR_UNSUPPORTED,
                 "model: tensor 'w': element type 15 (complex128) is not supported");
  refuses_tensor(CLEAVE_DTYPE_STRING, 1, ONNX_TENSOR_RAW_DATA, "12345678", 8, CLEAVE_ERROR_FORMAT,
                 "model: tensor 'w': strings cannot be raw data");
}

UNIT_TEST(weights_are_borrowed_from_the_file) {
  const char *folder = temporary_folder();
  const char *path = path_in(folder, "model.onnx");
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  int64_t numbers[4] = {10, -20, 30, 40};
  onnx_begin(&b, 8, 17);
  onnx_ints(&b, "w", "2 2", numbers, 4);
  onnx_output(&b, "w", CLEAVE_DTYPE_I64, "2 2");
  write_model(&b, path);
  unit_ok(cleave_onnx_read(path, NULL, &graph, e));
  const cleave_tensor_t *w = constant_named(graph, "w");
  ck_assert(!w->owns_data);
  ck_assert_ptr_nonnull(w->file);
  ck_assert_int_eq(cleave_tensor_get_int(w, 1), -20);
  ck_assert_int_eq(cleave_tensor_get_int(w, 3), 40);
  cleave_graph_destroy(graph);
  (void)unlink(path);
  (void)rmdir(folder);
}

/* The data of the only weight is a hole of 1 GiB at the end of the file. */
UNIT_TEST(a_model_of_a_gigabyte_opens_in_milliseconds) {
  const char *folder = temporary_folder();
  const char *path = path_in(folder, "big.onnx");
  const uint64_t size = UINT64_C(1) << 30;
  cleave_text_t tensor = {0};
  cleave_text_t graph = {0};
  cleave_text_t model = {0};
  cleave_graph_t *read = NULL;
  cleave_protobuf_put_int(&tensor, ONNX_TENSOR_DIMS, (int64_t)(size / 4));
  cleave_protobuf_put_int(&tensor, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_F32);
  cleave_protobuf_put_text(&tensor, ONNX_TENSOR_NAME, "w");
  cleave_protobuf_put_header(&tensor, ONNX_TENSOR_RAW_DATA, size);
  onnx_put_value_info(&graph, ONNX_GRAPH_OUTPUT, "w", CLEAVE_DTYPE_F32, "268435456");
  cleave_protobuf_put_header(&graph, ONNX_GRAPH_INITIALIZER, tensor.length + size);
  cleave_text_append(&graph, tensor.data, tensor.length);
  cleave_protobuf_put_int(&model, ONNX_MODEL_IR_VERSION, 8);
  cleave_protobuf_put_header(&model, ONNX_MODEL_GRAPH, graph.length + size);
  cleave_text_append(&model, graph.data, graph.length);
  unit_ok(cleave_file_write(path, model.data, model.length, e));
  ck_assert_int_eq(truncate(path, (off_t)(model.length + size)), 0);
  uint64_t start = cleave_clock_now();
  unit_ok(cleave_onnx_read(path, NULL, &read, e));
  double elapsed = cleave_clock_ms(start, cleave_clock_now());
  ck_assert_msg(elapsed < 20.0, "%.1f ms", elapsed);
  ck_assert_uint_eq(constant_named(read, "w")->bytes, size);
  ck_assert_double_eq(cleave_tensor_get_float(constant_named(read, "w"), 12345678), 0.0);
  cleave_graph_destroy(read);
  cleave_text_deinit(&tensor);
  cleave_text_deinit(&graph);
  cleave_text_deinit(&model);
  (void)unlink(path);
  (void)rmdir(folder);
}

/* ---- external data ---- */

static void put_location(cleave_text_t *out, const char *key, const char *value) {
  size_t mark = cleave_protobuf_begin(out, ONNX_TENSOR_EXTERNAL_DATA);
  cleave_protobuf_put_text(out, ONNX_ENTRY_KEY, key);
  cleave_protobuf_put_text(out, ONNX_ENTRY_VALUE, value);
  cleave_protobuf_end(out, mark);
}

static void write_external_model(const char *path, const char *location, const char *offset,
                                 const char *length) {
  onnx_builder_t b;
  size_t mark = 0;
  begin_tensor(&b, &mark);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DIMS, 2);
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_I32);
  put_location(&b.graph, "location", location);
  if (offset != NULL) {
    put_location(&b.graph, "offset", offset);
  }
  if (length != NULL) {
    put_location(&b.graph, "length", length);
  }
  cleave_protobuf_put_int(&b.graph, ONNX_TENSOR_DATA_LOCATION, 1);
  cleave_protobuf_end(&b.graph, mark);
  write_model(&b, path);
}

UNIT_TEST(reads_external_data) {
  const char *folder = temporary_folder();
  const int32_t numbers[4] = {1, 2, 3, 4};
  char path[256];
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_file_write(path_in(folder, "w.bin"), numbers, sizeof numbers, e));
  (void)snprintf(path, sizeof path, "%s/m.onnx", folder);
  write_external_model(path, "w.bin", "8", "8");
  unit_ok(cleave_onnx_read(path, NULL, &graph, e));
  ck_assert_int_eq(cleave_tensor_get_int(constant_named(graph, "w"), 0), 3);
  ck_assert_int_eq(cleave_tensor_get_int(constant_named(graph, "w"), 1), 4);
  cleave_graph_destroy(graph);
  write_external_model(path, "./w.bin", NULL, NULL);
  unit_ok(cleave_onnx_read(path, NULL, &graph, e));
  ck_assert_int_eq(cleave_tensor_get_int(constant_named(graph, "w"), 1), 2);
  cleave_graph_destroy(graph);
  (void)unlink(path);
  (void)unlink(path_in(folder, "w.bin"));
  (void)rmdir(folder);
}

UNIT_TEST(external_data_stays_in_the_folder_of_the_model) {
  const char *folder = temporary_folder();
  const int32_t numbers[4] = {1, 2, 3, 4};
  char path[256];
  char inner[128];
  char link[256];
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_file_write(path_in(folder, "secret.bin"), numbers, sizeof numbers, e));
  (void)snprintf(inner, sizeof inner, "%s/models", folder);
  ck_assert_int_eq(mkdir(inner, 0700), 0);
  (void)snprintf(path, sizeof path, "%s/m.onnx", inner);
  (void)snprintf(link, sizeof link, "%s/link.bin", inner);
  ck_assert_int_eq(symlink("../secret.bin", link), 0);
  write_external_model(path, "../secret.bin", NULL, NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "external data: '../secret.bin' leads out of the folder");
  write_external_model(path, "a/../../secret.bin", NULL, NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT, "leads out");
  write_external_model(path, path_in(folder, "secret.bin"), NULL, NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT, "leads out");
  write_external_model(path, "link.bin", NULL, NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "'link.bin' leads out of the folder");
  write_external_model(path, "missing.bin", NULL, NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_IO, "'missing.bin' cannot be opened");
  (void)unlink(link);
  (void)unlink(path);
  (void)rmdir(inner);
  (void)unlink(path_in(folder, "secret.bin"));
  (void)rmdir(folder);
}

/* As caches keep downloads: links in one folder, to files in another. */
UNIT_TEST(external_data_may_lie_beside_the_file_that_a_link_leads_to) {
  const char *folder = temporary_folder();
  const int32_t numbers[2] = {5, 6};
  char names[6][256];
  cleave_graph_t *graph = NULL;
  static const char *const paths[] = {"files", "links", "files/m", "files/w", "links/m.onnx", "links/w.bin"};
  for (int k = 0; k < 6; k++) {
    (void)snprintf(names[k], sizeof names[k], "%s/%s", folder, paths[k]);
  }
  ck_assert_int_eq(mkdir(names[0], 0700) + mkdir(names[1], 0700), 0);
  unit_ok(cleave_file_write(names[3], numbers, sizeof numbers, e));
  write_external_model(names[2], "w.bin", NULL, NULL);
  ck_assert_int_eq(symlink("../files/m", names[4]) + symlink("../files/w", names[5]), 0);
  unit_ok(cleave_onnx_read(names[4], NULL, &graph, e));
  ck_assert_int_eq(cleave_tensor_get_int(constant_named(graph, "w"), 1), 6);
  cleave_graph_destroy(graph);
  unit_ok(cleave_file_write(path_in(folder, "secret.bin"), numbers, sizeof numbers, e));
  ck_assert_int_eq(unlink(names[5]) + symlink("../secret.bin", names[5]), 0);
  unit_fails_with(cleave_onnx_read(names[4], NULL, &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT, "leads out");
  (void)unlink(path_in(folder, "secret.bin"));
  for (int k = 5; k >= 0; k--) {
    (void)remove(names[k]);
  }
  (void)rmdir(folder);
}

UNIT_TEST(external_data_must_be_as_long_as_the_shape) {
  const char *folder = temporary_folder();
  char path[256];
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_file_write(path_in(folder, "w.bin"), "123456789012", 12, e));
  (void)snprintf(path, sizeof path, "%s/m.onnx", folder);
  write_external_model(path, "w.bin", "8", NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_FORMAT,
                  "'w.bin' has 12 bytes, expected 8 at offset 8");
  write_external_model(path, "w.bin", "18446744073709551615", NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_FORMAT, "'w.bin' has 12 bytes");
  write_external_model(path, "w.bin", "-1", NULL);
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_FORMAT, "offset is '-1'");
  write_external_model(path, "w.bin", NULL, "4");
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_FORMAT,
                  "the shape asks for 8 bytes, the length is 4");
  (void)unlink(path);
  (void)unlink(path_in(folder, "w.bin"));
  (void)rmdir(folder);
}

/* ---- files with one tensor ---- */

UNIT_TEST(tensor_files_come_back_as_they_were) {
  const char *folder = temporary_folder();
  const char *path = path_in(folder, "t.pb");
  cleave_tensor_t *tensor = NULL;
  cleave_tensor_t *back = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F64, 2, (int64_t[]){2, 3}, &tensor, e));
  cleave_tensor_fill_normal(tensor, 7, 0.0, 1.0);
  unit_ok(cleave_tensor_pb_write(path, tensor, "t", e));
  unit_ok(cleave_tensor_pb_read(path, &back, e));
  ck_assert_int_eq((int)back->dtype, CLEAVE_DTYPE_F64);
  ck_assert_int_eq(back->rank, 2);
  ck_assert_int_eq(back->dims[1], 3);
  ck_assert_mem_eq(back->data, tensor->data, tensor->bytes);
  cleave_tensor_release(tensor);
  cleave_tensor_release(back);
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, (int64_t[]){2}, &tensor, e));
  unit_ok(cleave_tensor_set_string(tensor, 1, "b\nc", 3, e));
  unit_ok(cleave_tensor_pb_write(path, tensor, NULL, e));
  unit_ok(cleave_tensor_pb_read(path, &back, e));
  ck_assert_str_eq(((const char *const *)back->data)[0], "");
  ck_assert_str_eq(((const char *const *)back->data)[1], "b\nc");
  cleave_tensor_release(tensor);
  cleave_tensor_release(back);
  (void)unlink(path);
  (void)rmdir(folder);
}

UNIT_TEST(tensor_files_that_hold_sequences_are_refused) {
  const char *folder = temporary_folder();
  const char *path = path_in(folder, "t.pb");
  cleave_tensor_t *tensor = NULL;
  cleave_text_t text = {0};
  cleave_protobuf_put_text(&text, 1, "sequence");
  cleave_protobuf_put_int(&text, 2, 1);
  size_t mark = cleave_protobuf_begin(&text, 3);
  cleave_protobuf_put_int(&text, ONNX_TENSOR_DATA_TYPE, CLEAVE_DTYPE_F32);
  cleave_protobuf_put_bytes(&text, ONNX_TENSOR_RAW_DATA, "1234", 4);
  cleave_protobuf_end(&text, mark);
  unit_ok(cleave_file_write(path, text.data, text.length, e));
  unit_fails_with(cleave_tensor_pb_read(path, &tensor, e), CLEAVE_ERROR_UNSUPPORTED,
                  "t.pb: a sequence or an optional value, not a tensor: not supported");
  cleave_text_deinit(&text);
  (void)unlink(path);
  (void)rmdir(folder);
}

UNIT_SUITE("onnx_tensor")
