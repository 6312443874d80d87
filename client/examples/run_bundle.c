/* Runs a bundle on inputs of ones and prints the first values of each output. Usage: run_bundle MODEL.fusion */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/loader/fusion_runtime.h"

static void check(fusion_status status) {
  if (status == FUSION_OK) return;
  fprintf(stderr, "error: %s\n", fusion_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: %s MODEL.fusion\n", argv[0]), 2;
  fusion_bundle* bundle = NULL;
  fusion_session* session = NULL;
  check(fusion_bundle_open(argv[1], &bundle));
  check(fusion_session_create(bundle, /*threads=*/0, &session));

  const size_t input_count = fusion_bundle_input_count(bundle), output_count = fusion_bundle_output_count(bundle);
  const void** inputs = calloc(input_count + 1, sizeof(*inputs));
  void** outputs = calloc(output_count + 1, sizeof(*outputs));
  for (size_t i = 0; i < input_count; ++i) {
    float* x = fusion_session_input(session, i); /* the session's own memory: no copies; zero at first */
    if (fusion_bundle_input_dtype(bundle, i) == FUSION_F32)
      for (size_t k = 0; k < fusion_bundle_input_bytes(bundle, i) / sizeof(float); ++k) x[k] = 1;
    inputs[i] = x;
  }
  for (size_t i = 0; i < output_count; ++i) outputs[i] = fusion_session_output(session, i);
  check(fusion_run(session, inputs, outputs));

  for (size_t i = 0; i < output_count; ++i) {
    printf("%s:", fusion_bundle_output_name(bundle, i));
    for (size_t k = 0; k < fusion_bundle_output_bytes(bundle, i) / sizeof(float) && k < 8; ++k)
      printf(" %g", ((const float*)outputs[i])[k]);
    printf("\n");
  }
  return fusion_session_close(session), fusion_bundle_close(bundle), free(inputs), free(outputs), 0;
}
