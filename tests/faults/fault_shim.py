"""Steers fault_shim.cc, and takes back what a killed process had not synced."""
import mmap
import os
import pathlib
import struct

FIELDS = ("clock_offset_ns", "write_error", "sync_errors", "die_at_sync", "die_after_sync", "syncs", "synchronous_off",
          "database_sync_errors", "file_write_error")


class Shim:
    """The failing machine of one fusiond, whose state is below `state`. `folder` is for the page and the journal."""

    def __init__(self, folder, state):
        self.page_path, self.journal = pathlib.Path(folder) / "page", pathlib.Path(folder) / "journal"
        self.state = pathlib.Path(state)
        self.page_path.write_bytes(bytes(4096))
        self.file = open(self.page_path, "r+b")
        self.page = mmap.mmap(self.file.fileno(), 4096)
        self.journal.write_bytes(b"")

    def close(self):
        self.page.close()
        self.file.close()

    def variables(self):
        return {"LD_PRELOAD": os.environ["FUSION_FAULT_SHIM"], "FUSION_FAULT_PAGE": str(self.page_path),
                "FUSION_FAULT_JOURNAL": str(self.journal), "FUSION_FAULT_FOLDER": str(self.state)}

    def set(self, field, value):
        struct.pack_into("<q", self.page, 8 * FIELDS.index(field), value)

    def get(self, field):
        return struct.unpack_from("<q", self.page, 8 * FIELDS.index(field))[0]

    def records(self):
        """(kind, numbers, rest) of each whole record; the last may have been cut off by the kill."""
        data, at = self.journal.read_bytes(), 0
        while True:
            end = data.find(b"\n", at)
            if end < 0:
                return
            words = data[at:end].split(b" ")
            kind, at, payload = words[0], end + 1, b""
            if kind in (b"W", b"T"):
                numbers = [int(word) for word in words[1:]]
                length = numbers[2]
                payload = data[at:at + length]
                if len(payload) < length:
                    return
                at += length
            elif kind == b"R":
                numbers, payload = [int(word) for word in words[1:4]], b" ".join(words[4:])
            else:
                numbers = [int(word) for word in words[1:3]]
            yield kind, numbers, payload

    def lose_unsynced(self, random=None):
        """Takes back every write since the last sync of its file. With `random`, a part of them: each page of a file may
        be on disk as any of the writes to it has left it, and each folder up to any of its changes. Returns how many.
        The process must be dead."""
        records = list(self.records())
        self.journal.write_bytes(b"")
        last_sync = {}
        for number, (kind, numbers, _) in enumerate(records):
            if kind == b"S":
                last_sync[numbers[0]] = number
        unsynced = [(kind, numbers, payload) for number, (kind, numbers, payload) in enumerate(records)
                    if kind != b"S" and last_sync.get(numbers[0], -1) < number]
        paths = {}
        for path in self.state.rglob("*"):
            try:
                paths[path.stat().st_ino] = path
            except OSError:
                continue
        lost = 0
        for inode in {numbers[0] for kind, numbers, _ in unsynced if kind == b"W"}:
            writes = [(numbers, payload) for kind, numbers, payload in unsynced if kind == b"W" and numbers[0] == inode]
            if inode in paths:
                lost += lose_writes(paths[inode], writes, random)
        # Renamed files whose bytes were never synced: the names may be on disk without the bytes.
        for kind, numbers, _ in records:
            path = paths.get(numbers[1]) if kind == b"R" else None
            if path is not None and numbers[2] == 0 and numbers[1] not in last_sync and (not random or random.random() < 0.5):
                os.truncate(path, 0)
                lost += 1
        for folder in {numbers[0] for kind, numbers, _ in unsynced if kind in (b"C", b"R")}:
            changes = [(kind, numbers, payload) for kind, numbers, payload in unsynced
                       if kind in (b"C", b"R") and numbers[0] == folder]
            kept = random.randint(0, len(changes)) if random else 0
            for kind, numbers, payload in reversed(changes[kept:]):
                path = paths.get(numbers[1])
                if path is None or not path.exists():
                    continue
                lost += 1
                old = pathlib.Path(os.fsdecode(payload))
                if kind == b"C" or not old.parent.exists():
                    path.unlink()
                else:
                    paths[numbers[1]] = path.rename(old)
        return lost


PAGE = 4096


def lose_writes(path, writes, random):
    """`writes`: ([inode, offset, replaced, size, written], replaced bytes), the oldest first, none of them synced."""
    pages, kept_end = {}, writes[0][0][3]
    for (_, offset, _, _, written), old in writes:
        at = offset
        while at < offset + written:
            end = min(offset + written, (at // PAGE + 1) * PAGE)
            pages.setdefault(at // PAGE, []).append((at, end, old[at - offset:end - offset]))
            at = end
    lost = 0
    with open(path, "r+b") as file:
        for pieces in pages.values():
            kept = random.randint(0, len(pieces)) if random else 0
            for at, end, old in reversed(pieces[kept:]):
                file.seek(at)
                file.write(old.ljust(end - at, b"\0"))
            kept_end = max([kept_end] + [end for _, end, _ in pieces[:kept]])
            lost += len(pieces) - kept
        file.truncate(kept_end)
    return lost
