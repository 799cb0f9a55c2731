// Why lookups miss, in the order in which the server writes them.
const REASONS = {
  never_seen: ['never seen', 'First use, or forgotten since: computed once, it can hit.'],
  evicted: ['evicted for room', 'More memory or disk keeps it longer; see What if.'],
  quota: ['beyond the tenant’s quota', 'A larger quota keeps more of this tenant.'],
  expired: ['its time to live was over', 'A longer time to live keeps it.'],
  deleted: ['deleted by a client', 'Look for the client that deletes.'],
  busy: ['too much was being sent at once', 'Raise the limit of bytes in transit, or spread the reads.'],
  late: ['on disk, and did not come in time', 'Look at the read latency of the disks.'],
  computed_sooner: ['on disk, but computing is sooner than reading', 'Intended: the engine is faster than the disk.'],
  other_half: ['its other half was gone', 'The metadata or the bytes of the value left alone.'],
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
