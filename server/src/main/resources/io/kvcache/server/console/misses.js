import { request } from './api.js';
import { minutesOf, spanSelect, tenantSelect } from './controls.js';
import { bar, field, fill, h, keyText, name, select } from './dom.js';
import { age, ago, count, counted, isKnown, percent, ratio } from './format.js';
import { missChart } from './missChart.js';
import { reasonAdvice, reasonNames, reasonWords } from './reasons.js';
import { thinned } from './series.js';
import { table } from './table.js';

const LIMIT = 200;
const POLL_SECONDS = 10;
/** Four hours of samples are some 600 KiB. */
const HISTORY_POLL_SECONDS = 60;
const MAX_POINTS = 180;

export function open(view) {
  const { server, parameters, toolbar, content, signal, link } = view;
  const { tenant, reason } = parameters;
  const minutes = minutesOf(parameters);
  fill(toolbar, tenantSelect(view), field('Reason', select('reason',
    [['', 'all'], ...reasonNames(reason ? { [reason]: 1 } : {}).map((each) => [each, reasonWords(each)])],
    reason ?? '', (chosen) => view.go({ reason: chosen }))), spanSelect(view));

  const chart = missChart({ id: 'misses', signal });
  let total = 0;
  let chunkTokens = 0;
  const reasons = table({
    id: 'reasons', caption: 'Reasons since the start', file: 'miss-reasons', sort: '-misses', rowKey: (row) => row.reason,
    empty: 'No misses yet.',
    columns: [
      { id: 'reason', label: 'Reason', value: (row) => reasonWords(row.reason),
        cell: (row) => h('a', { href: link({ reason: row.reason }) }, reasonWords(row.reason)) },
      { id: 'misses', label: 'Misses', number: true, value: (row) => row.misses, cell: (row) => count(row.misses) },
      { id: 'share', label: 'Share', number: true, value: (row) => ratio(row.misses, total),
        cell: (row) => h('span', { class: 'bar-cell' }, bar(ratio(row.misses, total), 'miss'),
          h('span', {}, percent(ratio(row.misses, total)))) },
      { id: 'advice', label: 'What to do', value: (row) => reasonAdvice(row.reason), class: 'wrap' },
    ],
  });
  const recent = table({
    id: 'recent', caption: 'Latest misses', file: 'misses', first: 50, sort: parameters.sort,
    onSort: (sort) => view.remember({ sort }),
    empty: reason ? `No recent misses with the reason “${reasonWords(reason)}”.` : 'No recent misses.',
    columns: recentColumns(server, () => chunkTokens),
  });
  const kept = h('p', { class: 'note' });
  fill(content, h('div', { class: 'split' }, chart.element, reasons.element), recent.element, kept);

  view.poll(() => request('misses', { parameters: { limit: LIMIT, tenant, reason }, signal }), {
    everySeconds: POLL_SECONDS,
    onData: (misses) => {
      const byReason = misses.reasons ?? {};
      total = Object.values(byReason).reduce((a, b) => a + b, 0);
      chunkTokens = misses.chunkTokens;
      reasons.setRows(reasonNames(byReason).map((each) => ({ reason: each, misses: byReason[each] ?? 0 }))
        .filter((row) => row.misses > 0));
      recent.setRows(misses.recent ?? []);
      fill(kept, server.cluster
        ? 'How far a sequence of LMCache’s chunks was found is not known here, as each server of a cluster is asked for its own chunks alone. '
        : 'Of a chunk of LMCache, “found” is the part of its sequence that comes before it, as far as clients have asked in order since the start. ',
      'A value with another key stands alone. ', misses.kept > 0 && `Details of the latest ${count(misses.kept)} misses are kept; ${count(misses.notKept)} more were counted only.`);
    },
  });
  view.poll(() => request('history', { parameters: { minutes, tenant }, signal }), {
    everySeconds: HISTORY_POLL_SECONDS,
    onData: (history) => chart.show(thinned(history.samples ?? [], MAX_POINTS), minutes),
  });
}

/** Seconds; null when it is not known to have left. */
function leftBefore(miss) {
  return miss.leftSecondsAgo >= 0 ? miss.leftSecondsAgo ?? null : null;
}

/** How far the prompt was found: of blocks the server knows how many were asked for, of chunks one after the other is. */
function foundCell(miss, chunkTokens) {
  if (miss.kind === 'blocks') {
    return h('span', { class: 'bar-cell' }, bar(ratio(miss.found, miss.requested), 'memory'),
      h('span', {}, `${count(miss.found)} of ${counted(miss.requested, 'block')}`));
  }
  return isKnown(miss.chunksFound) ? h('span', {}, counted(miss.chunksFound, 'chunk'),
    h('span', { class: 'quiet' }, ` (${count(miss.chunksFound * chunkTokens)} tokens)`)) : '–';
}

function recentColumns(server, chunkTokens) {
  return [
    { id: 'at', label: 'Time', value: (miss) => miss.at, cell: (miss) => ago(miss.at) },
    { id: 'tenant', label: 'Tenant', hidden: server.tenants.length < 2, value: (miss) => miss.tenant, cell: (miss) => name(miss.tenant) },
    { id: 'namespace', label: 'Namespace', value: (miss) => miss.namespace, cell: (miss) => name(miss.namespace) },
    { id: 'kind', label: 'Kind', value: (miss) => miss.kind },
    { id: 'key', label: 'Key', hint: 'Object key, or key of the first missing block', value: (miss) => miss.key,
      cell: (miss) => keyText(miss.key) },
    { id: 'found', label: 'Found', number: true, wide: true, hint: 'How far the prompt was found: blocks of those asked for, or chunks before this one',
      value: (miss) => (miss.kind === 'blocks' ? miss.found : miss.chunksFound), cell: (miss) => foundCell(miss, chunkTokens()) },
    { id: 'requested', label: 'Asked for', hidden: true, value: (miss) => (miss.kind === 'blocks' ? miss.requested : null) },
    { id: 'reason', label: 'Reason', value: (miss) => reasonWords(miss.reason), class: 'wrap' },
    { id: 'left', label: 'Removed', number: true, hint: 'Time between the removal and the miss', value: leftBefore,
      cell: (miss) => (leftBefore(miss) === null ? '–' : `${age(leftBefore(miss))} before`) },
    { id: 'orderedBy', label: 'Evicted by', hint: 'Eviction policy at that time', value: (miss) => miss.orderedBy },
  ];
}
