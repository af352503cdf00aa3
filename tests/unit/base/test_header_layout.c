// SPDX-License-Identifier: Apache-2.0
// The interface of accelerator libraries as version 2.0 had it: where every field lies. A library that was
// built then relies on each of these numbers, so none of them ever changes: fields are added at the ends of
// structs, and the structs that lie in arrays do not grow at all.
#include "cleave/backend.h"

#include "unit.h"

typedef struct field {
  const char *name;
  size_t is;
  size_t was;
} field_t;

#define FIELD(type, field, offset) \
  { #type "." #field, offsetof(type, field), offset }
#define SIZE(type, bytes) \
  { "sizeof " #type, sizeof(type), bytes }

static const field_t fields_of_2_0[] = {
    // clang-format off
    FIELD(cleave_message_t, text, 0),
    FIELD(cleave_message_t, code, 256),
    FIELD(cleave_sparse_view_t, size, 0),
    FIELD(cleave_sparse_view_t, stored, 8),
    FIELD(cleave_sparse_view_t, indices, 16),
    FIELD(cleave_sparse_view_t, offsets, 24),
    FIELD(cleave_tensor_view_t, size, 0),
    FIELD(cleave_tensor_view_t, dtype, 8),
    FIELD(cleave_tensor_view_t, rank, 12),
    FIELD(cleave_tensor_view_t, dims, 16),
    FIELD(cleave_tensor_view_t, data, 24),
    FIELD(cleave_tensor_view_t, version, 32),
    FIELD(cleave_tensor_view_t, layout, 40),
    FIELD(cleave_tensor_view_t, storage, 48),
    FIELD(cleave_tensor_view_t, memory, 52),
    FIELD(cleave_tensor_view_t, sparse, 56),
    FIELD(cleave_tensor_view_t, is_weight, 64),
    FIELD(cleave_attribute_view_t, size, 0),
    FIELD(cleave_attribute_view_t, name, 8),
    FIELD(cleave_attribute_view_t, kind, 16),
    FIELD(cleave_attribute_view_t, count, 20),
    FIELD(cleave_attribute_view_t, i, 24),
    FIELD(cleave_attribute_view_t, f, 32),
    FIELD(cleave_attribute_view_t, s, 40),
    FIELD(cleave_attribute_view_t, ints, 48),
    FIELD(cleave_attribute_view_t, floats, 56),
    FIELD(cleave_attribute_view_t, strings, 64),
    FIELD(cleave_attribute_view_t, tensor, 72),
    FIELD(cleave_attribute_view_t, held, 80),
    FIELD(cleave_value_view_t, size, 0),
    FIELD(cleave_value_view_t, name, 8),
    FIELD(cleave_value_view_t, tensor, 16),
    FIELD(cleave_value_view_t, producer, 88),
    FIELD(cleave_value_view_t, is_output, 92),
    FIELD(cleave_node_view_t, size, 0),
    FIELD(cleave_node_view_t, op, 8),
    FIELD(cleave_node_view_t, domain, 16),
    FIELD(cleave_node_view_t, name, 24),
    FIELD(cleave_node_view_t, opset_version, 32),
    FIELD(cleave_node_view_t, input_count, 36),
    FIELD(cleave_node_view_t, output_count, 40),
    FIELD(cleave_node_view_t, attribute_count, 44),
    FIELD(cleave_node_view_t, inputs, 48),
    FIELD(cleave_node_view_t, outputs, 56),
    FIELD(cleave_node_view_t, attributes, 64),
    FIELD(cleave_node_view_t, fusion, 72),
    FIELD(cleave_attribute_list_t, count, 0),
    FIELD(cleave_attribute_list_t, items, 8),
    FIELD(cleave_fusion_view_t, size, 0),
    FIELD(cleave_fusion_view_t, rule, 8),
    FIELD(cleave_fusion_view_t, node_count, 16),
    FIELD(cleave_fusion_view_t, nodes, 24),
    FIELD(cleave_fusion_view_t, labels, 32),
    FIELD(cleave_region_view_t, size, 0),
    FIELD(cleave_region_view_t, name, 8),
    FIELD(cleave_region_view_t, rule, 16),
    FIELD(cleave_region_view_t, hash, 24),
    FIELD(cleave_region_view_t, value_count, 32),
    FIELD(cleave_region_view_t, node_count, 36),
    FIELD(cleave_region_view_t, fusion_count, 40),
    FIELD(cleave_region_view_t, input_count, 44),
    FIELD(cleave_region_view_t, output_count, 48),
    FIELD(cleave_region_view_t, values, 56),
    FIELD(cleave_region_view_t, nodes, 64),
    FIELD(cleave_region_view_t, fusions, 72),
    FIELD(cleave_region_view_t, inputs, 80),
    FIELD(cleave_region_view_t, outputs, 88),
    FIELD(cleave_host_t, size, 0),
    FIELD(cleave_host_t, abi_major, 8),
    FIELD(cleave_host_t, abi_minor, 12),
    FIELD(cleave_host_t, version, 16),
    FIELD(cleave_host_t, parallel_for, 24),
    FIELD(cleave_key_value_t, key, 0),
    FIELD(cleave_key_value_t, value, 8),
    FIELD(cleave_compile_options_t, size, 0),
    FIELD(cleave_compile_options_t, threads, 8),
    FIELD(cleave_compile_options_t, profile, 12),
    FIELD(cleave_inplace_pair_t, input, 0),
    FIELD(cleave_inplace_pair_t, output, 4),
    FIELD(cleave_program_info_t, size, 0),
    FIELD(cleave_program_info_t, workspace_bytes, 8),
    FIELD(cleave_program_info_t, persistent_bytes, 16),
    FIELD(cleave_program_info_t, inplace_count, 24),
    FIELD(cleave_program_info_t, inplace, 32),
    FIELD(cleave_run_args_t, size, 0),
    FIELD(cleave_run_args_t, inputs, 8),
    FIELD(cleave_run_args_t, outputs, 16),
    FIELD(cleave_run_args_t, workspace, 24),
    FIELD(cleave_run_args_t, resize_output, 32),
    FIELD(cleave_run_args_t, session, 40),
    FIELD(cleave_step_time_t, size, 0),
    FIELD(cleave_step_time_t, label, 8),
    FIELD(cleave_step_time_t, node, 16),
    FIELD(cleave_step_time_t, fusion, 20),
    FIELD(cleave_step_time_t, start_ns, 24),
    FIELD(cleave_step_time_t, end_ns, 32),
    FIELD(cleave_backend_t, size, 0),
    FIELD(cleave_backend_t, abi_major, 8),
    FIELD(cleave_backend_t, abi_minor, 12),
    FIELD(cleave_backend_t, name, 16),
    FIELD(cleave_backend_t, version, 24),
    FIELD(cleave_backend_t, description, 32),
    FIELD(cleave_backend_t, initialise, 40),
    FIELD(cleave_backend_t, destroy, 48),
    FIELD(cleave_backend_t, supports, 56),
    FIELD(cleave_backend_t, compile, 64),
    FIELD(cleave_backend_t, unload, 72),
    FIELD(cleave_backend_t, info, 80),
    FIELD(cleave_backend_t, run, 88),
    FIELD(cleave_backend_t, profile, 96),
    FIELD(cleave_custom_operator_t, size, 0),
    FIELD(cleave_custom_operator_t, domain, 8),
    FIELD(cleave_custom_operator_t, name, 16),
    FIELD(cleave_custom_operator_t, version, 24),
    FIELD(cleave_custom_operator_t, last_version, 28),
    FIELD(cleave_custom_operator_t, inputs, 32),
    FIELD(cleave_custom_operator_t, outputs, 40),
    FIELD(cleave_custom_operator_t, attributes, 48),
    FIELD(cleave_custom_operator_t, is_commutative, 56),
    FIELD(cleave_custom_operator_t, is_stateful, 57),
    FIELD(cleave_custom_operator_t, self, 64),
    FIELD(cleave_custom_operator_t, infer, 72),
    FIELD(cleave_custom_operator_t, create, 80),
    FIELD(cleave_custom_operator_t, destroy, 88),
    FIELD(cleave_custom_operator_t, execute, 96),
    FIELD(cleave_custom_partitioner_t, size, 0),
    FIELD(cleave_custom_partitioner_t, name, 8),
    FIELD(cleave_custom_partitioner_t, backend, 16),
    FIELD(cleave_custom_partitioner_t, self, 24),
    FIELD(cleave_custom_partitioner_t, begin, 32),
    FIELD(cleave_custom_partitioner_t, end, 40),
    FIELD(cleave_custom_partitioner_t, supported, 48),
    FIELD(cleave_custom_partitioner_t, create_selector, 56),
    FIELD(cleave_custom_partitioner_t, destroy_selector, 64),
    FIELD(cleave_custom_partitioner_t, select, 72),
    FIELD(cleave_custom_partitioner_t, select_input, 80),
    FIELD(cleave_custom_partitioner_t, select_output, 88),
    FIELD(cleave_custom_partitioner_t, filter, 96),
    FIELD(cleave_custom_partitioner_t, review, 104),
    FIELD(cleave_backward_request_t, size, 0),
    FIELD(cleave_backward_request_t, forward, 8),
    FIELD(cleave_backward_request_t, values, 16),
    FIELD(cleave_backward_request_t, gradients, 24),
    FIELD(cleave_backward_request_t, wanted, 32),
    FIELD(cleave_backward_request_t, results, 40),
    FIELD(cleave_backward_request_t, editor, 48),
    FIELD(cleave_custom_pass_t, size, 0),
    FIELD(cleave_custom_pass_t, name, 8),
    FIELD(cleave_custom_pass_t, self, 16),
    FIELD(cleave_custom_pass_t, run, 24),
    FIELD(cleave_graph_editor_t, size, 0),
    FIELD(cleave_graph_editor_t, graph, 8),
    FIELD(cleave_graph_editor_t, view, 16),
    FIELD(cleave_graph_editor_t, value_of, 24),
    FIELD(cleave_graph_editor_t, node_of, 32),
    FIELD(cleave_graph_editor_t, add_input, 40),
    FIELD(cleave_graph_editor_t, add_constant, 48),
    FIELD(cleave_graph_editor_t, add_node, 56),
    FIELD(cleave_graph_editor_t, set_attribute, 64),
    FIELD(cleave_graph_editor_t, set_input, 72),
    FIELD(cleave_graph_editor_t, replace_uses, 80),
    FIELD(cleave_graph_editor_t, remove_node, 88),
    // clang-format on
};

static const field_t sizes_for_ever[] = {
    SIZE(cleave_message_t, 260),       SIZE(cleave_sparse_view_t, 32), SIZE(cleave_tensor_view_t, 72),
    SIZE(cleave_attribute_view_t, 88), SIZE(cleave_value_view_t, 96),  SIZE(cleave_node_view_t, 80),
    SIZE(cleave_attribute_list_t, 16), SIZE(cleave_fusion_view_t, 40), SIZE(cleave_key_value_t, 16),
    SIZE(cleave_inplace_pair_t, 8),
};

static void check(const field_t *fields, size_t count) {
  for (size_t k = 0; k < count; k++) {
    ck_assert_msg(fields[k].is == fields[k].was, "%s is %zu, and was %zu in version 2.0", fields[k].name,
                  fields[k].is, fields[k].was);
  }
}

UNIT_TEST(every_field_lies_where_it_lay_in_version_2_0) {
  ck_assert_uint_eq(sizeof(void *), 8);
  check(fields_of_2_0, sizeof fields_of_2_0 / sizeof fields_of_2_0[0]);
}

UNIT_TEST(structs_in_arrays_do_not_grow) {
  check(sizes_for_ever, sizeof sizes_for_ever / sizeof sizes_for_ever[0]);
}

/* A struct ends where a younger field begins, so that `size` tells them apart. */
UNIT_TEST(what_is_younger_comes_behind_what_is_older) {
  ck_assert_uint_eq(CLEAVE_BACKEND_SIZE_REQUIRED, 104);
  ck_assert_uint_eq(CLEAVE_REGION_VIEW_SIZE_REQUIRED, 96);
  ck_assert_uint_eq(offsetof(cleave_host_t, log), 32);
  ck_assert_uint_eq(offsetof(cleave_host_t, constant_packed), 72);
  ck_assert_uint_eq(offsetof(cleave_compile_options_t, device), 16);
  ck_assert_uint_eq(offsetof(cleave_run_args_t, requests), 48);
}

UNIT_TEST(numbers_of_enumerations_stay) {
  ck_assert_int_eq(CLEAVE_ERROR_INTERNAL, 11);
  ck_assert_int_eq(CLEAVE_DTYPE_BF16, 16);
  ck_assert_int_eq(CLEAVE_REASON_DEVICE, 8);
  ck_assert_int_eq(CLEAVE_ATTRIBUTE_TENSOR, 7);
  ck_assert_int_eq(CLEAVE_STORAGE_ROW_SPARSE, 2);
  ck_assert_int_eq(CLEAVE_REQUEST_NONE, 2);
  ck_assert_uint_eq(CLEAVE_BACKEND_ABI_MAJOR, 2);
}

UNIT_SUITE("header_layout")
