import { request } from './api.js';
import { timeChart } from './charts.js';
import { minutesOf, spanSelect } from './controls.js';
import { bar, fill, h } from './dom.js';
import { bytes, compact, count, decimal, duration, isKnown, money, percent, ratio } from './format.js';
import { priceInput, prices } from './prices.js';
import { table } from './table.js';

const POLL_SECONDS = 60;
const GIB = 2 ** 30;
const HOURS_A_MONTH = 730;

/** The axis of a chart over sizes of memory. */
const SIZES = {
  of: (row) => row.bytes,
  title: bytes,
  tick: bytes,
  ticks: (min, max, rows) => rows.filter((row) => Number.isInteger(row.factor)).map((row) => row.bytes),
  sort: 'factor',
  column: { id: 'factor', label: 'Size', number: true, value: (row) => row.factor, cell: (row) => bytes(row.bytes) },
};

export function open(view) {
  const { server, parameters, toolbar, content, signal } = view;
  const minutes = minutesOf(parameters);
  let data = null;

  const inputs = h('div', { class: 'inputs' },
    priceInput(server, 'memoryPrice', 'Memory price per GiB-month', show),
    priceInput(server, 'gpuPrice', 'GPU price per hour', show),
    priceInput(server, 'prefill', 'Prefill speed (tokens/s)', show));
  const lead = h('p', { class: 'summary' });
  const curve = timeChart({
    id: 'curve', title: 'Found', note: 'of what is asked for, by size of memory', signal, format: percent, max: 1,
    axis: SIZES, isMarked: (row) => row.factor === 1,
    series: [
      { label: server.disks > 0 ? 'in memory or on disk' : 'in memory', colour: 2, value: (row) => row.hitRatio },
      ...(server.disks > 0 ? [{ label: 'in memory', colour: 0, dashed: true, value: (row) => row.memoryHitRatio }] : []),
    ],
  });
  curve.element.classList.add('is-wide');
  const sizes = table({
    id: 'sizes', caption: 'Memory sizes', file: 'what-if', columns: sizeColumns(server), rowKey: (row) => row.factor,
    empty: 'No estimate: nothing was asked for in this time.',
  });
  const policy = h('section', { class: 'lead-section', 'aria-label': 'Eviction policy' });
  const note = h('p', { class: 'note' });
  fill(toolbar, spanSelect(view));
  fill(content, lead, curve.element, inputs, sizes.element, note, policy);

  view.poll(() => request('whatif', { parameters: { minutes }, signal }), {
    everySeconds: POLL_SECONDS,
    onData: (received) => {
      data = received;
      show();
    },
  });

  function show() {
    if (data === null) {
      return;
    }
    const rows = compute(data, prices(server));
    const today = rows.find((row) => row.factor === 1);
    const double = rows.find((row) => row.factor === 2);
    fill(lead, isKnown(today?.hitRatio) ? [`With ${bytes(data.capacityBytes)} of memory`, data.diskCapacityBytes > 0 && ` and ${bytes(data.diskCapacityBytes)} of disk`,
      ', ', h('b', {}, percent(today.hitRatio)), ` of ${compact(data.lookups)} blocks and values were found, as the overview counts them. `,
      'Double the memory would find ', h('b', {}, percent(double.hitRatio)), '.'] : 'Nothing was asked for in this time.');
    curve.show(rows, minutes);
    sizes.setRows(rows);
    fill(note, `Today’s ratios are counted. Those of other sizes are estimated: they change as LRU’s would, of ${count(data.uses)} uses (sample rate ${percent(data.sampledShare)})`,
      data.diskCapacityBytes > 0 && ', with the disks as they are', '. ',
      data.dropped > 0 && `${count(data.dropped)} uses were dropped from the sample. `,
      isKnown(data.tokensSavedPerSecond) && `Saved now: ${compact(data.tokensSavedPerSecond)} tokens/s on average; other sizes save in proportion to their hit ratios. `,
      'A month has 730 hours. Prices are kept in this browser only.');
    showPolicy();
  }

  function showPolicy() {
    const title = h('h2', { class: 'section-title' }, 'Eviction policy');
    if (!data.policy) {
      fill(policy, title, h('p', {}, server.policy === 'lru'
        ? 'Memory uses LRU eviction, so there is nothing to compare.'
        : `Nothing to compare yet: memory has not been full, or each evicted block was on a disk too. Evictions are ordered by ${server.followsLru ? 'LRU' : server.policy}.`));
      return;
    }
    const { name, hits, lruHits, sampledUses, switches, followsLru } = data.policy;
    const gain = ratio(hits - lruHits, lruHits);
    const more = gain === null ? null : Math.abs(gain) < 0.0005 ? 'as much as' : `${percent(Math.abs(gain))} ${gain > 0 ? 'more' : 'less'} than`;
    fill(policy, title, h('p', {}, more === null ? 'Neither has found anything of the sample yet.'
      : [name, ' finds ', h('b', {}, more), ' LRU.']),
    h('p', { class: 'note' }, `In a sample of ${count(sampledUses)} uses since memory was full, ${name} found ${count(hits)} and LRU would have found ${count(lruHits)}. `
      + 'Uses of what is also on a disk are left out, as neither loses those: so this is no hit ratio of the cache. '
      + `Evictions are ordered by ${followsLru ? 'LRU now, as it finds more' : `${name} now`}; ${count(switches)} switches since the start.`));
  }
}

/** What each size would save and cost. */
function compute(data, { memoryPrice, gpuPrice, prefill }) {
  const now = data.sizes.find((size) => size.factor === 1);
  const rows = data.sizes.map((size) => {
    const tokensSaved = isKnown(data.tokensSavedPerSecond) && now?.hitRatio > 0
      ? data.tokensSavedPerSecond * size.hitRatio / now.hitRatio : null;
    const prefillSeconds = tokensSaved !== null && prefill !== null ? tokensSaved * 3600 / prefill : null;
    const memoryCost = memoryPrice === null ? null : size.bytes / GIB * memoryPrice;
    const gpuSaved = gpuPrice === null || prefillSeconds === null ? null : prefillSeconds / 3600 * gpuPrice * HOURS_A_MONTH;
    return { ...size, tokensSaved, prefillSeconds, memoryCost, gpuSaved };
  });
  const today = rows.find((row) => row.factor === 1);
  for (const row of rows) {
    row.extraCost = today && row.memoryCost !== null ? row.memoryCost - today.memoryCost : null;
    row.balance = row.extraCost !== null && row.gpuSaved !== null
      ? row.gpuSaved - today.gpuSaved - row.extraCost : null;
  }
  return rows;
}

function sizeColumns(server) {
  return [
    { id: 'factor', label: 'Size', number: true, value: (row) => row.factor,
      cell: (row) => (row.factor === 1 ? h('b', {}, 'today') : `${decimal(row.factor)} ×`) },
    { id: 'bytes', label: 'Memory', number: true, value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    ratioColumn('hitRatio', 'Hit ratio', 'found'),
    ...(server.disks > 0 ? [ratioColumn('memoryHitRatio', 'In memory', 'memory')] : []),
    { id: 'tokensSaved', label: 'Tokens saved/s', number: true, wide: true, value: (row) => row.tokensSaved,
      cell: (row) => compact(row.tokensSaved) },
    { id: 'prefillSeconds', label: 'Prefill saved/h', number: true, wide: true, value: (row) => row.prefillSeconds,
      cell: (row) => duration(row.prefillSeconds) },
    { id: 'memoryCost', label: 'Memory cost/month', number: true, wide: true, value: (row) => row.memoryCost, cell: (row) => money(row.memoryCost) },
    { id: 'extraCost', label: 'Cost vs. today', number: true, wide: true, hint: 'Memory cost per month minus the memory cost today',
      value: (row) => row.extraCost, cell: (row) => signed(row.extraCost) },
    { id: 'gpuSaved', label: 'GPU cost saved/month', number: true, wide: true, value: (row) => row.gpuSaved, cell: (row) => money(row.gpuSaved) },
    { id: 'balance', label: 'Net gain/month', number: true, wide: true, hint: 'Additional GPU cost saved minus the additional memory cost',
      value: (row) => row.balance, cell: (row) => signed(row.balance) },
  ];
}

function ratioColumn(id, label, kind) {
  return { id, label, number: true, value: (row) => row[id],
    cell: (row) => h('span', { class: 'bar-cell' }, bar(row[id], kind), h('span', {}, percent(row[id]))) };
}

function signed(value) {
  return isKnown(value) ? `${value > 0 ? '+' : ''}${money(value)}` : '–';
}
