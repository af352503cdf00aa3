// SPDX-License-Identifier: Apache-2.0
// Broken ONNX models (kind_onnx.c): every file of corpus/onnx cut at every byte and with flipped bits; models
// changed at random; and models that nest.
#include <dirent.h>

#include "fuzz.h"
#include "onnx_builder.h"
#include "system/clock.h"
#include "unit.h"

enum { MAX_FILES = 64, ROUNDS = 4000 };
static const double budget_ms = 4000.0;

static cleave_file_t *files[MAX_FILES];
static size_t file_count;

static int by_path(const void *a, const void *b) {
  return strcmp(cleave_file_path(*(cleave_file_t *const *)a), cleave_file_path(*(cleave_file_t *const *)b));
}

static void open_corpus(void) {
  static const char folder[] = CLEAVE_SOURCE_DIR "/tests/fuzz/corpus/onnx";
  DIR *listing = opendir(folder);
  ck_assert_ptr_nonnull(listing);
  for (struct dirent *entry = readdir(listing); entry != NULL && file_count < MAX_FILES;
       entry = readdir(listing)) {
    if (cleave_path_has_extension(entry->d_name, ".onnx")) {
      cleave_text_t path = {0};
      cleave_text_format(&path, "%s/%s", folder, entry->d_name);
      unit_ok(cleave_file_open(cleave_text_get(&path), &files[file_count++], e));
      cleave_text_deinit(&path);
    }
  }
  (void)closedir(listing);
  ck_assert_uint_ge(file_count, 10);
  qsort(files, file_count, sizeof *files, by_path);
}

static void close_corpus(void) {
  while (file_count > 0) {
    cleave_file_release(files[--file_count]);
  }
}

/* Returns whether the bytes were a model. */
static bool try_bytes(const void *data, size_t size) {
  return fuzz_onnx.run(data, size) != FUZZ_REFUSED;
}

UNIT_TEST(the_corpus_itself_is_read_or_refused_in_one_line) {
  size_t read = 0;
  open_corpus();
  for (size_t k = 0; k < file_count; k++) {
    read += try_bytes(cleave_file_data(files[k]), cleave_file_size(files[k]));
  }
  ck_assert_uint_ge(read, 10);
  ck_assert_uint_lt(read, file_count);
  close_corpus();
}

UNIT_TEST(models_cut_at_every_byte) {
  open_corpus();
  for (size_t k = 0; k < file_count; k++) {
    size_t size = cleave_file_size(files[k]);
    size_t step = size > 2048 ? 7 : 1;
    for (size_t cut = 0; cut < size; cut += step) {
      (void)try_bytes(cleave_file_data(files[k]), cut);
    }
  }
  close_corpus();
}

UNIT_TEST(models_with_one_flipped_bit) {
  uint64_t start = cleave_clock_now();
  size_t done = 0;
  open_corpus();
  unsigned char buffer[8192];
  for (size_t k = 0; k < file_count; k++) {
    size_t size = cleave_file_size(files[k]);
    size_t step = size > 1024 ? 37 : 1;
    ck_assert_uint_le(size, sizeof buffer);
    memcpy(buffer, cleave_file_data(files[k]), size);
    for (size_t bit = k % step; bit < size * 8; bit += step) {
      if (cleave_clock_ms(start, cleave_clock_now()) > 3 * budget_ms) {
        break;
      }
      buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
      (void)try_bytes(buffer, size);
      buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
      done++;
    }
  }
  ck_assert_uint_gt(done, 1000);
  close_corpus();
}

UNIT_TEST(models_changed_at_random) {
  size_t counts[FUZZ_OUTCOMES];
  size_t rounds = fuzz_replay(&fuzz_onnx, ROUNDS, budget_ms, 6, counts);
  ck_assert_uint_gt(rounds, 100);
  ck_assert_uint_gt(counts[FUZZ_USED], 10);
  ck_assert_uint_gt(counts[FUZZ_REFUSED], 10);
}

/* Wraps the bytes into a BYTES field `depth` times, inside out: the lengths are known from within. */
static cleave_text_t nest(const uint32_t *fields, size_t field_count, size_t depth) {
  cleave_text_t reversed = {0};
  cleave_text_t out = {0};
  uint64_t size = 0;
  for (size_t k = 0; k < depth; k++) {
    cleave_text_t header = {0};
    cleave_protobuf_put_header(&header, fields[k % field_count], size);
    for (size_t b = header.length; b-- > 0;) {
      cleave_text_append(&reversed, header.data + b, 1);
    }
    size += header.length;
    cleave_text_deinit(&header);
  }
  for (size_t b = reversed.length; b-- > 0;) {
    cleave_text_append(&out, reversed.data + b, 1);
  }
  cleave_text_deinit(&reversed);
  return out;
}

UNIT_TEST(graphs_that_nest_twenty_thousand_deep) {
  static const uint32_t fields[] = {ONNX_ATTRIBUTE_G, ONNX_NODE_ATTRIBUTE, ONNX_GRAPH_NODE};
  cleave_text_t nested = nest(fields, 3, 3 * 9000);
  ck_assert_uint_gt(nested.length, 100000);
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  cleave_text_append(&b.graph, nested.data, nested.length);
  cleave_text_t bytes = onnx_finish(&b);
  ck_assert(!try_bytes(bytes.data, bytes.length));
  cleave_text_deinit(&bytes);
  cleave_text_deinit(&nested);
}

UNIT_TEST(types_that_nest_twenty_thousand_deep) {
  static const uint32_t fields[] = {1, ONNX_TYPE_PROTO_SEQUENCE};
  cleave_text_t nested = nest(fields, 2, 2 * 20000);
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t info = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INPUT);
  cleave_protobuf_put_text(&b.graph, ONNX_VALUE_NAME, "x");
  cleave_protobuf_put_bytes(&b.graph, ONNX_VALUE_TYPE, nested.data, nested.length);
  cleave_protobuf_end(&b.graph, info);
  cleave_text_t bytes = onnx_finish(&b);
  ck_assert(!try_bytes(bytes.data, bytes.length));
  cleave_text_deinit(&bytes);
  cleave_text_deinit(&nested);
}

UNIT_TEST(calls_that_nest_deeper_than_the_limit) {
  onnx_builder_t b;
  char name[16];
  char callee[16];
  onnx_begin(&b, 8, 17);
  for (int k = 0; k < 1000; k++) {
    (void)snprintf(name, sizeof name, "f%d", k);
    (void)snprintf(callee, sizeof callee, "f%d", k + 1);
    size_t mark = cleave_protobuf_begin(&b.model, ONNX_MODEL_FUNCTIONS);
    cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_NAME, name);
    cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_DOMAIN, "local");
    onnx_function_import(&b, "local", 1);
    onnx_put_node(&b.model, ONNX_FUNCTION_NODE, callee, "local", "", "");
    cleave_protobuf_end(&b.model, mark);
  }
  onnx_put_node(&b.graph, ONNX_GRAPH_NODE, "f0", "local", "", "");
  cleave_text_t bytes = onnx_finish(&b);
  ck_assert(!try_bytes(bytes.data, bytes.length));
  cleave_text_deinit(&bytes);
}

UNIT_TEST(a_long_chain_in_reverse_order_is_read) {
  onnx_builder_t b;
  char from[16];
  char to[16];
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "v0", CLEAVE_DTYPE_F32, "2");
  for (int k = 20000; k-- > 0;) {
    (void)snprintf(from, sizeof from, "v%d", k);
    (void)snprintf(to, sizeof to, "v%d", k + 1);
    onnx_simple(&b, "Relu", from, to);
  }
  onnx_output(&b, "v20000", CLEAVE_DTYPE_F32, "2");
  cleave_text_t bytes = onnx_finish(&b);
  ck_assert(try_bytes(bytes.data, bytes.length));
  cleave_text_deinit(&bytes);
}

/* Every allocation of a read fails once. */
UNIT_TEST(reading_survives_every_failed_allocation) {
  open_corpus();
  for (size_t k = 0; k < file_count; k++) {
    bool failed = true;
    for (int64_t allocation = 0; failed && allocation < 2000; allocation++) {
      cleave_graph_t *graph = NULL;
      cleave_error_t error = CLEAVE_ERROR_INIT;
      (void)cleave_memory_fail_after(allocation);
      cleave_status_t status = cleave_onnx_read_memory(cleave_file_data(files[k]), cleave_file_size(files[k]),
                                                       "fuzz", NULL, &graph, &error);
      (void)cleave_memory_fail_after(-1);
      failed = status == CLEAVE_ERROR_OUT_OF_MEMORY;
      fuzz_check(status, &error, ~FUZZ_STATUS(INTERNAL));
      cleave_graph_destroy(graph);
    }
    ck_assert(!failed);
  }
  close_corpus();
}

UNIT_SUITE("replay_onnx")
