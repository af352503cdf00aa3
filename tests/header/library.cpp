// SPDX-License-Identifier: Apache-2.0
// The same library in C++: a class per program, exceptions kept inside. Structs are filled in by name, where
// the language has that (C++20), and by assignment where it does not.
#include "cleave/backend.h"

#include <exception>
#include <memory>
#include <string>

namespace {

class program {
 public:
  explicit program(const cleave_region_view_t &region) {
    for (uint32_t k = 0; k < region.node_count; k++) {
      if (!cleave_view_text_equal(region.nodes[k].op, "Neg")) {
        throw std::string("only Neg is known");
      }
    }
    const cleave_value_view_t *input = cleave_view_input(&region, &region.nodes[0], 0);
    if (region.node_count != 1 || input == nullptr || input->tensor.data != nullptr ||
        input->tensor.dtype != CLEAVE_DTYPE_F32 || cleave_view_element_count(&input->tensor) < 0) {
      throw std::string("expected float32 of known shape");
    }
    info_.size = sizeof info_;
    elements_ = static_cast<size_t>(cleave_view_element_count(&input->tensor));
  }

  const cleave_program_info_t *info() const {
    return &info_;
  }

  void run(const cleave_run_args_t &args) const {
    const unsigned char *from = static_cast<const unsigned char *>(args.inputs[0].data);
    unsigned char *to = static_cast<unsigned char *>(const_cast<void *>(args.outputs[0].data));
    for (size_t k = 0; k < elements_ * 4; k++) {
      to[k] = static_cast<unsigned char>(k % 4 == 3 ? from[k] ^ 0x80 : from[k]);
    }
  }

 private:
  cleave_program_info_t info_ = cleave_program_info_t();
  size_t elements_ = 0;
};

cleave_status_t initialise(const cleave_host_t *, void **out_state, cleave_message_t *) {
  *out_state = nullptr;
  return CLEAVE_OK;
}

void destroy(void *) {
}

cleave_status_t compile(void *, const cleave_region_view_t *region, const cleave_compile_options_t *,
                        void **out_program, cleave_message_t *message) {
  try {
    *out_program = new program(*region);
    return CLEAVE_OK;
  } catch (const std::string &reason) {
    message->text[reason.copy(message->text, sizeof message->text - 1)] = '\0';
    message->code = CLEAVE_REASON_OPERATOR;
    return CLEAVE_ERROR_UNSUPPORTED;
  } catch (const std::exception &) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
}

void unload(void *memory) {
  delete static_cast<program *>(memory);
}

cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  void *made = nullptr;
  const cleave_status_t status = compile(state, view, nullptr, &made, reason);
  unload(made);
  return status;
}

const cleave_program_info_t *info(const void *memory) {
  return static_cast<const program *>(memory)->info();
}

cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *) {
  static_cast<program *>(memory)->run(*args);
  return CLEAVE_OK;
}

#if __cplusplus >= 202002L
const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                  .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                  .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                  .name = "header",
                                  .version = "1",
                                  .description = "C++20 and one header",
                                  .initialise = initialise,
                                  .destroy = destroy,
                                  .supports = supports,
                                  .compile = compile,
                                  .unload = unload,
                                  .info = info,
                                  .run = run};
#else
cleave_backend_t make_backend() {
  cleave_backend_t made = cleave_backend_t();
  made.size = sizeof made;
  made.abi_major = CLEAVE_BACKEND_ABI_MAJOR;
  made.abi_minor = CLEAVE_BACKEND_ABI_MINOR;
  made.name = "header";
  made.version = "1";
  made.description = "C++ and one header";
  made.initialise = initialise;
  made.destroy = destroy;
  made.supports = supports;
  made.compile = compile;
  made.unload = unload;
  made.info = info;
  made.run = run;
  return made;
}

const cleave_backend_t backend = make_backend();
#endif

}  // namespace

extern "C" const cleave_backend_t *cleave_backend_entry(uint32_t, uint32_t, cleave_message_t *) {
  return &backend;
}
