// SPDX-License-Identifier: Apache-2.0
/* Finds labels on parts that cannot be the same node or value. A pattern with such a label never matches,
 * because a label stands for one node or value. */
#ifndef CLEAVE_PARTITION_PATTERN_PATTERN_LABELS_H
#define CLEAVE_PARTITION_PATTERN_PATTERN_LABELS_H

#include "partition/pattern/pattern.h"

/* Finds two parts of one label that may be in the same match but cannot be the same node or value: one reads
 * the other, or they are different operators, or one is a constant and the other an operator. The pattern's
 * indices and depth are checked. *out_first is CLEAVE_INDEX_NONE if there are none. */
CLEAVE_STATUS cleave_pattern_find_clash(const cleave_pattern_t *pattern, uint32_t *out_first,
                                        uint32_t *out_second, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PATTERN_PATTERN_LABELS_H */
