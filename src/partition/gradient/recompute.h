// SPDX-License-Identifier: Apache-2.0
/* Values of forward that backward reads are kept in memory, or computed again shortly before they are read.
 */
#ifndef CLEAVE_PARTITION_GRADIENT_RECOMPUTE_H
#define CLEAVE_PARTITION_GRADIENT_RECOMPUTE_H

#include "cleave/cleave.h"
#include "partition/rewrite/editor.h"

/* Repeats nodes of forward, those before `first_backward`, so that the values of a run need at most `share`
 * of the memory that they need if everything is kept, for as few additional FLOPs as it finds. Everything
 * that the repeated nodes read passes an After, which makes them wait until backward has come to what reads
 * them. Readers of forward stay as they were. The graph has its outputs. `out_report` may be NULL.
 *
 * CLEAVE_ERROR_SHAPE: a size is known only at run time. CLEAVE_ERROR_LIMIT: the share is too small; the
 * message has the least that was found. Time: the number of nodes times about 300. */
CLEAVE_STATUS cleave_gradient_recompute(cleave_graph_t *graph, uint32_t first_backward, double share,
                                        cleave_recompute_report_t *out_report, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_RECOMPUTE_H */
