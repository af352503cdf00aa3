// SPDX-License-Identifier: Apache-2.0
// Where the time of runs went.
#include "cli/report/report_profile.h"

#include "cli/common/output.h"

enum { PROFILE_LINES = 20 };

void cleave_report_profile(const cleave_profile_t *profile, const char *path) {
  double total = 0.0;
  for (size_t k = 0; k < profile->regions.count; k++) {
    total += profile->regions.items[k].total_ms;
  }
  for (int by_region = 1; by_region >= 0; by_region--) {
    const cleave_profile_line_t *lines = by_region != 0 ? profile->regions.items : profile->lines.items;
    size_t count = by_region != 0 ? profile->regions.count : profile->lines.count;
    cleave_print("\ntime per %s\n", by_region != 0 ? "region" : "fusion and operator");
    cleave_text_t rows = {0};
    cleave_text_show(&rows, "%s\tbackend\tsteps\tms\tshare\n",
                     by_region != 0 ? "region" : "fusion or operator");
    for (size_t k = 0; k < count && k < PROFILE_LINES; k++) {
      char bytes[32];
      bool is_copy = lines[k].bytes > 0;
      cleave_text_show(&rows, "%s%s%s\t%s\t%u\t%.3f\t%.1f %%\n", lines[k].label, is_copy ? ", " : "",
                       is_copy ? cleave_output_bytes((double)lines[k].bytes, bytes, sizeof bytes) : "",
                       lines[k].backend, (unsigned)lines[k].count, lines[k].total_ms,
                       total > 0.0 ? lines[k].total_ms / total * 100.0 : 0.0);
    }
    cleave_output_table(&rows, "llrrr");
    if (count > PROFILE_LINES) {
      cleave_print("  and %zu more\n", count - PROFILE_LINES);
    }
  }
  cleave_print("\ntrace written to %s\n", path);
}
