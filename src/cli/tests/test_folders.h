// SPDX-License-Identifier: Apache-2.0
/* ONNX's test folders: model.onnx and test_data_set_<n>, each with inputs and outputs. */
#ifndef CLEAVE_CLI_FILES_TEST_FOLDERS_H
#define CLEAVE_CLI_FILES_TEST_FOLDERS_H

#include "cli/tests/paths.h"

/* Appends the folders below `folder` that hold a model.onnx, sorted. `only`: the name of the folder has to
 * contain this, unless it is NULL. */
CLEAVE_STATUS cleave_test_folders_find(cleave_paths_t *tests, const char *folder, const char *only,
                                       cleave_error_t *error);
/* Appends the data sets of a test, sorted. */
CLEAVE_STATUS cleave_test_folders_sets(cleave_paths_t *sets, const char *test, cleave_error_t *error);

#endif /* CLEAVE_CLI_FILES_TEST_FOLDERS_H */
