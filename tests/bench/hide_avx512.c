// A library to preload into another engine's process: CPUID then says that the processor has AVX2, and neither AVX-512
// nor products of bytes (VNNI) nor AMX, so that the engine takes the kernels that it has for such machines.
//
// It asks Linux to let the CPUID instruction fault (arch_prctl(ARCH_CPUID_SET), since Linux 4.12, where the processor
// or the hypervisor can do that), and answers the fault with the instruction's result less these bits. Threads inherit
// this. Engines ask while they start, so that nothing is slower afterwards. Ends the process where it is impossible.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kArchCpuidSet = 0x1012 };

static uint32_t Bits(const int* bits, int count) {
  uint32_t mask = 0;
  for (int i = 0; i < count; ++i) mask |= UINT32_C(1) << bits[i];
  return mask;
}
#define BITS(...) Bits((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void OnFault(int signal_number, siginfo_t* info, void* context) {
  (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* at = (const unsigned char*)registers[REG_RIP];
  if (at[0] != 0x0f || at[1] != 0xa2) {  // another fault: it happens again, and ends the process
    signal(signal_number, SIG_DFL);
    return;
  }
  const uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX];
  uint32_t a, b, c, d;
  syscall(SYS_arch_prctl, kArchCpuidSet, 1UL);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(subleaf));
  syscall(SYS_arch_prctl, kArchCpuidSet, 0UL);
  if (leaf == 7 && subleaf == 0) {
    b &= ~BITS(16, 17, 21, 26, 27, 28, 30, 31);  // AVX512F, DQ, IFMA, PF, ER, CD, BW, VL
    c &= ~BITS(1, 6, 11, 12, 14);                // AVX512_VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ
    d &= ~BITS(2, 3, 8, 23);                     // AVX512_4VNNIW, 4FMAPS, VP2INTERSECT, FP16
    d &= ~BITS(22, 24, 25);                      // AMX-BF16, TILE, INT8
  }
  if (leaf == 7 && subleaf == 1) {
    a &= ~BITS(4, 5, 21, 23);  // AVX-VNNI, AVX512_BF16, AMX-FP16, AVX-IFMA
    d &= ~BITS(4, 5, 8, 10);   // AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16
  }
  registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void Hide(void) {
  struct sigaction action = {.sa_sigaction = OnFault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  if (syscall(SYS_arch_prctl, kArchCpuidSet, 0UL) == 0) return;
  perror("hide_avx512: this machine cannot let CPUID fault (arch_prctl)");
  _exit(1);
}
