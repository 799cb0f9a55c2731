// Why lookups miss, in the order in which the server writes them.
const REASONS = {
  never_seen: ['never seen', 'First use, or the removal was too long ago to be known.'],
  evicted: ['evicted for room', 'Add memory or disk; see What if.'],
  quota: ['beyond the tenant’s quota', 'Raise the tenant’s quota.'],
  expired: ['its time to live was over', 'Raise the time to live (TTL).'],
  deleted: ['deleted by a client', 'Check which client sends deletes.'],
  busy: ['too much was being sent at once', 'Raise limits.sending, or spread the reads.'],
  late: ['on disk, and did not come in time', 'Check the read latency under Disks.'],
  computed_sooner: ['on disk, but computing is sooner than reading', 'None: the engine computes faster than the disk reads.'],
  other_half: ['its other half was gone', 'The metadata or the bytes of the value were removed.'],
};

/** The reasons that are known here, then those of a newer server. */
export function reasonNames(counted = {}) {
  const known = Object.keys(REASONS);
  return [...known, ...Object.keys(counted).filter((each) => !known.includes(each))];
}

export function reasonWords(reason) {
  return REASONS[reason]?.[0] ?? String(reason).replaceAll('_', ' ');
}

export function reasonAdvice(reason) {
  return REASONS[reason]?.[1] ?? '';
}
