import { request } from './api.js';
import { fill, h, name } from './dom.js';
import { ago, bytes, count, counted, duration, isKnown, micros, millis } from './format.js';
import { table } from './table.js';

const POLL_SECONDS = 5;

export function open(view) {
  const { parameters, toolbar, content, signal } = view;
  fill(toolbar, h('span', { class: 'source' }, `every ${POLL_SECONDS} s`));
  const slow = table({
    id: 'slow', caption: 'Slow requests', file: 'slow-requests', first: 20, columns: slowColumns(),
    empty: 'No slow requests recorded.',
  });
  const latency = table({
    id: 'latency', caption: 'Latency by request', columns: latencyColumns(), sort: '-count', rowKey: (row) => row.request,
    empty: 'No requests measured yet.',
  });
  const connections = table({
    id: 'connections', caption: 'Connections', columns: connectionColumns(), sort: parameters.sort,
    onSort: (sort) => view.remember({ sort }), rowKey: (each) => each.id,
    empty: 'No clients are connected.',
  });
  const shown = h('p', { class: 'note' });
  const slowNote = h('p', { class: 'note' });
  fill(content, slow.element, slowNote, latency.element, connections.element, shown);

  view.poll(() => request('requests', { signal }), {
    everySeconds: POLL_SECONDS,
    onData: (data) => {
      slow.setRows(data.slow ?? []);
      fill(slowNote, isKnown(data.slowMillis)
        ? `Requests that took ${millis(data.slowMillis)} or longer.`
        : 'Slow requests are not recorded: the setting log.slow is 0.');
      latency.element.hidden = !data.latency;
      latency.setRows(Object.entries(data.latency ?? {}).map(([of, values]) => ({ request: of, ...values })));
      connections.setRows(data.connections ?? []);
      const others = data.open - data.operators;
      fill(shown, data.shown < others ? `${count(data.shown)} of ${counted(others, 'open connection')} are shown. `
        : `${counted(others, 'open connection')}. `,
      data.operators > 0 && `Not shown: ${counted(data.operators, 'connection')} of this console and of others that asked for the server’s pages last. `,
      'Clients of transport.listen, such as engines with the Python client, are not listed here.');
    },
  });
}

function slowColumns() {
  return [
    { id: 'at', label: 'Time', value: (each) => each.at, cell: (each) => ago(each.at) },
    { id: 'request', label: 'Request', value: (each) => each.request },
    { id: 'tenant', label: 'Tenant', value: (each) => each.tenant, cell: (each) => name(each.tenant) },
    { id: 'address', label: 'Client', value: (each) => each.address, cell: client },
    { id: 'millis', label: 'Took', number: true, value: (each) => each.millis, cell: (each) => millis(each.millis) },
    { id: 'waited', label: 'Waited', number: true, value: (each) => each.waitedMillis, cell: (each) => millis(each.waitedMillis) },
    { id: 'bytes', label: 'Size', number: true, value: (each) => each.bytes, cell: (each) => bytes(each.bytes) },
  ];
}

function latencyColumns() {
  return [
    { id: 'request', label: 'Request', value: (row) => row.request },
    { id: 'count', label: 'Count', number: true, value: (row) => row.count, cell: (row) => count(row.count) },
    { id: 'mean', label: 'Mean', number: true, value: (row) => row.meanMicros, cell: (row) => micros(row.meanMicros) },
    { id: 'p50', label: 'p50', number: true, value: (row) => row.p50Micros, cell: (row) => micros(row.p50Micros) },
    { id: 'p99', label: 'p99', number: true, value: (row) => row.p99Micros, cell: (row) => micros(row.p99Micros) },
  ];
}

function connectionColumns() {
  return [
    { id: 'id', label: 'ID', number: true, value: (each) => each.id },
    { id: 'address', label: 'Client', value: (each) => each.address, cell: client },
    { id: 'name', label: 'Name', value: (each) => each.name, cell: (each) => (each.name ? name(each.name) : '') },
    { id: 'tenant', label: 'Tenant', value: (each) => each.tenant, cell: (each) => (each.tenant ? name(each.tenant) : '–') },
    { id: 'protocol', label: 'Protocol', value: (each) => each.protocol },
    { id: 'state', label: 'State', value: (each) => (each.busy ? 'busy' : 'idle') },
    { id: 'request', label: 'Last request', value: (each) => each.request },
    { id: 'age', label: 'Age', number: true, value: (each) => each.ageSeconds, cell: (each) => duration(each.ageSeconds) },
    { id: 'idle', label: 'Idle', number: true, value: (each) => each.idleSeconds, cell: (each) => duration(each.idleSeconds) },
    { id: 'unread', label: 'Unread', number: true, hint: 'Reply bytes not yet read by the client',
      value: (each) => each.unreadBytes, cell: (each) => bytes(each.unreadBytes) },
  ];
}

/** Requests that another server passes on come over no connection of a client's. */
function client(each) {
  return each.address ? name(each.address, 'mono') : 'another server';
}
