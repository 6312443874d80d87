"""Judges what a fusiond left behind: is each acknowledged job there and ended once, each row whole, each file right?"""
import contextlib
import hashlib
import sqlite3

STATE_FIELD = 3  # of JobEvent in proto/compile.proto


def problems(state, acknowledged, ended):
    """`state`: of a server that does not run. `acknowledged`: ids of jobs that a client was told. `ended`: {id: (state,
    bundle digest)} of those that a client has seen end. Returns sentences; none: nothing is lost, doubled or torn."""
    found = []
    with database(state) as db:
        ask = lambda sql, *values: db.execute(sql, values).fetchall()
        [[integrity]] = ask("PRAGMA integrity_check(1)")
        if integrity != "ok":
            return ["the database is damaged: " + integrity]
        found += ["a foreign key of %s points nowhere" % row[0] for row in ask("PRAGMA foreign_key_check")]
        jobs = {row[0]: row[1:] for row in ask("SELECT id, state, bundle_digest FROM jobs")}
        joined = dict(ask("SELECT id, job_id FROM joined_submissions"))
        for job in acknowledged:
            if joined.get(job, job) not in jobs:
                found.append("job %s was acknowledged and is not there" % job)
            elif jobs[joined.get(job, job)][0] < 3:
                found.append("job %s was acknowledged and has not ended" % job)
        names = {3: "succeeded", 4: "failed", 5: "cancelled"}
        for job, (name, digest) in ended.items():
            row = jobs.get(joined.get(job, job))
            if row is None or names.get(row[0]) != name or (name == "succeeded" and row[1] != digest):
                found.append("job %s was seen to end as %s %s, and is %s now" % (job, name, digest[:8], row))
        # Events are numbered from 1 without gaps, and the last one of an ended job is its only final one.
        for job, events, last in ask("SELECT job_id, COUNT(*), MAX(seq) FROM job_events GROUP BY job_id"):
            if events != last:
                found.append("job %s has %d events up to number %d" % (job, events, last))
        finals = {}
        for job, event in ask("SELECT job_id, event FROM job_events"):
            finals[job] = finals.get(job, 0) + (state_of(event) >= 3)
        for job, (phase, _) in jobs.items():
            if finals.get(job, 0) != (1 if phase >= 3 else 0):
                found.append("job %s in state %d has %d final events" % (job, phase, finals.get(job, 0)))
        found += measurement_problems(ask)
        for digest, size in ask("SELECT digest, size_bytes FROM blobs"):
            path = state / "blobs" / digest[:2] / digest
            data = path.read_bytes() if path.exists() else None
            if data is None or len(data) != size or hashlib.sha256(data).hexdigest() != digest:
                found.append("blob %s is %s" % (digest[:12], "missing" if data is None else "damaged"))
        blobs = {row[0] for row in ask("SELECT digest FROM blobs")}
        for key, digest in ask("SELECT key, binary_digest FROM builds") + ask("SELECT key, bundle_digest FROM results"):
            if digest not in blobs:
                found.append("the row with key %s names blob %s, which has no row" % (key[:12], digest[:12]))
    return found


def database(state):
    """A connection that only reads, and is closed at the end of the block."""
    return contextlib.closing(sqlite3.connect("file:%s?mode=ro" % (state / "fusion.db"), uri=True))


def measurement_problems(ask):
    found = []
    for task, fence, item, rows in ask("SELECT task, fence, item, COUNT(*) FROM measurements WHERE task <> '' "
                                       "GROUP BY origin, task, fence, item HAVING COUNT(*) > 1"):
        found.append("measurement of task %s fence %d item %d is there %d times" % (task, fence, item, rows))
    for task, fence in ask("SELECT id, fence FROM tasks WHERE state = 3 AND kind = 2 AND description NOT LIKE 'plan %' AND NOT EXISTS (SELECT 1 FROM "
                           "measurements m WHERE m.task = tasks.id AND m.fence = tasks.fence)"):  # comparisons of plans may be left out
        found.append("task %s is done under fence %d, and its measurements are not there" % (task, fence))
    for task, samples, bytes_ in ask("SELECT task, samples, length(samples_ns) FROM measurements "
                                     "WHERE length(samples_ns) <> 8 * MIN(samples, 64)"):
        found.append("the row of task %s has %d samples in %d bytes" % (task, samples, bytes_))
    for task, fence in ask("SELECT m.task, m.fence FROM measurements m JOIN tasks t ON t.id = m.task AND t.fence = m.fence "
                           "WHERE t.state <> 3"):
        found.append("task %s has measurements of fence %d without having ended with them" % (task, fence))
    [[counter]] = ask("SELECT value FROM counters WHERE name = 'fence'")
    [[highest]] = ask("SELECT COALESCE(MAX(fence), 0) FROM tasks")
    if counter < highest:
        found.append("the counter of fences is %d, and a task has %d" % (counter, highest))
    return found


def state_of(event):
    """The state in a serialised JobEvent, by the wire format."""
    at = 0

    def varint(at):
        value, shift = 0, 0
        while True:
            value |= (event[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if not event[at - 1] & 0x80:
                return value, at
    state = 0
    while at < len(event):
        tag, at = varint(at)
        if tag & 7 == 0:
            value, at = varint(at)
            if tag >> 3 == STATE_FIELD:
                state = value
        elif tag & 7 == 2:
            length, at = varint(at)
            at += length
        else:
            at += 8 if tag & 7 == 1 else 4
    return state
