// SPDX-License-Identifier: Apache-2.0
/* cleave kernels: prints the kernels that the backends of a plan generate. */
#ifndef CLEAVE_CLI_REPORT_KERNELS_H
#define CLEAVE_CLI_REPORT_KERNELS_H

/* The command, as cleave_command_t has it. */
int cleave_kernels_run(int argc, char **argv);

#endif /* CLEAVE_CLI_REPORT_KERNELS_H */
