// A library in the place of NVRTC whose kernels' texts do harm: "kill 17", "read /path". It can also stand in for
// OpenCL's loader; it then does what the variable HOSTILE_ATTACK says as soon as it is loaded. It tells what it could
// do in the binary, and on stderr.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

bool ConnectTcp(const std::string& port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port.c_str())));
  return connect(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool ConnectUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return connect(socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool Fork() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, nullptr, 0) == child;
}

void WriteFile(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (write(fd, text, std::strlen(text)) < 0) std::abort();
  close(fd);
}

// Whether the attack that `text` names succeeded. Text that names none compiles.
bool Attack(const std::string& text) {
  const size_t space = text.find(' ');
  const std::string name = text.substr(0, space), what = space == std::string::npos ? "" : text.substr(space + 1);
  if (name == "tcp") return ConnectTcp(what);
  if (name == "unix") return ConnectUnix(what);
  if (name == "read") return open(what.c_str(), O_RDONLY) >= 0;
  if (name == "write") return open(what.c_str(), O_WRONLY | O_CREAT, 0600) >= 0;
  if (name == "kill") return kill(std::atoi(what.c_str()), 0) == 0;
  if (name == "fork") return Fork();
  if (name == "crash") std::abort();
  if (name == "hang") {
    for (;;) pause();
  }
  if (name == "link") {  // in the place of the binary
    if (symlink(what.c_str(), "binary-0") != 0) std::abort();
    _exit(0);
  }
  if (name == "nothing") _exit(0);
  if (name == "blame") {  // the worker
    WriteFile("error", "14\nthe worker has no compiler any more");
    _exit(1);
  }
  return false;
}

std::string& Source() {
  static auto* source = new std::string();
  return *source;
}
std::string& Cubin() {
  static auto* cubin = new std::string();
  return *cubin;
}

__attribute__((constructor)) void Load() {
  const char* attack = std::getenv("HOSTILE_ATTACK");
  if (attack == nullptr) return;
  const char* words = Attack(attack) ? "HARM DONE\n" : "refused\n";
  if (write(2, words, std::strlen(words)) < 0) std::abort();
}

}  // namespace

extern "C" {
const char* nvrtcGetErrorString(int) { return "an error"; }
int nvrtcVersion(int* major, int* minor) {
  const char* version = std::getenv("HOSTILE_VERSION");
  *major = version == nullptr ? 66 : std::atoi(version);
  *minor = 6;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  *architectures = 80;
  return 0;
}
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*, const char* const*) {
  Source() = source;
  *program = &Source();
  return 0;
}
int nvrtcDestroyProgram(void**) { return 0; }
int nvrtcCompileProgram(void*, int, const char* const*) {
  if (Source() == "error") return 6;
  Cubin() = Attack(Source()) ? "HARM DONE" : "refused";
  return 0;
}
int nvrtcGetCUBINSize(void*, size_t* size) {
  *size = Cubin().size();
  return 0;
}
int nvrtcGetCUBIN(void*, char* cubin) {
  Cubin().copy(cubin, Cubin().size());
  return 0;
}
int nvrtcGetProgramLogSize(void*, size_t* size) {
  *size = 20;
  return 0;
}
int nvrtcGetProgramLog(void*, char* log) {
  std::strcpy(log, "line 1 has an error");
  return 0;
}
}
