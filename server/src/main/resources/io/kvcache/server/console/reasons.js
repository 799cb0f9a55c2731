// Why lookups miss, in the order in which the server writes them: in words, in short for charts, and what to do.
const REASONS = {
  never_seen: ['never seen', 'never seen', 'First use, or the removal was too long ago to be known.'],
  evicted: ['evicted for room', 'evicted', 'Add memory or disk; see What if.'],
  quota: ['beyond the tenant’s quota', 'quota', 'Raise the tenant’s quota.'],
  expired: ['its time to live was over', 'expired', 'Raise the time to live (TTL).'],
  deleted: ['deleted by a client', 'deleted', 'Check which client sends deletes.'],
  outdated: ['given up, as another server may have a later value', 'outdated', 'A server was gone, or joined: see docs/cluster.md, “What a crash costs”.'],
  busy: ['too much was being sent at once', 'busy', 'Raise limits.sending, or spread the reads.'],
  late: ['on disk, and did not come in time', 'late from disk', 'Check the read latency under Disks.'],
  computed_sooner: ['on disk, but computing is sooner than reading', 'computed sooner', 'None: the engine computes faster than the disk reads.'],
  other_half: ['its other half was gone', 'other half gone', 'The metadata or the bytes of the value were removed.'],
};

/** The reasons that are known here, then those of a newer server. */
export function reasonNames(counted = {}) {
  const known = Object.keys(REASONS);
  return [...known, ...Object.keys(counted).filter((each) => !known.includes(each))];
}

export function reasonWords(reason) {
  return REASONS[reason]?.[0] ?? String(reason).replaceAll('_', ' ');
}

export function reasonShort(reason) {
  return REASONS[reason]?.[1] ?? reasonWords(reason);
}

export function reasonAdvice(reason) {
  return REASONS[reason]?.[2] ?? '';
}
