/* fusion_runtime: runs bundles of fused kernels. A C interface; link with -lfusion_runtime.
 *
 *   fusion_bundle* bundle;
 *   fusion_session* session;
 *   if (fusion_bundle_open("model.fusion", &bundle) != FUSION_OK) puts(fusion_last_error());
 *   fusion_session_create(bundle, 0, &session);
 *   fusion_run(session, inputs, outputs);
 *
 * Threads: a bundle may be used by any number at once. Runs of one session wait for each other, in the order of the
 * calls. Sessions share the threads of the process, unless they are given a pool. Errors: every function that can fail returns a fusion_status; fusion_last_error has the words. Nothing
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
typedef struct fusion_pool fusion_pool;
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
  FUSION_BOOL, /* one byte, 0 or 1 */
  /* One byte an element: integers with their sign extended, floats as their code in the low bits. */
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

/* --- Sessions: memory for one run at a time, and a number of threads --- */

/* threads is how many a run takes, the calling one included; 0 means every CPU that this process may use; at most 1024.
 *
 * All sessions of a process share one pool, which has as many threads as the process may use CPUs, or as the session
 * that wants most. A run takes its threads when it begins and gives them back when it ends; where too few are free, runs
 * wait in the order of the calls. Runs of one thread take none and never wait for those of other sessions. Idle threads
 * look for work for a tenth of a millisecond, then sleep. The pool ends with the last session. */
FUSION_API fusion_status fusion_session_create(const fusion_bundle* bundle, int threads, fusion_session** session);
FUSION_API void fusion_session_close(fusion_session* session);

/* A pool of the caller's, apart from that of the process: its sessions run on at most `threads` threads at a time,
 * calling ones included, and wait for nobody but each other. 1 to 1024 threads; FUSION_RESOURCE_EXHAUSTED if they do not
 * start. */
FUSION_API fusion_status fusion_pool_create(int threads, fusion_pool** pool);
/* NULL is allowed. Sessions may outlive their pool's handle. */
FUSION_API void fusion_pool_close(fusion_pool* pool);
/* As fusion_session_create; 0 threads means all of the pool, more than it has are FUSION_INVALID_ARGUMENT. A NULL pool is
 * that of the process. */
FUSION_API fusion_status fusion_session_create_on(const fusion_bundle* bundle, fusion_pool* pool, int threads,
                                                  fusion_session** session);

/* Following runs take inputs of these shapes: shapes[i] points to fusion_bundle_input_rank(i) extents.
 * FUSION_INVALID_ARGUMENT, listing what was built, if no specialisation takes them; the session stays as it was. Not
 * while another thread runs the session; pointers from fusion_session_input and _output are to be asked for again. */
FUSION_API fusion_status fusion_session_select(fusion_session* session, const int64_t* const* shapes);
/* The selected one's index, and the bytes of its inputs and outputs. */
FUSION_API size_t fusion_session_specialisation(const fusion_session* session);
FUSION_API size_t fusion_session_input_bytes(const fusion_session* session, size_t index);
FUSION_API size_t fusion_session_output_bytes(const fusion_session* session, size_t index);

/* inputs[i] points to fusion_session_input_bytes(i) bytes, row-major, of any alignment; outputs alike. Inputs are not
 * written. Memory may be used twice: an output may be or overlap an input, which counts as it was before the run; of
 * outputs that overlap, the last one stays.
 *
 * On target cpu, kernels read and write this memory itself, with no copy, where all of these hold:
 *   - it begins at a multiple of its element's size (a multiple of 64 bytes is fastest);
 *   - its last byte and the 64 bytes behind it lie in one page: kernels may read, not write, so far;
 *   - it has nothing in common with another output, nor an input with an output;
 *   - the model computes the output, and does not hand out an input, a constant or another output;
 *   - the session does not pad the input to a larger specialisation.
 * What fails one of them is copied, by all threads of the session. Other targets copy to and from the device. Until the
 * call returns, nobody else writes the inputs or touches the outputs. */
FUSION_API fusion_status fusion_run(fusion_session* session, const void* const* inputs, void* const* outputs);

/* Shapes of outputs that depend on data: fusion_bundle_output_shape and fusion_session_output_bytes are bounds, for
 * which memory must be given. Writes fusion_bundle_output_rank extents of the latest run; the elements lie row-major in
 * that shape at the start of the output's memory, what is behind them is undefined. Before the first run, and for all
 * other outputs, the shape of the selected specialisation. */
FUSION_API fusion_status fusion_session_output_shape(const fusion_session* session, size_t index, int64_t* extents);

/* The session's own memory of an input or output (NULL out of range), which is aligned and has room behind it: on target
 * cpu, what is passed to fusion_run in it is never copied. An output is found there only if the run was given it. */
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
