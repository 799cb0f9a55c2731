import { request, url } from './api.js';
import { timeChart } from './charts.js';
import { minutesOf, spanSelect, tenantSelect } from './controls.js';
import { bar, fill, h } from './dom.js';
import { ago, bytes, compact, counted, decimal, duration, isKnown, micros, percent, ratio } from './format.js';
import { missChart } from './missChart.js';
import { prices } from './prices.js';
import { Series, found, lookups, rate, thinned } from './series.js';
import { stream } from './stream.js';
import { summary } from './summary.js';
import { tenantsTable } from './tenants.js';
import { tile } from './tiles.js';

const POLL_SECONDS = 10;
const NOW_SECONDS = 30; // a few live samples, as a single one of two seconds jumps
const MAX_POINTS = 180; // a chart is some 400 pixels wide

export function open(view) {
  const { server, parameters, toolbar, content, signal } = view;
  const tenant = parameters.tenant;
  const minutes = minutesOf(parameters);
  const source = h('span', { class: 'source' });
  const tiles = createTiles();
  const isOfATenant = Boolean(tenant) || server.administrator === false;
  const charts = createCharts(isOfATenant, signal);
  const since = h('p', { class: 'note' });
  fill(toolbar, tenantSelect(view), spanSelect(view), source);
  const lead = summary(view, minutes, !isOfATenant);
  const [first, ...others] = charts;
  first.element.classList.add('is-wide');
  fill(content, lead.element, first.element, h('div', { class: 'tiles' }, Object.values(tiles).map((each) => each.element)),
    h('div', { class: 'charts' }, others.map((each) => each.element)), !isOfATenant && server.tenants.length > 1 && tenantsTable(view), since);

  let series = null;
  let live = false;
  let current = false; // whether the series has all until now, so that live samples follow it without a gap

  const polling = view.poll(() => request('history', { parameters: { minutes, tenant }, signal }), {
    everySeconds: POLL_SECONDS,
    onData: (history) => {
      if (live) {
        return; // the stream is ahead of the history
      }
      current = true;
      series = new Series(history, minutes);
      fill(since, 'History since ', ago(history.since), `, kept in the server’s memory (up to ${
        duration(server.historyKeptSeconds)}) and lost at a restart.`);
      showTiles();
      showCharts();
    },
  });

  stream({
    address: () => url('live', { tenant }),
    names: ['sample'],
    signal,
    onState: (state) => {
      if (state !== 'open' && live) {
        live = false;
        current = false;
        polling.now(); // what the stream no longer tells
      }
      source.textContent = state === 'open' ? 'live' : `every ${POLL_SECONDS} s`;
      source.classList.toggle('is-live', state === 'open');
    },
    onEvent: (name, sample) => {
      if (!current || sample === null) {
        return;
      }
      if (!live) {
        live = true;
        polling.pause();
      }
      const completed = series.add(sample);
      showTiles();
      if (completed) {
        showCharts();
      }
    },
  });

  function showCharts() {
    const points = thinned(series.samples, MAX_POINTS);
    charts.forEach((each) => each.show(points, minutes));
  }

  function showTiles() {
    if (!series.isEmpty) {
      lead.show(series.total());
      fillTiles(tiles, series.tail(NOW_SECONDS), series.total(), server, isOfATenant);
    }
  }
}

function createTiles() {
  return {
    hits: tile('Hit ratio now'),
    tokens: tile('Tokens saved'),
    prefill: tile('Prefill time saved'),
    memory: tile('Memory'),
    disk: tile('Disk'),
    written: tile('Disk writes'),
    requests: tile('Requests'),
    latency: tile('Latency p99'),
  };
}

function fillTiles(tiles, now, total, server, isOfATenant) {
  const span = `in ${duration(total.seconds)}`;
  const hits = (sample) => ratio(found(sample), lookups(sample));
  const tiers = (sample) => `${percent(ratio(sample.memoryHits, lookups(sample)))} memory, ${
    percent(ratio(sample.diskHits, lookups(sample)))} disk${
    sample.deviceHits > 0 ? `, ${percent(ratio(sample.deviceHits, lookups(sample)))} GPU` : ''}`;
  tiles.hits.show(percent(hits(now)), h('span', { title: `${tiers(total)} ${span}` }, lookups(now) > 0 ? tiers(now) : 'no lookups'),
    lookups(total) > 0 && h('span', {}, `${percent(hits(total))} ${span}`));
  tiles.tokens.show(`${compact(rate(now, 'tokensSaved'))}/s`, `${compact(total.tokensSaved)} ${span}`);

  const speed = prices(server).prefill;
  tiles.prefill.show(
    isKnown(speed) ? `${decimal(rate(now, 'tokensSaved') / speed)} s/s` : '–',
    isKnown(speed) ? `${duration(total.tokensSaved / speed)} ${span}` : 'set the prefill speed above');

  tiles.memory.show(bytes(now.memoryBytes), ...useOf(now.memoryBytes, now.memoryCapacityBytes, 'memory',
    isOfATenant ? 'no quota' : ''));
  tiles.disk.show(now.diskCapacityBytes === 0 ? 'none' : bytes(now.diskBytes),
    ...useOf(now.diskBytes, now.diskCapacityBytes, 'disk', isOfATenant ? 'not available per tenant' : 'no disk configured'));
  tiles.written.show(isKnown(rate(now, 'diskWrittenBytes')) ? `${bytes(rate(now, 'diskWrittenBytes'))}/s` : '–',
    isKnown(now.diskBudgetSpent) ? `${percent(now.diskBudgetSpent)} of the daily budget` : 'no write budget');
  tiles.requests.show(isKnown(now.requests) ? `${compact(rate(now, 'requests'))}/s` : '–',
    isKnown(now.connections) ? counted(now.connections, 'connection') : 'not counted per tenant');
  tiles.latency.show(micros(latency(now, 'p99Micros')),
    isOfATenant && 'not measured per tenant', isKnown(latency(now, 'p50Micros')) && h('span', {}, `p50 ${micros(now.p50Micros)}`),
    isKnown(latency(total, 'p99Micros')) && h('span', {}, `at most ${micros(total.p99Micros)} ${span}`));
}

/** Without requests there is no latency, though the server then writes 0. */
function latency(sample, percentile) {
  return sample.requests > 0 ? sample[percentile] : null;
}

function useOf(used, capacity, kind, otherwise) {
  const share = ratio(used, capacity);
  return share === null ? [otherwise] : [bar(share, kind), h('span', {}, `${percent(share)} of ${bytes(capacity)}`)];
}

function createCharts(isOfATenant, signal) {
  const share = (used, capacity) => (sample) => ratio(sample[used], sample[capacity]);
  return [
    timeChart({
      id: 'hits', title: 'Found', note: 'of what was asked for, by tier', signal, stacked: true, max: 1, format: percent,
      series: [
        { label: 'memory', value: (sample) => ratio(sample.memoryHits, lookups(sample)) },
        { label: 'disk', colour: 1, value: (sample) => ratio(sample.diskHits, lookups(sample)) },
        { label: 'GPU', colour: 2, value: (sample) => ratio(sample.deviceHits ?? 0, lookups(sample)) },
      ],
    }),
    timeChart({
      id: 'tokens', title: 'Tokens saved', note: 'per second', signal, format: compact,
      series: [{ label: 'tokens', colour: 2, value: (sample) => rate(sample, 'tokensSaved') }],
    }),
    isOfATenant ? timeChart({
      id: 'room', title: 'Memory use', signal, format: bytes, binary: true,
      series: [
        { label: 'memory', value: (sample) => sample.memoryBytes },
        { label: 'quota', colour: 7, dashed: true, value: (sample) => sample.memoryCapacityBytes || null },
      ],
    }) : timeChart({
      id: 'room', title: 'Memory and disk use', note: 'of the capacity', signal, max: 1, format: percent,
      series: [
        { label: 'memory', value: share('memoryBytes', 'memoryCapacityBytes') },
        { label: 'disk', colour: 1, dashed: true, value: share('diskBytes', 'diskCapacityBytes') },
      ],
    }),
    missChart({ id: 'misses', signal }),
    timeChart({
      id: 'evictions', title: 'Evictions', note: 'per second', signal, format: compact,
      series: [{ label: 'evicted', colour: 3, value: (sample) => rate(sample, 'evicted') }],
    }),
    ...(isOfATenant ? [] : [
      timeChart({
        id: 'requests', title: 'Requests', note: 'per second', signal, format: compact,
        series: [{ label: 'requests', colour: 5, value: (sample) => rate(sample, 'requests') }],
      }),
      timeChart({
        id: 'latency', title: 'Latency', note: 'of requests', signal, format: micros,
        series: [
          { label: 'p50', value: (sample) => latency(sample, 'p50Micros') },
          { label: 'p99', colour: 1, dashed: true, value: (sample) => latency(sample, 'p99Micros') },
        ],
      }),
    ]),
  ];
}
