// SPDX-License-Identifier: Apache-2.0
/*
 * Every model and tensor of ONNX's backend test data (Debian: libonnx-testdata), where it is installed: read
 * or refused in one line, and what is read comes back the same after writing in both opsets.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "formats/onnx/onnx.h"
#include "graph/compare/structural_hash.h"
#include "graph/verify.h"
#include "ops/infer.h"
#include "unit.h"

static const char data_folder[] = "/usr/share/libonnx-testdata/data";

typedef struct counts {
  size_t models;
  size_t refused;
  size_t tensors;
  size_t refused_tensors;
} counts_t;

static uint64_t inferred_hash(cleave_graph_t *graph) {
  uint64_t hash = 0;
  cleave_infer_options_t options = {0};
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  unit_ok(cleave_graph_hash(graph, &hash, e));
  return hash;
}

static void expect_round_trip(const char *path, cleave_graph_t *graph) {
  static const int32_t opsets[2] = {17, 22};
  uint64_t expected = inferred_hash(graph);
  for (int k = 0; k < 2; k++) {
    cleave_onnx_write_options_t options = {.opset_version = opsets[k]};
    cleave_text_t bytes = {0};
    cleave_graph_t *back = NULL;
    unit_ok(cleave_onnx_write_text(graph, &options, &bytes, e));
    unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, path, NULL, &back, e));
    ck_assert_msg(inferred_hash(back) == expected, "%s differs after writing in opset %d", path,
                  (int)opsets[k]);
    cleave_text_deinit(&bytes);
    cleave_graph_destroy(back);
  }
}

static void expect_reason(cleave_status_t status, const cleave_error_t *error) {
  ck_assert_msg(status == CLEAVE_ERROR_UNSUPPORTED, "status %d: %s", (int)status, error->message);
  ck_assert_ptr_null(strchr(error->message, '\n'));
  ck_assert_uint_gt(strlen(error->message), 20);
}

static void check_model(const char *path, counts_t *counts) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  counts->models++;
  cleave_status_t status = cleave_onnx_read(path, NULL, &graph, &error);
  if (status != CLEAVE_OK) {
    expect_reason(status, &error);
    counts->refused++;
    return;
  }
  unit_ok(cleave_graph_verify(graph, e));
  expect_round_trip(path, graph);
  cleave_graph_destroy(graph);
}

static void check_tensor(const char *path, counts_t *counts) {
  cleave_tensor_t *tensor = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  counts->tensors++;
  cleave_status_t status = cleave_tensor_pb_read(path, &tensor, &error);
  if (status != CLEAVE_OK) {
    ck_assert_ptr_null(strchr(error.message, '\n'));
    counts->refused_tensors++;
  }
  cleave_tensor_release(tensor);
}

static void walk(const char *folder, int depth, counts_t *counts) {
  DIR *listing = opendir(folder);
  ck_assert_ptr_nonnull(listing);
  for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
    cleave_text_t path = {0};
    struct stat info;
    cleave_text_format(&path, "%s/%s", folder, entry->d_name);
    const char *text = cleave_text_get(&path);
    if (entry->d_name[0] != '.' && stat(text, &info) == 0) {
      if (S_ISDIR(info.st_mode) && depth < 4) {
        walk(text, depth + 1, counts);
      } else if (cleave_path_has_extension(text, ".onnx")) {
        check_model(text, counts);
      } else if (cleave_path_has_extension(text, ".pb")) {
        check_tensor(text, counts);
      }
    }
    cleave_text_deinit(&path);
  }
  (void)closedir(listing);
}

static const char *lacks_data(void) {
  struct stat info;
  return stat(data_folder, &info) == 0 ? NULL : "libonnx-testdata is not installed";
}

UNIT_TEST_UNLESS(all_test_data_is_read_or_refused_with_a_reason, lacks_data) {
  counts_t counts = {0};
  walk(data_folder, 0, &counts);
  printf("%zu models, %zu refused; %zu tensors, %zu refused\n", counts.models, counts.refused, counts.tensors,
         counts.refused_tensors);
  ck_assert_uint_ge(counts.models, 1000);
  ck_assert_uint_le(counts.refused, 30);
  ck_assert_uint_ge(counts.tensors, 3000);
  ck_assert_uint_le(counts.refused_tensors, 64);
}

UNIT_SUITE("onnx_testdata")
