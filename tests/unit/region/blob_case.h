// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions over a folder of compiled regions, for tests: y = Sigmoid(x + w), the sum on the library
 * tests/accelerators/blobs.c, which counts what it does. A test is between blob_case_start and
 * blob_case_finish.
 */
#ifndef CLEAVE_TESTS_BLOB_CASE_H
#define CLEAVE_TESTS_BLOB_CASE_H

#include "session_case.h"

enum { BLOB_CASE_COUNT = 6, BLOB_CASE_LOG_SIZE = 65536 };

extern const float blob_case_x[BLOB_CASE_COUNT];
extern char blob_case_folder[64];
extern char blob_case_log[BLOB_CASE_LOG_SIZE]; /* what was logged, line by line */

#define BLOB_CASE_LIBRARY(name) CLEAVE_BINARY_DIR "/tests/accelerators/lib" name ".so"

/* A fresh folder for the process of this test. */
void blob_case_start(void);
void blob_case_finish(void);

/* How often the library did it: "compiles", "loads", "saves". */
int blob_case_ask(const char *key);

/* The graph, on `backend` or on "blobs". */
session_case_t blob_case_make_on(const char *backend, float w);
session_case_t blob_case_make(float w);
cleave_session_options_t blob_case_options(uint64_t limit);

/* Runs, and compares. */
void blob_case_check(session_case_t *c, float w);

/* A session that runs right; true where its region was loaded. */
bool blob_case_run_with(float w, const cleave_session_options_t *options);
bool blob_case_run(float w);

/* Names of the folder; *out_last is a path among them. */
int blob_case_count_files(char *out_last);
size_t blob_case_read(const char *path, char *data, size_t size);
void blob_case_write(const char *path, const char *data, size_t length);

#endif /* CLEAVE_TESTS_BLOB_CASE_H */
