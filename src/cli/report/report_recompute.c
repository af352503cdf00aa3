// SPDX-License-Identifier: Apache-2.0
#include "cli/report/report_recompute.h"

#include "cli/common/output.h"

void cleave_report_recompute(const cleave_recompute_report_t *report) {
  char text[5][32];
  cleave_print(
      "computed again: %u nodes, %s FLOPs; kept for backward: %s, before %s; values need %s, before %s\n",
      (unsigned)report->node_count, cleave_output_count(report->flops_added, text[0], sizeof text[0]),
      cleave_output_bytes((double)report->kept_bytes, text[1], sizeof text[1]),
      cleave_output_bytes((double)report->kept_bytes_before, text[2], sizeof text[2]),
      cleave_output_bytes((double)report->peak_bytes, text[3], sizeof text[3]),
      cleave_output_bytes((double)report->peak_bytes_before, text[4], sizeof text[4]));
}

json_t *cleave_report_recompute_json(const cleave_recompute_report_t *report) {
  return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I}", "nodes", (json_int_t)report->node_count, "flops_added",
                   report->flops_added, "kept_bytes", (json_int_t)report->kept_bytes, "kept_bytes_before",
                   (json_int_t)report->kept_bytes_before, "peak_bytes", (json_int_t)report->peak_bytes,
                   "peak_bytes_before", (json_int_t)report->peak_bytes_before);
}
