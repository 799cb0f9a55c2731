import { request } from './api.js';
import { timeChart } from './charts.js';
import { minutesOf, spanSelect } from './controls.js';
import { confirm } from './dialog.js';
import { bar, button, fill, h, name, twoLines } from './dom.js';
import { byName, bytes, count, decimal, isKnown, micros, percent, ratio, words } from './format.js';
import { rate, thinned } from './series.js';
import { state } from './states.js';
import { table } from './table.js';
import { toast } from './toast.js';

const POLL_SECONDS = 10;
const MAX_POINTS = 180;

export function open(view) {
  const { server, parameters, toolbar, content, signal } = view;
  const minutes = minutesOf(parameters);
  fill(toolbar, server.disks > 0 && spanSelect(view), h('span', { class: 'source' }, `every ${POLL_SECONDS} s`));
  const overview = table({
    id: 'disks', caption: 'Disks', columns: columns(), sort: parameters.sort, onSort: (sort) => view.remember({ sort }),
    rowKey: (disk) => disk.number, empty: 'No disks are configured. The cache is in memory only.',
  });
  const counters = h('div');
  const charts = server.disks > 0 ? createCharts(signal) : [];
  fill(content, overview.element, charts.length > 0 && h('div', { class: 'charts' }, charts.map((each) => each.element)), counters);
  if (charts.length > 0) {
    view.poll(() => request('history', { parameters: { minutes }, signal }), {
      everySeconds: POLL_SECONDS,
      onData: (history) => charts.forEach((each) => each.show(thinned(history.samples ?? [], MAX_POINTS), minutes)),
    });
  }
  const openCounters = new Set();

  const loading = view.poll(() => request('stats', { signal }), {
    everySeconds: POLL_SECONDS,
    onData: (stats) => {
      const disks = (stats.disks ?? []).map((disk, number) => ({ ...disk, number, lies: stats.offload?.disks?.[number] ?? {} }));
      overview.setRows(disks);
      fill(counters, disks.map(diskCounters), disks.length > 0 && stats.offload && counterGroup('offload', 'Write-back counters (all disks)',
        numbersOf(stats.offload)));
    },
  });

  function diskCounters(disk) {
    return counterGroup(disk.name, [`Counters of disk ${disk.number}: `, name(disk.name)],
      [...numbersOf(disk.tier ?? {}), ...numbersOf(disk.tier?.coding ?? {}).map(([key, value]) => [`coding ${key}`, value]),
        ...numbersOf(disk, KNOWN_FIELDS)], disk.tier?.path);
  }

  function counterGroup(id, title, values, path) {
    return h('details', {
      class: 'counters', open: openCounters.has(id),
      ontoggle: (event) => (event.target.open ? openCounters.add(id) : openCounters.delete(id)),
    }, h('summary', {}, title), path && h('p', { class: 'note' }, `Path: ${path}`),
    h('dl', { class: 'key-values' }, values.map(([key, value]) => h('div', {}, h('dt', {}, words(key)), h('dd', {}, byName(key, value))))));
  }

  function columns() {
    return [
      { id: 'name', label: 'Disk', value: (disk) => disk.name, cell: (disk) => twoLines(name(disk.name), `number ${disk.number}`) },
      { id: 'state', label: 'State', value: (disk) => disk.state, cell: (disk) => state(disk.state) },
      { id: 'cause', label: 'Cause', value: (disk) => disk.cause, cell: (disk) => disk.cause || '', class: 'wrap' },
      ...(server.mayChange ? [reopenColumn()] : []),
      { id: 'live', label: 'Stored', number: true, wide: true, value: (disk) => disk.lies.bytes,
        cell: (disk) => twoLines(storedCell(disk), `${count(disk.lies.blocks)} blocks and values`) },
      { id: 'written', label: 'Written', number: true, hint: 'Since the disk was last opened, and the share of the daily write budget that is spent',
        value: (disk) => disk.tier?.allBytesWritten,
        cell: (disk) => twoLines(bytes(disk.tier?.allBytesWritten), isKnown(disk.budgetSpent) ? budgetCell(disk) : 'no budget') },
      { id: 'coding', label: 'Coding', number: true, hint: 'How many times as many bytes fit, of what was coded since the disk was last opened',
        value: coding, cell: (disk) => (coding(disk) === null ? '–' : `${decimal(coding(disk))}×`) },
      { id: 'reads', label: 'Under way', number: true, wide: true, hint: 'Reads and writes in flight, and reads that wait',
        value: (disk) => (disk.readsUnderWay ?? 0) + (disk.readsWaiting ?? 0) + (disk.writesUnderWay ?? 0),
        cell: (disk) => twoLines(`${count(disk.readsUnderWay)} reads, ${count(disk.writesUnderWay)} writes`, `${count(disk.readsWaiting)} waiting`) },
      { id: 'read-p99', label: 'Read p99', number: true, hint: 'Since the start; the median below', value: (disk) => latency(disk.readLatency, 'p99Micros'),
        cell: (disk) => twoLines(micros(latency(disk.readLatency, 'p99Micros')), `p50 ${micros(latency(disk.readLatency, 'p50Micros'))}`) },
      { id: 'write-p99', label: 'Write p99', number: true, hint: 'Since the start; the median below', value: (disk) => latency(disk.writeLatency, 'p99Micros'),
        cell: (disk) => twoLines(micros(latency(disk.writeLatency, 'p99Micros')), `p50 ${micros(latency(disk.writeLatency, 'p50Micros'))}`) },
      { id: 'failures', label: 'Failures', number: true, hint: 'Reads that failed', value: (disk) => disk.readFailures, cell: (disk) => count(disk.readFailures) },
      { id: 'budget', label: 'Write budget', hidden: true, value: (disk) => disk.budgetSpent },
      { id: 'blocks', label: 'Blocks', hidden: true, value: (disk) => disk.lies.blocks },
      { id: 'number', label: 'No.', hidden: true, value: (disk) => disk.number },
    ];
  }

  function reopenColumn() {
    return { id: 'reopen', label: h('span', { class: 'visually-hidden' }, 'Actions'), unsorted: true,
      cell: (disk) => (String(disk.state).toUpperCase() === 'SERVING' ? ''
        : button('Reopen', () => reopen(disk), 'outline-secondary', { 'aria-label': `Reopen ${disk.name}` })) };
  }

  async function reopen(disk) {
    const agreed = await confirm({
      title: 'Reopen this disk?',
      lines: [[name(disk.name), ` is ${String(disk.state).toLowerCase().replaceAll('_', ' ')}.`, disk.cause && ` ${disk.cause}`],
        'The server opens the disk again and recovers its contents.'],
      action: 'Reopen', kind: 'primary',
    });
    if (!agreed) {
      return;
    }
    try {
      await request(`disks/${disk.number}/reopen`, { method: 'POST', signal });
      toast(`Reopening ${disk.name}.`);
      loading.now();
    } catch (error) {
      if (!signal.aborted) {
        toast(`Not reopened: ${error.message}`);
      }
    }
  }
}

const KNOWN_FIELDS = new Set(['number', 'opened', 'budgetSpent', 'readsWaiting', 'readsUnderWay', 'writesUnderWay']);

function coding(disk) {
  return ratio(disk.tier?.coding?.plainBytes, disk.tier?.coding?.storedBytes);
}

/** Nothing measured is no latency, though the server then writes 0. */
function latency(measured, percentile) {
  return measured?.count > 0 ? measured[percentile] : null;
}

/** Of all disks together: the table above tells them apart. */
function createCharts(signal) {
  const whenSome = (sample, counted, field) => (sample[counted] > 0 ? sample[field] : null);
  return [
    timeChart({
      id: 'io', title: 'Reads and writes', note: 'per second, all disks', signal, format: decimal,
      series: [
        { label: 'reads', value: (sample) => rate(sample, 'diskReads') },
        { label: 'writes', colour: 1, dashed: true, value: (sample) => rate(sample, 'diskWrites') },
      ],
    }),
    timeChart({
      id: 'io-bytes', title: 'Bytes read and written', note: 'per second, all disks', signal, format: bytes, binary: true,
      series: [
        { label: 'read', value: (sample) => rate(sample, 'diskReadBytes') },
        { label: 'written', colour: 1, dashed: true, value: (sample) => rate(sample, 'diskWrittenBytes') },
      ],
    }),
    timeChart({
      id: 'io-latency', title: 'Latency p99', note: 'of reads and writes, all disks', signal, format: micros,
      series: [
        { label: 'reads', value: (sample) => whenSome(sample, 'diskReads', 'diskReadP99Micros') },
        { label: 'writes', colour: 1, dashed: true, value: (sample) => whenSome(sample, 'diskWrites', 'diskWriteP99Micros') },
      ],
    }),
  ];
}

function storedCell(disk) {
  const limit = disk.lies.limitBytes ?? disk.tier?.capacityBytes;
  const share = ratio(disk.lies.bytes, limit);
  return h('span', { class: 'bar-cell', title: `${bytes(disk.lies.bytes)} of ${bytes(limit)}` },
    share !== null && bar(share, 'disk'), h('span', {}, bytes(disk.lies.bytes)));
}

function budgetCell(disk) {
  return isKnown(disk.budgetSpent)
    ? h('span', { class: 'bar-cell' }, bar(disk.budgetSpent, disk.budgetSpent > 0.9 ? 'miss' : 'disk'), h('span', {}, percent(disk.budgetSpent)))
    : '–';
}

function numbersOf(object, without = new Set()) {
  return Object.entries(object).filter(([key, value]) => typeof value === 'number' && !without.has(key));
}
