// Samples of the store over time.

const COUNTERS = ['memoryHits', 'diskHits', 'deviceHits', 'misses', 'tokensSaved', 'diskWrittenBytes', 'diskReads', 'diskReadBytes', 'diskWrites',
  'requests', 'evicted'];
const GAUGES = ['memoryBytes', 'memoryCapacityBytes', 'diskBytes', 'diskCapacityBytes', 'diskBudgetSpent', 'connections'];

/** Samples one after the other as one: counters add up, gauges are the last. */
export function merge(samples) {
  const last = samples.at(-1);
  const merged = { at: last.at, seconds: sum(samples, 'seconds') };
  for (const name of COUNTERS) {
    merged[name] = sum(samples, name);
  }
  for (const name of GAUGES) {
    merged[name] = last[name] ?? null;
  }
  merged.p50Micros = weightedMean(samples, 'p50Micros', 'requests');
  for (const name of ['p99Micros', 'diskReadP99Micros', 'diskWriteP99Micros']) {
    merged[name] = largest(samples, name);
  }
  merged.missReasons = {};
  for (const sample of samples) {
    for (const [reason, misses] of Object.entries(sample.missReasons ?? {})) {
      merged.missReasons[reason] = (merged.missReasons[reason] ?? 0) + misses;
    }
  }
  return merged;
}

function known(samples, name) {
  return samples.map((each) => each[name]).filter((each) => each !== null && each !== undefined);
}

function sum(samples, name) {
  const values = known(samples, name);
  return values.length === 0 ? null : values.reduce((a, b) => a + b, 0);
}

function largest(samples, name) {
  const values = known(samples, name);
  return values.length === 0 ? null : Math.max(...values);
}

/** Percentiles of several spans do not add up to one; the weighted mean is near enough for a chart. */
function weightedMean(samples, name, weightName) {
  let weights = 0;
  let total = 0;
  for (const sample of samples) {
    const value = sample[name];
    if (value !== null && value !== undefined) {
      const weight = sample[weightName] ?? 1;
      weights += weight;
      total += weight * value;
    }
  }
  return weights === 0 ? null : total / weights;
}

export function lookups(sample) {
  return found(sample) + (sample.misses ?? 0);
}

/** Blocks and values that lookups found, in any tier. */
export function found(sample) {
  return (sample.memoryHits ?? 0) + (sample.diskHits ?? 0) + (sample.deviceHits ?? 0);
}

/** A count as a rate a second; null when unknown. */
export function rate(sample, name) {
  const value = sample[name];
  return value === null || value === undefined || !sample.seconds ? null : value / sample.seconds;
}

/** At most so many samples for a chart, each of several in a row. */
export function thinned(samples, most) {
  const group = Math.max(1, Math.ceil(samples.length / most));
  if (group === 1) {
    return samples;
  }
  const groups = [];
  // From the newest on, so that only the oldest group is a short one.
  for (let end = samples.length; end > 0; end -= group) {
    groups.unshift(merge(samples.slice(Math.max(0, end - group), end)));
  }
  return groups;
}

/** The samples of a time span, to which live ones are added. */
export class Series {
  #intervalSeconds;
  #spanSeconds;
  #live = [];

  constructor(history, minutes) {
    this.#intervalSeconds = history.intervalSeconds;
    this.#spanSeconds = minutes * 60;
    this.samples = history.samples ?? [];
  }

  /** Adds a live sample; returns whether that completed an interval of the history. */
  add(sample) {
    const lastAt = (this.#live.at(-1) ?? this.samples.at(-1))?.at ?? 0;
    if (sample.at <= lastAt) {
      return false; // the history had it already
    }
    this.#live.push(sample);
    if (sum(this.#live, 'seconds') < this.#intervalSeconds) {
      return false;
    }
    const from = sample.at - this.#spanSeconds;
    this.samples = [...this.samples.filter((each) => each.at > from), merge(this.#live)];
    this.#live = [];
    return true;
  }

  get isEmpty() {
    return this.samples.length === 0 && this.#live.length === 0;
  }

  /** The last so many seconds as one sample. */
  tail(seconds) {
    const all = [...this.samples.slice(-60), ...this.#live];
    const from = all.at(-1).at - seconds;
    return merge(all.filter((each) => each.at > from));
  }

  /** The whole span as one sample. */
  total() {
    return merge([...this.samples, ...this.#live]);
  }
}
