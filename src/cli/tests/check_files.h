// SPDX-License-Identifier: Apache-2.0
/* The rule files that `cleave check` is about: files as they are given, and those in folders. */
#ifndef CLEAVE_CLI_FILES_CHECK_FILES_H
#define CLEAVE_CLI_FILES_CHECK_FILES_H

#include "cli/common/arguments.h"
#include "cli/tests/paths.h"

/* Files stay as they are. A folder stands for the rule files in it and in its folders, by name: what ends in
 * ".lua" and says `ruleset`. The others are parts that rule files include, model scripts, definitions. A
 * folder without any is an error. The list must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_check_files_list(const cleave_text_list_t *operands, cleave_paths_t *out_files,
                                      cleave_error_t *error);

#endif /* CLEAVE_CLI_FILES_CHECK_FILES_H */
