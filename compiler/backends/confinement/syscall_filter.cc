#include "compiler/backends/confinement/syscall_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/errno_status.h"

namespace fusion {
namespace {

static_assert(std::endian::native == std::endian::little, "the low half of an argument comes first");

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's AUDIT_ARCH"
#endif

// A condition on the arguments of a listed call.
enum class If {
  kAny,
  kOwnProcess,    // argument 0 is this process
  kFirstIsZero,   // argument 0, an int, is 0: the caller
  kNoAddress,     // argument 4, a pointer, is null
  kThread,        // argument 0 are clone's flags for a thread
  kNoNamespace,   // argument 0 are clone's flags for a thread or a process in these namespaces
  kUnixSocket,    // argument 0 is the family of Unix sockets
  kAsksTerminal,  // argument 1 asks for the settings of a terminal: isatty
  kNoSignal,      // argument 1 is no command of fcntl that lets a file's events send signals to others
  kMissing        // the call fails as one that this kernel does not have
};

struct Rule {
  long number;
  If condition = If::kAny;
};

constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                 CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */;

using Calls = absl::Span<const long>;
using Rules = absl::Span<const Rule>;

// Every profile: memory, threads, time, and files that are open or may be opened for reading.
constexpr long kMemory[] = {SYS_brk,     SYS_mmap,       SYS_munmap,       SYS_mprotect,     SYS_mremap,
                            SYS_madvise, SYS_mincore,    SYS_mlock,        SYS_munlock,      SYS_mlock2,
                            SYS_msync,   SYS_membarrier, SYS_memfd_create, SYS_get_mempolicy};
constexpr long kThreads[] = {SYS_futex,
                             SYS_set_robust_list,
                             SYS_get_robust_list,
                             SYS_rseq,
                             SYS_set_tid_address,
                             SYS_gettid,
                             SYS_exit,
                             SYS_exit_group,
                             SYS_restart_syscall,
                             SYS_sched_yield,
                             SYS_sched_getaffinity,
                             SYS_sched_setaffinity,
                             SYS_sched_getparam,
                             SYS_sched_getscheduler,
                             SYS_sched_get_priority_max,
                             SYS_sched_get_priority_min,
                             SYS_getcpu};
constexpr long kHandlers[] = {SYS_rt_sigaction,    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
                              SYS_rt_sigtimedwait, SYS_rt_sigsuspend,  SYS_sigaltstack};
constexpr long kTime[] = {SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,
                          SYS_gettimeofday,  SYS_times,        SYS_getrusage};
constexpr long kItself[] = {SYS_getpid,    SYS_getppid,   SYS_getuid,    SYS_geteuid,     SYS_getgid,    SYS_getegid,
                            SYS_getgroups, SYS_getresuid, SYS_getresgid, SYS_getpgid,     SYS_getsid,    SYS_uname,
                            SYS_sysinfo,   SYS_getrandom, SYS_prctl,     SYS_getpriority, SYS_getrlimit, SYS_setrlimit};
constexpr long kFiles[] = {
    SYS_read,       SYS_write,      SYS_readv,         SYS_writev,    SYS_pread64,     SYS_pwrite64,   SYS_preadv,
    SYS_pwritev,    SYS_close,      SYS_close_range,   SYS_dup,       SYS_dup3,        SYS_lseek,      SYS_fstat,
    SYS_newfstatat, SYS_statx,      SYS_statfs,        SYS_fstatfs,   SYS_faccessat,   SYS_faccessat2, SYS_readlinkat,
    SYS_getcwd,     SYS_getdents64, SYS_openat,        SYS_ftruncate, SYS_fadvise64,   SYS_ppoll,      SYS_pselect6,
    SYS_pipe2,      SYS_eventfd2,   SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_umask};
// clone3 hides its flags from filters; the C library then calls clone.
constexpr Rule kCommonRules[] = {
    {SYS_clone3, If::kMissing}, {SYS_prlimit64, If::kFirstIsZero}, {SYS_fcntl, If::kNoSignal}};

// Only what follows tells the profiles apart.
constexpr Rule kThreadsOnly[] = {{SYS_clone, If::kThread}};
// abort() and the like. A process that starts others has several numbers, which a filter cannot tell from those of
// strangers.
constexpr Rule kOwnSignals[] = {
    {SYS_kill, If::kOwnProcess}, {SYS_tgkill, If::kOwnProcess}, {SYS_rt_tgsigqueueinfo, If::kOwnProcess}};
constexpr Rule kTerminal[] = {{SYS_ioctl, If::kAsksTerminal}};
constexpr long kWriting[] = {SYS_mkdirat,   SYS_unlinkat,  SYS_renameat,        SYS_renameat2, SYS_linkat,
                             SYS_symlinkat, SYS_truncate,  SYS_fchmod,          SYS_fchmodat,  SYS_utimensat,
                             SYS_fsync,     SYS_fdatasync, SYS_sync_file_range, SYS_fallocate, SYS_copy_file_range,
                             SYS_sendfile,  SYS_flock,     SYS_chdir,           SYS_fchdir};
// Messages over a socket that the process has already.
constexpr Rule kMessages[] = {{SYS_sendto, If::kNoAddress}, {SYS_recvfrom}, {SYS_shutdown}};
constexpr Rule kPrograms[] = {
    {SYS_clone, If::kNoNamespace}, {SYS_execve}, {SYS_wait4}, {SYS_waitid}, {SYS_setpgid}, {SYS_setsid}};
// CUDA's driver also listens on a Unix socket of its own, which nothing confined can connect to.
constexpr Rule kDevices[] = {{SYS_ioctl},      {SYS_mbind},       {SYS_set_mempolicy}, {SYS_socket, If::kUnixSocket},
                             {SYS_setsockopt}, {SYS_getsockname}, {SYS_bind},          {SYS_listen},
                             {SYS_accept4}};

// Older forms of the calls above, which only x86-64 has.
#if defined(__x86_64__)
constexpr long kOlder[] = {SYS_arch_prctl, SYS_time, SYS_dup2,   SYS_stat, SYS_lstat,      SYS_access, SYS_readlink,
                           SYS_open,       SYS_poll, SYS_select, SYS_pipe, SYS_epoll_wait, SYS_getpgrp};
constexpr long kOlderWriting[] = {SYS_mkdir,   SYS_rmdir, SYS_unlink, SYS_rename, SYS_link,
                                  SYS_symlink, SYS_chmod, SYS_utime,  SYS_utimes, SYS_creat};
constexpr long kOlderPrograms[] = {SYS_vfork, SYS_fork, SYS_alarm};
#else
constexpr Calls kOlder, kOlderWriting, kOlderPrograms;
#endif

std::vector<Rule> RulesOf(Profile profile) {
  std::vector<Rule> all;
  const auto pass = [&](std::initializer_list<Calls> groups) {
    for (const Calls group : groups) {
      for (const long number : group) all.push_back({number});
    }
  };
  const auto pass_if = [&](std::initializer_list<Rules> groups) {
    for (const Rules group : groups) all.insert(all.end(), group.begin(), group.end());
  };
  pass({kMemory, kThreads, kHandlers, kTime, kItself, kFiles, kOlder});
  pass_if({kCommonRules});
  switch (profile) {
    case Profile::kKernel:
      pass_if({kThreadsOnly, kOwnSignals, kTerminal});
      break;
    case Profile::kCompiler:
      pass({kWriting, kOlderWriting});
      pass_if({kThreadsOnly, kOwnSignals, kTerminal, kMessages});
      break;
    case Profile::kToolchain:
      pass({kWriting, kOlderWriting, kOlderPrograms});
      pass_if({kTerminal, kPrograms});
      break;
    case Profile::kDriver:
      pass({kWriting, kOlderWriting, kOlderPrograms});
      pass_if({kPrograms, kDevices});
      break;
  }
  return all;
}

// ---- the filter's program, for the virtual machine of classic BPF

sock_filter Load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
sock_filter LoadLow(int argument) { return Load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument)); }
sock_filter LoadHigh(int argument) {
  return Load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument) + 4);
}
sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Goes on after so many instructions, by whether the loaded word equals `value`, or has one of its bits.
sock_filter JumpIfEqual(uint32_t value, size_t then_skip, size_t else_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, static_cast<uint8_t>(then_skip), static_cast<uint8_t>(else_skip));
}
sock_filter JumpIfAny(uint32_t bits, size_t then_skip, size_t else_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, static_cast<uint8_t>(then_skip), static_cast<uint8_t>(else_skip));
}

const sock_filter kAllow = Return(SECCOMP_RET_ALLOW), kRefuse = Return(SECCOMP_RET_ERRNO | EPERM);

// The instructions for a call whose number fits. Each way through them ends the filter.
std::vector<sock_filter> Verdict(If condition) {
  switch (condition) {
    case If::kAny:
      return {kAllow};
    case If::kMissing:
      return {Return(SECCOMP_RET_ERRNO | ENOSYS)};
    case If::kOwnProcess:
      return {LoadLow(0), JumpIfEqual(static_cast<uint32_t>(getpid()), 0, 1), kAllow, kRefuse};
    case If::kFirstIsZero:
      return {LoadLow(0), JumpIfEqual(0, 0, 1), kAllow, kRefuse};
    case If::kNoAddress:
      return {LoadLow(4), JumpIfEqual(0, 0, 3), LoadHigh(4), JumpIfEqual(0, 0, 1), kAllow, kRefuse};
    case If::kThread:
      return {LoadLow(0), JumpIfAny(kNamespaces, 2, 0), JumpIfAny(CLONE_THREAD, 0, 1), kAllow, kRefuse};
    case If::kNoNamespace:
      return {LoadLow(0), JumpIfAny(kNamespaces, 1, 0), kAllow, kRefuse};
    case If::kUnixSocket:
      return {LoadLow(0), JumpIfEqual(AF_UNIX, 0, 1), kAllow, kRefuse};
    case If::kAsksTerminal:
      return {LoadLow(1), JumpIfEqual(TCGETS, 0, 1), kAllow, kRefuse};
    case If::kNoSignal:
      return {
          LoadLow(1), JumpIfEqual(F_SETOWN, 3, 0), JumpIfEqual(F_SETOWN_EX, 2, 0), JumpIfEqual(F_SETSIG, 1, 0), kAllow,
          kRefuse};
  }
  return {kRefuse};
}

std::vector<sock_filter> FilterOf(Profile profile) {
  std::vector<sock_filter> filter = {Load(offsetof(seccomp_data, arch)), JumpIfEqual(kArchitecture, 1, 0),
                                     Return(SECCOMP_RET_KILL_PROCESS), Load(offsetof(seccomp_data, nr))};
  for (const Rule& rule : RulesOf(profile)) {
    const std::vector<sock_filter> verdict = Verdict(rule.condition);
    filter.push_back(JumpIfEqual(static_cast<uint32_t>(rule.number), 0, verdict.size()));
    filter.insert(filter.end(), verdict.begin(), verdict.end());
  }
  filter.push_back(kRefuse);
  return filter;
}

}  // namespace

bool HasSyscallFilters() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

absl::Status FilterSyscalls(Profile profile) {
  std::vector<sock_filter> filter = FilterOf(profile);
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    return ErrnoStatus(errno, "cannot filter system calls");
  }
  return absl::OkStatus();
}

}  // namespace fusion
