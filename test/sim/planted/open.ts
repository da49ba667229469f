/**
 * Planted bugs that no seed has shown yet, by name, each with what the world lacks. Whoever makes the
 * world richer tries them again (`table.ts --open`), and takes the line away.
 */
export const WHY_OPEN: ReadonlyMap<string, string> = new Map([
  [
    "the checksum of a record that is read back is not compared",
    "a bit turns seldom in a record that is read back before the next start, which reads all of the log",
  ],
  [
    "a segment goes before the write that emptied it is durable",
    "the crash must fall into the milliseconds of one write that empties a segment",
  ],
  [
    "entries behind an overwritten one come back",
    "needs a tail of several entries that a shorter one overwrites, and a restart before the log is cut",
  ],
  [
    "the commit index is written ahead of the entries that it covers",
    "needs a torn write with entries that are committed already, as a follower that lags gets them",
  ],
  [
    "acknowledgements of an older term are counted",
    "needs an acknowledgement that outlives an election on its way; `test/planted/` finds it in the core",
  ],
  [
    "any answer to a heartbeat confirms the latest round of reads",
    "needs answers that outlive an election on their way, and a read at the deposed leader; `test/planted/` finds it in the core",
  ],
  [
    "a key is extended from the old end of its lease",
    "clients seldom extend a key whose lease runs and look at it after its end: the workload should remember leased keys",
  ],
  ["a snapshot lacks the token floor", "not tried in enough seeds yet"],
  ["an installed snapshot leaves the lease clock where it was", "not tried in enough seeds yet"],
  [
    "two membership changes are on their way at once",
    "the planners of the host wait for the end of one change by themselves",
  ],
  ["a learner votes before it has caught up", "costs availability for a moment, no promise"],
  ["a voter goes before its heir votes", "costs availability for a moment, no promise"],
  [
    "an id is given out again while groups still list it",
    "joins of a freed id are rare, and groups let go of it soon",
  ],
  ["another data directory is welcome under the id of a member", "not tried in enough seeds yet"],
  ["a node that left is heard as before", "not tried in enough seeds yet"],
  [
    "entries read from the log are sent whatever their term",
    "the log is read for a follower far behind, and must be overwritten meanwhile",
  ],
  [
    "the lease clock counts the time of the wall",
    "the lease clock is compared with true time by its order only where nobody waits for it: jumps of the wall clock should hit running leases of a node that leads on",
  ],
  ["blocks outlive the leadership that reserved them", "not tried in enough seeds yet"],
  ["a block serves on although the end of its return is unknown", "not tried in enough seeds yet"],
  ["an install that a crash cut short is not brought to its end", "not tried in enough seeds yet"],
  ["a member that lost its disk is welcome as it is", "not tried in enough seeds yet"],
  ["a stop leaves the last callers without an answer", "not tried in enough seeds yet"],
  ["a write of unknown end is carried out again elsewhere", "not tried in enough seeds yet"],
  ["answers to the calls of a former life are taken", "not tried in enough seeds yet"],
  [
    "a farewell counts whatever life of a node it is of",
    "shown by one seed of watching in two thousand; `test/unit/operations/forward.test.ts` finds it",
  ],
  [
    "a proposal is recognized by its index alone",
    "shown by the 2nd and 3rd seed of trials; since cut-off proposals are dropped at once, hardly any is left at an index that came again",
  ],
  [
    "entries are read back before their write is done",
    "shown by seeds before; by none of 46 on the code of today",
  ],
  [
    "a segment that ends before its successor says is believed",
    "shown by seeds before; by none of 46 on the code of today",
  ],
  [
    "the token floor is not in what a restart reads",
    "shown by seeds before; by none of 16 on the code of today",
  ],
  [
    "the log's floor rises to what is applied, not to what is flushed",
    "shown by seeds before; by none of 16 on the code of today",
  ],
  [
    "what was proposed when leadership ended is called undone",
    "shown by seeds before; by none of 16 on the code of today",
  ],
  [
    "the level is reported before its file is durable",
    "the power must go within the sync of a directory, once in the life of a node; `test/unit/disk/levels.test.ts` finds it",
  ],
  [
    "a raise is decided by whom the leader is linked with",
    "seen by some seeds until the worlds changed, and not by 24 of today's",
  ],
  [
    "the lease clock of a former leadership runs on while others lead",
    "seen by some seeds until the worlds changed, and not by 24 of today's",
  ],
  [
    "a replica goes by a map that is older than itself",
    "the store writes the row of a replica and the map that made it in one flush, so no restart sees one without the other; `test/unit/control/hosting.test.ts` finds it",
  ],
  [
    "rows of a new life are swept with those of the former",
    "a replica comes again only when all that it had is deleted; `test/unit/host/hosting/come-and-go.test.ts` finds it",
  ],
  [
    "the report of an old leader counts",
    "an old leader steps down within an election timeout, and what it reports is compared with the roles that it answers as well: by no replayed report of 12 seeds; `test/unit/machine/placement.test.ts` finds it",
  ],
  [
    "majorities are counted in the record",
    "record and configuration have the same voters whenever one is to go, but where a voter of the record is missing in its group; a majority must be lost in just that moment; `test/unit/control/placed-group.test.ts` finds it",
  ],
  [
    "the ephemeral floor is lifted by as much as the tokens of locks",
    "needs more than 256 changes of leader behind a backup; `test/unit/machine/restoring.test.ts` finds it",
  ],
  [
    "a cut counts although a pause was not proved",
    "not tried in enough seeds yet; `test/unit/host/backups/taking-losses.test.ts` finds it",
  ],
  [
    "a pause is proved without a round",
    "not tried in enough seeds yet; `test/unit/host/backups/cut-pause.test.ts` finds it",
  ],
  [
    "a hold is lost, and the gap is not seen",
    "the keeper sees the gap as well; `test/unit/host/backups/log-backups.test.ts` finds it",
  ],
  [
    "one copy of an artifact is hashed, another one is used",
    "a byte must turn between two reads of one file; `test/unit/backup/artifact-files.test.ts` finds it",
  ],
  [
    "meta is read once, before",
    "partitions and ranges of this world stay as they are; `test/unit/host/backups/taking.test.ts` finds it",
  ],
  [
    "the stamp of a cut is in the memory of the leader, not in the log",
    "no cut comes about, and a run shows it by its length alone; `test/unit/host/backups/cut-pause.test.ts` finds it",
  ],
  [
    "a manifest gets its name before the artifacts are durable",
    "not tried in enough seeds yet; `test/unit/backup/catalogue.test.ts` finds it",
  ],
  [
    "what was written in the last millisecond is not restored",
    "not tried in enough seeds since target times are drawn from shared milliseconds; `test/unit/machine/restoring.test.ts` finds it",
  ],
  [
    "a cut marks its groups, pauses none and proves that they are led",
    "a write must be seen, and the next one reach another leader, between the marks of two groups: by none of 11 seeds; `test/unit/host/backups/cut-pause.test.ts` finds it",
  ],
  [
    "a parent is gone on from whatever its topology and its history are",
    "not tried in enough seeds yet; `test/unit/control/backup-plan.test.ts` and `test/unit/host/backups/log-backups.test.ts` find both parts",
  ],
  [
    "a mark overtakes the events before it",
    "by none of 24 seeds: a mark that is due finds events left only where the stream was full in between; `test/unit/host/watching/transitions.test.ts` finds it",
  ],
  [
    "a partition goes on to tell of keys that another one has",
    "who speaks for a key is asked beside it, and a history of before is passed over; `test/unit/host/watching/transitions.test.ts` finds it",
  ],
  [
    "a lease more than are looked after is forgotten without a word",
    "needs 200,000 watched leases; `test/unit/operations/watching` finds it",
  ],
  [
    "a deletion that was collected leaves no trace",
    "not tried in enough seeds yet; `test/unit/host/watching/collected.test.ts` finds it",
  ],
  [
    "an image does not say what was collected",
    "not tried in enough seeds yet; `test/unit/host/watching/collected.test.ts` finds it",
  ],
  [
    "a cursor that names a partition of before is not looked at there",
    "not tried in enough seeds yet; `test/unit/host/watching/collected.test.ts` finds it",
  ],
  [
    "leases of keys that left are kept",
    "seen on the code before by seed 8510118 of `watching`; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "a barrier goes by a map that is old",
    "seen on the code before by seeds 147 and 288 of `watching`, and by none of 3 on the code of today; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "a barrier waits for a partition that is gone",
    "seen on the code before by seed 238 of `watching`, and by none of 3 on the code of today; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "what the map adds while a watch comes to stand is not waited for",
    "seen on the code before by seed 108 of chaos, and by none of 60 seeds of `watching-blackouts` on the code of today; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "the map of the first watch of a node is taken for the newest",
    "not tried in enough seeds yet; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "what a partition told is told again when its names are elsewhere",
    "seen on the code before by seed 47 of `watching`, and by none of 3 on the code of today; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "keys that came with an image are compared by stamps of other partitions",
    "by none of 16 seeds of key ranges; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "a map that gives keys to who has them already tells nobody",
    "not tried in enough seeds yet; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "what happened since names were found is not among them",
    "not tried in enough seeds yet; `test/unit/host/watching/catch-up.test.ts` finds it",
  ],
  [
    "names that changed lately are taken for all that changed",
    "not tried in enough seeds yet; `test/unit/host/watching/catch-up.test.ts` finds it",
  ],
  [
    "an end that is found late is told to who was told of it elsewhere",
    "seen on the code before by seed 8501399 of `watching`; `test/unit/host/watching/late-ends.test.ts` finds it",
  ],
  [
    "a watch that is behind is told what another one at its place is compared with",
    "not tried in enough seeds yet; `test/unit/host/watching/catch-up.test.ts` finds it",
  ],
  [
    "revisions that are all gone are not missed",
    "not tried in enough seeds yet; `test/unit/host/watching/revisions.test.ts` finds it",
  ],
  [
    "who leads, and does not serve yet, forgets wishes",
    "not tried in enough seeds yet; `test/unit/host/watching/expiries.test.ts` finds it",
  ],
  [
    "a wish is over when a clock is proposed",
    "not tried in enough seeds yet; `test/unit/host/watching/expiries.test.ts` finds it",
  ],
  [
    "all that others found to have changed is one message",
    "not tried in enough seeds yet; `test/unit/host/watching/catch-up.test.ts` finds it",
  ],
  [
    "who speaks for a name that others found is asked by its bytes",
    "not tried in enough seeds yet; `test/unit/host/watching/catch-up.test.ts` finds it",
  ],
  [
    "who compares while a key is frozen has come to the barrier",
    "seed 68 of `watching-blackouts` showed it until joint barriers waited for one map; `test/unit/host/watching/moves.test.ts` finds it",
  ],
  [
    "who spoke before is the holder in spite of what an heir said",
    "only which try of the base is told again differs, to the base alone; `test/unit/machine/heirs/apply.test.ts` finds it",
  ],
  [
    "the tokens of heirs go with their row",
    "by none of 30 seeds; `test/unit/machine/heirs/rows.test.ts` finds it",
  ],
  [
    "what is named does not count for a snapshot",
    "by none of 30 seeds; `test/unit/machine/heirs/rows.test.ts` finds it",
  ],
  [
    "a restored list is good in the term that wrote it",
    "nobody restores a backup where somebody waits; `test/unit/machine/heirs/rows.test.ts` finds it",
  ],
  [
    "heirs are named beyond the largest token",
    "no run comes near the largest token; `test/unit/machine/heirs/rows.test.ts` finds it",
  ],
  [
    "a list is as long as anybody wants",
    "the leader never asks for a longer one; `test/unit/machine/heirs/rows.test.ts` finds it",
  ],
  [
    "watchers are not told whom a release makes the holder",
    "nobody watches in worlds of waiting; `test/unit/machine/heirs/scenarios.test.ts` finds it",
  ],
  [
    "who came between is told of to nobody",
    "nobody watches in worlds of waiting; `test/unit/machine/heirs/scenarios.test.ts` finds it",
  ],
  [
    "a release that is refused counts as a step",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "a release that was stepped upon is carried on",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "a release that is refused on its way is forgotten",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "who comes back waits for the list on its way",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "an heir that is cancelled stays in the list",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs.test.ts` finds it",
  ],
  [
    "a list that was cleared is followed on",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "before it serves a leader knows who holds a lock",
    "by none of 30 seeds; `test/unit/operations/waiting/lock-heirs-refused.test.ts` finds it",
  ],
  [
    "an heir has the note of the base",
    "nobody notes anything where somebody waits; the histories of `test/unit/machine/succession/` find it in the rules and their model",
  ],
  [
    "what was granted to nobody is handed on in memory",
    "by none of 30 seeds; the histories of `test/unit/machine/succession/` find it in the rules and their model",
  ],
  [
    "a step while a try of who is named is on its way",
    "by none of 30 seeds; the histories of `test/unit/machine/succession/` find it in the rules and their model",
  ],
  [
    "an heir that is tried is passed over",
    "by none of 30 seeds; the histories of `test/unit/machine/succession/` find it in the rules and their model",
  ],
  [
    "what is behind a release goes behind its repeat as well",
    "by none of 30 seeds; the histories of `test/unit/machine/succession/` find it in the rules and their model",
  ],
  [
    "the collection removes the root first",
    "300 seeds of `backup` show it no more: a collection must be cut off between the root and the rest; `test/planted/` finds it in the plan",
  ],
  [
    "what is collected while the state is compared is not missed",
    "300 seeds of `watching` show it no more: what ended must be collected in the slices of one comparison; `test/planted/` finds it in the watch",
  ],
]);
