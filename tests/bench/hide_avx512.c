// A library for another engine's process: CPUID then says that the processor has AVX2, and neither AVX-512 nor products
// of bytes (VNNI) nor AMX, so that the engine takes the kernels that it has for such machines.
//
// Preloaded (LD_PRELOAD), it asks Linux to let the CPUID instruction fault (arch_prctl(ARCH_CPUID_SET), since Linux
// 4.12, where the processor or the hypervisor can do that), and answers the fault with the instruction's result less
// these bits. Threads inherit this. Ends the process where it is impossible.
//
// As an auditor (LD_AUDIT), it replaces the CPUID instructions of the libraries that are named in a file by breakpoints
// before the libraries run, and answers these in the same way. HIDE_AVX512_SITES is the file's path; its lines are the
// path of a library, a tab, and the address of an instruction in it in hexadecimal digits.
//
// Engines ask while they start, so that nothing is slower afterwards.
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void Answer(greg_t* registers, int faulting) {
  const uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX];
  uint32_t a, b, c, d;
  if (faulting) syscall(SYS_arch_prctl, kArchCpuidSet, 1UL);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(subleaf));
  if (faulting) syscall(SYS_arch_prctl, kArchCpuidSet, 0UL);
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
}

static void OnFault(int signal_number, siginfo_t* info, void* context) {
  (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* at = (const unsigned char*)registers[REG_RIP];
  if (at[0] != 0x0f || at[1] != 0xa2) {  // another fault: it happens again, and ends the process
    signal(signal_number, SIG_DFL);
    return;
  }
  Answer(registers, 1);
  registers[REG_RIP] += 2;
}

// A breakpoint is one byte, behind which the address stands when the signal comes; the second byte does nothing.
static void OnBreakpoint(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number;
  (void)info;
  Answer(((ucontext_t*)context)->uc_mcontext.gregs, 0);
}

static void Catch(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(signal_number, &action, NULL);
}

static void End(const char* why) {
  perror(why);
  _exit(1);
}

__attribute__((constructor)) static void Hide(void) {
  if (getenv("HIDE_AVX512_SITES") != NULL) return;  // the auditor's way
  Catch(SIGSEGV, OnFault);
  if (syscall(SYS_arch_prctl, kArchCpuidSet, 0UL) != 0) {
    End("hide_avx512: this machine cannot let CPUID fault (arch_prctl)");
  }
}

unsigned int la_version(unsigned int version) { return version; }

static void PutBreakpoint(unsigned char* at) {
  const uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095, end = (uintptr_t)at + 2;
  if (at[0] != 0x0f || at[1] != 0xa2) End("hide_avx512: no CPUID instruction where the list has one");
  if (mprotect((void*)page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) End("hide_avx512: mprotect");
  at[0] = 0xcc, at[1] = 0x90;
  if (mprotect((void*)page, end - page, PROT_READ | PROT_EXEC) != 0) End("hide_avx512: mprotect");
}

// Called by the loader when an object is mapped, before any of its code runs.
unsigned int la_objopen(struct link_map* map, Lmid_t id, uintptr_t* cookie) {
  (void)id;
  (void)cookie;
  char name[4096], path[4096];
  FILE* sites = fopen(getenv("HIDE_AVX512_SITES"), "r");
  if (sites == NULL) End("hide_avx512: HIDE_AVX512_SITES");
  if (realpath(map->l_name, name) != NULL) {
    unsigned long address;
    while (fscanf(sites, "%4095[^\t]\t%lx\n", path, &address) == 2) {
      if (strcmp(name, path) != 0) continue;
      Catch(SIGTRAP, OnBreakpoint);
      PutBreakpoint((unsigned char*)map->l_addr + address);
    }
  }
  fclose(sites);
  return 0;
}
