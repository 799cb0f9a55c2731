import { request } from './api.js';
import { confirm } from './dialog.js';
import { bar, button, fill, h, name } from './dom.js';
import { byName, bytes, count, decimal, isKnown, micros, percent, ratio, words } from './format.js';
import { state } from './states.js';
import { table } from './table.js';
import { toast } from './toast.js';

const POLL_SECONDS = 10;

export function open(view) {
  const { server, parameters, toolbar, content, signal } = view;
  fill(toolbar, h('span', { class: 'source' }, `every ${POLL_SECONDS} s`));
  const overview = table({
    id: 'disks', caption: 'Disks', columns: columns(), sort: parameters.sort, onSort: (sort) => view.remember({ sort }),
    rowKey: (disk) => disk.number, empty: 'No disks are configured. The cache is in memory only.',
  });
  const counters = h('div');
  fill(content, overview.element, counters);
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
      { id: 'number', label: 'No.', number: true, value: (disk) => disk.number },
      { id: 'name', label: 'Disk', value: (disk) => disk.name, cell: (disk) => name(disk.name) },
      { id: 'state', label: 'State', value: (disk) => disk.state, cell: (disk) => state(disk.state) },
      { id: 'cause', label: 'Cause', value: (disk) => disk.cause, cell: (disk) => disk.cause || '', class: 'wrap' },
      ...(server.mayChange ? [reopenColumn()] : []),
      { id: 'live', label: 'Stored', number: true, value: (disk) => disk.lies.bytes, cell: storedCell },
      { id: 'blocks', label: 'Blocks', number: true, value: (disk) => disk.lies.blocks, cell: (disk) => count(disk.lies.blocks) },
      { id: 'written', label: 'Written', number: true, hint: 'Since the disk was last opened',
        value: (disk) => disk.tier?.allBytesWritten, cell: (disk) => bytes(disk.tier?.allBytesWritten) },
      { id: 'coding', label: 'Coding', number: true, hint: 'How many times as many bytes fit, of what was coded since the disk was last opened',
        value: coding, cell: (disk) => (coding(disk) === null ? '–' : `${decimal(coding(disk))}×`) },
      { id: 'budget', label: 'Write budget', number: true, hint: 'Share of the daily write budget spent',
        value: (disk) => disk.budgetSpent, cell: budgetCell },
      { id: 'reads', label: 'Reads', number: true, hint: 'In flight, and waiting',
        value: (disk) => (disk.readsUnderWay ?? 0) + (disk.readsWaiting ?? 0),
        cell: (disk) => `${count(disk.readsUnderWay)} + ${count(disk.readsWaiting)}` },
      { id: 'writes', label: 'Writes', number: true, hint: 'In flight', value: (disk) => disk.writesUnderWay, cell: (disk) => count(disk.writesUnderWay) },
      latencyColumn('readLatency', 'p50Micros', 'Read p50'),
      latencyColumn('readLatency', 'p99Micros', 'Read p99'),
      latencyColumn('writeLatency', 'p99Micros', 'Write p99'),
      { id: 'failures', label: 'Failures', number: true, hint: 'Reads that failed', value: (disk) => disk.readFailures, cell: (disk) => count(disk.readFailures) },
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

function latencyColumn(field, percentile, label) {
  const value = (disk) => (disk[field]?.count === 0 ? null : disk[field]?.[percentile]);
  return { id: label.toLowerCase().replace(' ', '-'), label, number: true, value, cell: (disk) => micros(value(disk)) };
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
