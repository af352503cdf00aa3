// SPDX-License-Identifier: Apache-2.0
/* The real NVRTC, asked by the stand-in whether it compiles a text, too. */
#ifndef CLEAVE_TESTS_NVRTC_CHECK_H
#define CLEAVE_TESTS_NVRTC_CHECK_H

#include <stdbool.h>

/* Compiles for sm_80 and sm_90 with the options but the architecture; false: the log says why (free). True
 * where CLEAVE_NVRTC_REAL, the path of a library, is not set. */
bool nvrtc_check(const char *text, int option_count, const char *const *options, char **out_log);

#endif /* CLEAVE_TESTS_NVRTC_CHECK_H */
