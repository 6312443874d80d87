// A library to preload into fusiond: it is the disk and the clock of a machine that fails. The driver (fault_shim.py)
// steers it through a page of shared memory, $FUSION_FAULT_PAGE, and reads the journal, $FUSION_FAULT_JOURNAL.
//
// Unsynced writes: before a write to a file below $FUSION_FAULT_FOLDER, the bytes that it replaces go into the journal;
// a sync of the file says there that they are on disk. A killed process leaves the journal behind, and the driver takes
// back what was not synced, as a power cut does. Files that are created or renamed are on disk when their folder is
// synced; a file that was never synced and is renamed has lost its bytes. Real syncs are left out: the journal is the
// disk.
//
// Records: "W inode offset replaced size written\n" and the replaced bytes ("size" is the file's before), "S inode\n"
// for a sync of a file or folder, "C folder-inode inode\n" for a created file, "R folder-inode inode synced old-path\n"
// for a renamed one, and "T inode size length\n" with the bytes behind `size` that a truncation took.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

namespace {

// As in fault_shim.py.
struct Page {
  std::atomic<int64_t> clock_offset_ns;       // added to the wall clock
  std::atomic<int64_t> write_error;           // errno of each write; of EROFS no file is made or opened for writing
  std::atomic<int64_t> sync_errors;           // so many syncs fail with EIO
  std::atomic<int64_t> die_at_sync;           // the process kills itself at so many syncs from now; 0: never
  std::atomic<int64_t> die_after_sync;        // the same, when the sync is over
  std::atomic<int64_t> syncs;                 // counted
  std::atomic<int64_t> synchronous_off;       // 1: SQLite is told not to sync
  std::atomic<int64_t> database_sync_errors;  // so many syncs of the database's main file fail with EIO
  std::atomic<int64_t> file_write_error;      // errno of each write to another file than the database's
};

Page* page = nullptr;
int journal = -1;
std::string folder;
std::mutex mutex;            // a record and its write are one step
std::set<uint64_t>* synced;  // inodes whose bytes are on disk as far as this process knows

__attribute__((constructor)) void Begin() {
  const char* at = getenv("FUSION_FAULT_PAGE");
  const char* below = getenv("FUSION_FAULT_FOLDER");
  const char* log = getenv("FUSION_FAULT_JOURNAL");
  if (at == nullptr || below == nullptr || log == nullptr || strcmp(program_invocation_short_name, "fusiond") != 0)
    return;
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, at, O_RDWR | O_CLOEXEC, 0));
  if (fd < 0) abort();
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) abort();
  journal = static_cast<int>(syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (journal < 0) abort();
  folder = below;
  synced = new std::set<uint64_t>;
  page = static_cast<Page*>(memory);
}

std::string PathOf(int fd) {
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(name, path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<size_t>(length));
}

// Does the descriptor belong to a file whose writes are journalled? SQLite's shared memory is not: it is made anew.
bool Watched(int fd, struct stat* info) {
  if (page == nullptr || fstat(fd, info) != 0 || !S_ISREG(info->st_mode)) return false;
  const std::string path = PathOf(fd);
  return path.starts_with(folder) && path.find(".db-shm") == path.npos;
}

void Record(const std::string& text) {
  if (syscall(SYS_write, journal, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
}

ssize_t RawWrite(int fd, const void* bytes, size_t count, const off_t* offset) {
  return offset != nullptr ? syscall(SYS_pwrite64, fd, bytes, count, *offset) : syscall(SYS_write, fd, bytes, count);
}

ssize_t JournalledWrite(int fd, const void* bytes, size_t count, const off_t* offset) {
  struct stat info;
  if (!Watched(fd, &info)) return RawWrite(fd, bytes, count, offset);
  if (const int64_t error = page->write_error.load(); error != 0) {
    errno = static_cast<int>(error);
    return -1;
  }
  if (const int64_t error = page->file_write_error.load(); error != 0 && PathOf(fd).find(".db") == std::string::npos) {
    errno = static_cast<int>(error);
    return -1;
  }
  std::lock_guard<std::mutex> lock(mutex);
  fstat(fd, &info);
  const bool append = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t at = offset != nullptr ? *offset : append ? info.st_size : lseek(fd, 0, SEEK_CUR);
  std::string old(at < info.st_size ? std::min<size_t>(count, static_cast<size_t>(info.st_size - at)) : 0, '\0');
  if (!old.empty()) {
    // A second descriptor would take SQLite's locks away when it is closed, and SQLite's files are open for reading.
    if (pread(fd, old.data(), old.size(), at) != static_cast<ssize_t>(old.size())) abort();
  }
  char head[128];
  snprintf(head, sizeof head, "W %llu %lld %zu %lld %zu\n", static_cast<unsigned long long>(info.st_ino),
           static_cast<long long>(at), old.size(), static_cast<long long>(info.st_size), count);
  Record(head + old);
  synced->erase(info.st_ino);
  return RawWrite(fd, bytes, count, offset);
}

void DieIfTold(std::atomic<int64_t>* counter) {
  if (counter->load() > 0 && counter->fetch_sub(1) == 1) kill(getpid(), SIGKILL);
}

int JournalledSync(int fd, int call) {
  if (page == nullptr) return static_cast<int>(syscall(call, fd));
  page->syncs.fetch_add(1);
  DieIfTold(&page->die_at_sync);
  if (page->sync_errors.load() > 0 && page->sync_errors.fetch_sub(1) > 0) {
    errno = EIO;
    return -1;
  }
  if (page->database_sync_errors.load() > 0 && PathOf(fd).ends_with(".db") &&
      page->database_sync_errors.fetch_sub(1) > 0) {
    errno = EIO;
    return -1;
  }
  struct stat info;
  if (fstat(fd, &info) != 0) return -1;
  {
    std::lock_guard<std::mutex> lock(mutex);
    char record[64];
    snprintf(record, sizeof record, "S %llu\n", static_cast<unsigned long long>(info.st_ino));
    Record(record);
    synced->insert(info.st_ino);
  }
  DieIfTold(&page->die_after_sync);
  return 0;
}

uint64_t InodeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

bool Below(const char* path) {
  return page != nullptr && strncmp(path, folder.c_str(), folder.size()) == 0 && strstr(path, ".db-shm") == nullptr;
}

int JournalledOpen(int at, const char* path, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0 && Below(path);
  if (Below(path) && page->write_error.load() == EROFS && (creates || (flags & O_ACCMODE) != O_RDONLY)) {
    errno = EROFS;
    return -1;
  }
  struct stat info;
  const bool is_new = creates && stat(path, &info) != 0;
  const int fd = static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
  if (fd < 0 || !is_new || fstat(fd, &info) != 0) return fd;
  const std::string parent = std::string(path).substr(0, std::string(path).rfind('/'));
  std::lock_guard<std::mutex> lock(mutex);
  char record[96];
  snprintf(record, sizeof record, "C %llu %llu\n", static_cast<unsigned long long>(InodeOf(parent)),
           static_cast<unsigned long long>(info.st_ino));
  Record(record);
  return fd;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) { return JournalledWrite(fd, bytes, count, nullptr); }
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return JournalledWrite(fd, bytes, count, &offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return JournalledWrite(fd, bytes, count, &offset);
}
int fsync(int fd) { return JournalledSync(fd, SYS_fsync); }
int fdatasync(int fd) { return JournalledSync(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t length) {
  struct stat info;
  if (!Watched(fd, &info) || length >= info.st_size) return static_cast<int>(syscall(SYS_ftruncate, fd, length));
  std::lock_guard<std::mutex> lock(mutex);
  std::string old(static_cast<size_t>(info.st_size - length), '\0');
  if (pread(fd, old.data(), old.size(), length) != static_cast<ssize_t>(old.size())) abort();
  char head[96];
  snprintf(head, sizeof head, "T %llu %lld %zu\n", static_cast<unsigned long long>(info.st_ino),
           static_cast<long long>(length), old.size());
  Record(head + old);
  synced->erase(info.st_ino);
  return static_cast<int>(syscall(SYS_ftruncate, fd, length));
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

int rename(const char* from, const char* to) {
  if (!Below(to)) return static_cast<int>(syscall(SYS_rename, from, to));
  if (page->write_error.load() == EROFS) {
    errno = EROFS;
    return -1;
  }
  std::lock_guard<std::mutex> lock(mutex);
  const std::string parent = std::string(to).substr(0, std::string(to).rfind('/'));
  const uint64_t inode = InodeOf(from);
  const bool replaces = InodeOf(to) != 0;
  if (!replaces) {
    char head[128];
    snprintf(head, sizeof head, "R %llu %llu %d ", static_cast<unsigned long long>(InodeOf(parent)),
             static_cast<unsigned long long>(inode), synced->count(inode) > 0 ? 1 : 0);
    Record(head + std::string(from) + "\n");
  }
  return static_cast<int>(syscall(SYS_rename, from, to));
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return JournalledOpen(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return JournalledOpen(AT_FDCWD, path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static const auto next = Next<int (*)(clockid_t, struct timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result != 0 || page == nullptr || clock != CLOCK_REALTIME) return result;
  const int64_t ns = time->tv_sec * int64_t{1000000000} + time->tv_nsec + page->clock_offset_ns.load();
  time->tv_sec = ns / 1000000000, time->tv_nsec = ns % 1000000000;
  return 0;
}
int gettimeofday(struct timeval* time, void*) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec, time->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

int sqlite3_exec(void* db, const char* sql, int (*callback)(void*, int, char**, char**), void* context, char** error) {
  static const auto next =
      Next<int (*)(void*, const char*, int (*)(void*, int, char**, char**), void*, char**)>("sqlite3_exec");
  std::string text = sql;
  if (const size_t at = text.find("synchronous=FULL");
      page != nullptr && page->synchronous_off != 0 && at != text.npos) {
    text.replace(at, 16, "synchronous=OFF ");
  }
  return next(db, text.c_str(), callback, context, error);
}

}  // extern "C"
