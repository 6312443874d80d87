/* fusion_runtime: runs bundles of fused kernels. A C interface; link with -lfusion_runtime.
 *
 *   fusion_bundle* bundle;
 *   fusion_session* session;
 *   if (fusion_bundle_open("model.fusion", &bundle) != FUSION_OK) puts(fusion_last_error());
 *   fusion_session_create(bundle, 0, &session);
 *   fusion_run(session, inputs, outputs);
 *
 * Threads: a bundle may be used by any number at once. Runs of one session wait for each other; sessions are
 * independent. Errors: every function that can fail returns a fusion_status; fusion_last_error has the words. Nothing
 * aborts on bad input. A bundle contains machine code: digests detect damage, they do not make an untrusted file safe.
 */
#ifndef FUSION_RUNTIME_LOADER_FUSION_RUNTIME_H_
#define FUSION_RUNTIME_LOADER_FUSION_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FUSION_API __attribute__((visibility("default")))
#else
#define FUSION_API
#endif

typedef struct fusion_bundle fusion_bundle;
typedef struct fusion_session fusion_session;

/* Numbers are those of the canonical gRPC and Abseil codes. */
typedef enum fusion_status {
  FUSION_OK = 0,
  FUSION_INVALID_ARGUMENT = 3, /* not a bundle; a null pointer; an index out of range */
  FUSION_NOT_FOUND = 5,        /* no such file */
  FUSION_PERMISSION_DENIED = 7,
  FUSION_RESOURCE_EXHAUSTED = 8,  /* memory, threads */
  FUSION_FAILED_PRECONDITION = 9, /* newer format; instructions this CPU lacks; code that does not load */
  FUSION_UNIMPLEMENTED = 12,      /* a target this library has no device for */
  FUSION_INTERNAL = 13,
  FUSION_UNAVAILABLE = 14, /* the operating system failed otherwise */
  FUSION_DATA_LOSS = 15    /* a damaged bundle */
} fusion_status;

typedef enum fusion_dtype {
  FUSION_F32,
  FUSION_F64,
  FUSION_F16,
  FUSION_BF16,
  FUSION_I8,
  FUSION_I16,
  FUSION_I32,
  FUSION_I64,
  FUSION_U8,
  FUSION_U16,
  FUSION_U32,
  FUSION_U64,
  FUSION_BOOL /* one byte, 0 or 1 */
} fusion_dtype;

/* What went wrong in this thread's most recent call that failed; "" before the first. Valid until the next failure. */
FUSION_API const char* fusion_last_error(void);

/* --- Bundles --- */

/* Maps the file, checks every byte of it against its digests, and checks that this machine can run it; then only is
 * *bundle set. The file must not be truncated while it is open (replacing it by rename is fine). */
FUSION_API fusion_status fusion_bundle_open(const char* path, fusion_bundle** bundle);
/* NULL is allowed. Sessions may outlive their bundle. */
FUSION_API void fusion_bundle_close(fusion_bundle* bundle);

/* manifest.json: all there is to know, as JSON. Lives as long as the bundle, as all pointers below. */
FUSION_API const char* fusion_bundle_describe(const fusion_bundle* bundle);

/* Inputs and outputs, counted from 0. An index out of range gives NULL, -1 or 0. */
FUSION_API size_t fusion_bundle_input_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_input_name(const fusion_bundle* bundle, size_t index);
FUSION_API int fusion_bundle_input_dtype(const fusion_bundle* bundle, size_t index); /* fusion_dtype or -1 */
FUSION_API int fusion_bundle_input_rank(const fusion_bundle* bundle, size_t index);
FUSION_API const int64_t* fusion_bundle_input_shape(const fusion_bundle* bundle, size_t index); /* rank extents */
FUSION_API size_t fusion_bundle_input_bytes(const fusion_bundle* bundle, size_t index);

FUSION_API size_t fusion_bundle_output_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_output_name(const fusion_bundle* bundle, size_t index);
FUSION_API int fusion_bundle_output_dtype(const fusion_bundle* bundle, size_t index);
FUSION_API int fusion_bundle_output_rank(const fusion_bundle* bundle, size_t index);
FUSION_API const int64_t* fusion_bundle_output_shape(const fusion_bundle* bundle, size_t index);
FUSION_API size_t fusion_bundle_output_bytes(const fusion_bundle* bundle, size_t index);

/* A bundle may hold several specialisations of its model, for inputs of different shapes. They have the same inputs and
 * outputs, but for extents; the functions above and below tell of the first, which sessions run unless they select
 * another. The count is 1 for other bundles; the name is for people: "seq=32". */
FUSION_API size_t fusion_bundle_specialisation_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_specialisation_name(const fusion_bundle* bundle, size_t index);

/* Kernel launches of one run, in order; the label is for people. */
FUSION_API size_t fusion_bundle_launch_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_launch_label(const fusion_bundle* bundle, size_t index);

/* --- Sessions: memory and threads for one run at a time --- */

/* threads counts the calling one; 0 means every CPU that this process may use; at most 1024. */
FUSION_API fusion_status fusion_session_create(const fusion_bundle* bundle, int threads, fusion_session** session);
FUSION_API void fusion_session_close(fusion_session* session);

/* Following runs take inputs of these shapes: shapes[i] points to fusion_bundle_input_rank(i) extents.
 * FUSION_INVALID_ARGUMENT, listing what was built, if no specialisation takes them; the session stays as it was. Not
 * while another thread runs the session; pointers from fusion_session_input and _output are to be asked for again. */
FUSION_API fusion_status fusion_session_select(fusion_session* session, const int64_t* const* shapes);
/* The selected one's index, and the bytes of its inputs and outputs. */
FUSION_API size_t fusion_session_specialisation(const fusion_session* session);
FUSION_API size_t fusion_session_input_bytes(const fusion_session* session, size_t index);
FUSION_API size_t fusion_session_output_bytes(const fusion_session* session, size_t index);

/* inputs[i] points to fusion_session_input_bytes(i) bytes, row-major, of any alignment; outputs alike. */
FUSION_API fusion_status fusion_run(fusion_session* session, const void* const* inputs, void* const* outputs);

/* Shapes of outputs that depend on data: fusion_bundle_output_shape and fusion_session_output_bytes are bounds, for
 * which memory must be given. Writes fusion_bundle_output_rank extents of the latest run; the elements lie row-major in
 * that shape at the start of the output's memory, what is behind them is undefined. Before the first run, and for all
 * other outputs, the shape of the selected specialisation. */
FUSION_API fusion_status fusion_session_output_shape(const fusion_session* session, size_t index, int64_t* extents);

/* The session's own memory of an input or output (NULL out of range). Passing it to fusion_run saves the copy. */
FUSION_API void* fusion_session_input(fusion_session* session, size_t index);
FUSION_API void* fusion_session_output(fusion_session* session, size_t index);

/* Once on (nonzero), runs time each launch, and fusion_session_latency_ns tells the latest run's (-1: not measured)
 * of the selected specialisation's launches.
 * Not while another thread runs the session. */
FUSION_API void fusion_session_set_profiling(fusion_session* session, int on);
FUSION_API int64_t fusion_session_latency_ns(const fusion_session* session, size_t launch);

#ifdef __cplusplus
}
#endif

#endif /* FUSION_RUNTIME_LOADER_FUSION_RUNTIME_H_ */
