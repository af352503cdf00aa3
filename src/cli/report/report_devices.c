// SPDX-License-Identifier: Apache-2.0
// Devices of a session, as text and as JSON, from the same numbers.
#include "cli/report/report_devices.h"

#include "cli/common/output.h"

void cleave_report_devices(const cleave_session_t *session) {
  for (uint32_t k = 0; k < cleave_session_device_count(session); k++) {
    cleave_session_device_t device = cleave_session_device(session, k);
    char bytes[5][32];
    size_t other = device.workspace_bytes + device.dynamic_bytes;
    cleave_print("memory of %s: values %s (unshared %s), constants %s; a run copies %s there and %s back\n",
                 device.name,
                 cleave_output_bytes((double)(device.values_bytes + other), bytes[0], sizeof bytes[0]),
                 cleave_output_bytes((double)(device.unshared_bytes + other), bytes[1], sizeof bytes[1]),
                 cleave_output_bytes((double)device.constants_bytes, bytes[2], sizeof bytes[2]),
                 cleave_output_bytes((double)device.copied_to_bytes, bytes[3], sizeof bytes[3]),
                 cleave_output_bytes((double)device.copied_from_bytes, bytes[4], sizeof bytes[4]));
  }
}

json_t *cleave_report_devices_json(const cleave_session_t *session) {
  json_t *devices = json_array();
  for (uint32_t k = 0; k < cleave_session_device_count(session); k++) {
    cleave_session_device_t device = cleave_session_device(session, k);
    (void)json_array_append_new(
        devices,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", device.name, "values",
                  (json_int_t)device.values_bytes, "unshared", (json_int_t)device.unshared_bytes, "workspace",
                  (json_int_t)device.workspace_bytes, "constants", (json_int_t)device.constants_bytes,
                  "dynamic", (json_int_t)device.dynamic_bytes, "copied_to",
                  (json_int_t)device.copied_to_bytes, "copied_from", (json_int_t)device.copied_from_bytes));
  }
  return devices;
}
