// SPDX-License-Identifier: Apache-2.0
/* If with a known condition. */
#ifndef CLEAVE_FORMATS_ONNX_READ_ONNX_BRANCH_H
#define CLEAVE_FORMATS_ONNX_READ_ONNX_BRANCH_H

#include "formats/onnx/read/onnx_inline.h"

/* Replaces every If by the branch that its condition takes; the other branch is not looked at.
 * CLEAVE_ERROR_UNSUPPORTED: a condition that constants, fixed inputs and known sizes do not decide, or
 * another operator with a graph as attribute. */
CLEAVE_STATUS cleave_onnx_take_branches(cleave_onnx_inliner_t *inliner, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_READ_ONNX_BRANCH_H */
