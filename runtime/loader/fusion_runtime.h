/* fusion_runtime: a C interface that runs bundles of fused kernels. Link with -lfusion_runtime.
 *
 *   fusion_bundle* bundle;
 *   fusion_session* session;
 *   if (fusion_bundle_open("model.fusion", &bundle) != FUSION_OK) puts(fusion_last_error());
 *   fusion_session_create(bundle, 0, &session);
 *   fusion_run(session, inputs, outputs);
 *
 * Threads: any number of threads may use a bundle at once. Runs of one session wait for each other, in the order of the
 * calls. Sessions share the threads of the process, unless they are given a pool.
 * Errors: every function that can fail returns a fusion_status; fusion_last_error has the message. No bad input makes
 * the library abort.
 * Trust: a bundle contains machine code. Digests detect damage; they do not make an untrusted file safe. A signature
 * says who made it: fusion_bundle_open_signed.
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
typedef struct fusion_pool fusion_pool;
typedef struct fusion_session fusion_session;

/* The numbers are the canonical codes of gRPC and Abseil. */
typedef enum fusion_status {
  FUSION_OK = 0,
  FUSION_INVALID_ARGUMENT = 3, /* not a bundle; a null pointer; an index out of range */
  FUSION_NOT_FOUND = 5,        /* no such file */
  FUSION_PERMISSION_DENIED = 7,
  FUSION_RESOURCE_EXHAUSTED = 8,  /* memory, threads */
  FUSION_FAILED_PRECONDITION = 9, /* newer format; instructions this CPU lacks; code that does not load */
  FUSION_UNIMPLEMENTED = 12,      /* a target that this library has no device for */
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
  FUSION_BOOL, /* one byte, 0 or 1 */
  /* One byte per element: integers are sign-extended, floats are their code in the low bits. */
  FUSION_I4,
  FUSION_U4,
  FUSION_I2,
  FUSION_U2,
  FUSION_F8E4M3FN,
  FUSION_F8E4M3FNUZ,
  FUSION_F8E5M2,
  FUSION_F8E5M2FNUZ,
  FUSION_F8E8M0,
  FUSION_F6E2M3,
  FUSION_F6E3M2,
  FUSION_F4E2M1
} fusion_dtype;

/* Returns the message of this thread's most recent call that failed; "" before the first. Valid until the next
 * failure. */
FUSION_API const char* fusion_last_error(void);

/* --- Bundles --- */

/* Maps the file, checks every byte of it against its digests, and checks that this machine can run it. Sets *bundle
 * only on success. The file must not be truncated while it is open (replacing it by rename is fine). */
FUSION_API fusion_status fusion_bundle_open(const char* path, fusion_bundle** bundle);
/* Does the same, but runs nothing of the file unless one of the Ed25519 public keys in `keys_path` (PEM) has signed it
 * (`fusionctl bundle sign`, whose file PATH.sig lies beside it): else FUSION_PERMISSION_DENIED. If the environment
 * variable FUSION_REQUIRE_KEY names such keys, fusion_bundle_open demands the same. The file must not be writable by
 * those who are not trusted, since it is mapped. */
FUSION_API fusion_status fusion_bundle_open_signed(const char* path, const char* keys_path, fusion_bundle** bundle);
/* NULL is allowed. Sessions may outlive their bundle. */
FUSION_API void fusion_bundle_close(fusion_bundle* bundle);

/* Returns manifest.json, the full description as JSON. This pointer and all below live as long as the bundle. */
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

/* A bundle may hold several specialisations of its model, for inputs of different shapes. They have the same inputs
 * and outputs, except for extents. The functions above and below describe the first one, which sessions run unless
 * they select another. The count is 1 if there is only one; the name is for people: "seq=32". */
FUSION_API size_t fusion_bundle_specialisation_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_specialisation_name(const fusion_bundle* bundle, size_t index);

/* The kernel launches of one run, in order; the label is for people. */
FUSION_API size_t fusion_bundle_launch_count(const fusion_bundle* bundle);
FUSION_API const char* fusion_bundle_launch_label(const fusion_bundle* bundle, size_t index);

/* --- Sessions: memory for one run at a time, and a number of threads --- */

/* `threads` is the number of threads of a run, including the calling one, at most 1024. 0 means every CPU that this
 * process may use.
 *
 * All sessions of a process share one pool. It has as many threads as the process may use CPUs, or as the session
 * with the most threads needs, whichever is more. A run takes its threads when it begins and gives them back when it
 * ends; if too few are free, runs wait in the order of the calls. Runs of one thread take none from the pool and
 * never wait for runs of other sessions. Idle threads look for work for a tenth of a millisecond, then sleep. The
 * pool ends with the last session. */
FUSION_API fusion_status fusion_session_create(const fusion_bundle* bundle, int threads, fusion_session** session);
FUSION_API void fusion_session_close(fusion_session* session);

/* Creates a pool that is separate from the pool of the process. Its sessions run on at most `threads` threads at a
 * time, including the calling ones, and wait only for each other. `threads` is 1 to 1024. Fails with
 * FUSION_RESOURCE_EXHAUSTED if the threads do not start. */
FUSION_API fusion_status fusion_pool_create(int threads, fusion_pool** pool);
/* NULL is allowed. Sessions may outlive their pool's handle. */
FUSION_API void fusion_pool_close(fusion_pool* pool);
/* Like fusion_session_create, but with threads of `pool`; NULL means the pool of the process. 0 threads means all of
 * the pool; more threads than the pool has are FUSION_INVALID_ARGUMENT. */
FUSION_API fusion_status fusion_session_create_on(const fusion_bundle* bundle, fusion_pool* pool, int threads,
                                                  fusion_session** session);

/* Selects the specialisation for the following runs, whose inputs have these shapes: shapes[i] points to
 * fusion_bundle_input_rank(i) extents. If no specialisation accepts them, fails with FUSION_INVALID_ARGUMENT, lists
 * what was built, and leaves the session unchanged. Must not be called while another thread runs the session.
 * Invalidates pointers from fusion_session_input and fusion_session_output. */
FUSION_API fusion_status fusion_session_select(fusion_session* session, const int64_t* const* shapes);
/* The index of the selected specialisation, and the sizes of its inputs and outputs in bytes. */
FUSION_API size_t fusion_session_specialisation(const fusion_session* session);
FUSION_API size_t fusion_session_input_bytes(const fusion_session* session, size_t index);
FUSION_API size_t fusion_session_output_bytes(const fusion_session* session, size_t index);

/* inputs[i] points to fusion_session_input_bytes(i) bytes, row-major, with any alignment; outputs alike. Inputs are
 * not written. An output may be the same memory as an input or overlap it: the input counts as it was before the
 * run. Of outputs that overlap, the last one stays.
 *
 * On target cpu, kernels read and write this memory directly, without a copy, if all of these hold:
 *   - it begins at a multiple of its element's size (a multiple of 64 bytes is fastest);
 *   - its last byte and the 64 bytes behind it lie in one page, because kernels may read (not write) these bytes;
 *   - it does not overlap another output, and an input does not overlap any output;
 *   - the model computes the output, rather than returning an input, a constant or another output;
 *   - the session does not pad the input to a larger specialisation.
 * Otherwise all threads of the session copy it. Other targets copy to and from the device. Until the call returns,
 * nobody else may write the inputs or access the outputs. */
FUSION_API fusion_status fusion_run(fusion_session* session, const void* const* inputs, void* const* outputs);

/* Writes the output's shape in the latest run, fusion_bundle_output_rank extents. Before the first run, and for outputs
 * whose shape does not depend on data, writes the shape in the selected specialisation. If a shape depends on data,
 * fusion_bundle_output_shape and fusion_session_output_bytes are bounds: the caller provides memory for them. After the
 * run, the elements lie row-major in the actual shape at the start of that memory; the rest is undefined. */
FUSION_API fusion_status fusion_session_output_shape(const fusion_session* session, size_t index, int64_t* extents);

/* Return the session's own memory for an input or output, or NULL if the index is out of range. The memory is
 * aligned and has room behind it, so target cpu never copies it when it is passed to fusion_run. An output is found
 * there only if it was passed to the run. */
FUSION_API void* fusion_session_input(fusion_session* session, size_t index);
FUSION_API void* fusion_session_output(fusion_session* session, size_t index);

/* Switches profiling on (nonzero) or off. While it is on, runs time each launch, and fusion_session_latency_ns
 * returns the latest run's latency of a launch of the selected specialisation (-1: not measured). Must not be called
 * while another thread runs the session. */
FUSION_API void fusion_session_set_profiling(fusion_session* session, int on);
FUSION_API int64_t fusion_session_latency_ns(const fusion_session* session, size_t launch);

#ifdef __cplusplus
}
#endif

#endif /* FUSION_RUNTIME_LOADER_FUSION_RUNTIME_H_ */
