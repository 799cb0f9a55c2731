import { url } from './api.js';
import { button, field, fill, h, keyText, name, select } from './dom.js';
import { ago, count } from './format.js';
import { serverNow } from './clock.js';
import { stream } from './stream.js';
import { table } from './table.js';

const MAX_ROWS = 500;
const KINDS = ['stored', 'evicted', 'dropped', 'replaced', 'quota'];
/** Events come in bursts of hundreds, and drawing 500 rows takes some milliseconds. */
const DRAW_MILLIS = 1000;

export function open(view) {
  const { parameters, toolbar, content, signal } = view;
  const { kind, namespace } = parameters;
  let rows = [];
  let passed = 0;
  let paused = false;
  let drawTimer = 0;
  let lastId = '';
  let connected = 'connecting';

  const status = h('span', { class: 'source' });
  const pause = button('Pause', togglePause, 'outline-secondary', { id: 'pause', 'aria-pressed': 'false' });
  const namespaceInput = h('input', {
    id: 'namespace', class: 'form-control form-control-sm', value: namespace ?? '', placeholder: 'all',
    autocomplete: 'off', onchange: () => view.go({ namespace: namespaceInput.value.trim() }),
  });
  fill(toolbar,
    field('Kind', select('kind', [['', 'all'], ...KINDS.map((each) => [each, each])], kind ?? '', (chosen) => view.go({ kind: chosen }))),
    field('Namespace', namespaceInput), pause, status);

  const list = table({
    id: 'events', caption: 'Events', first: 100, columns: columns(), sort: parameters.sort, onSort: (sort) => view.remember({ sort }),
    empty: 'No events yet. Events appear when blocks are stored or removed.',
  });
  const note = h('p', { class: 'note' }, `Shows the newest ${MAX_ROWS} events${view.server.administrator ? '' : ' of your tenant'}. `
    + 'Events carry no timestamp: “Received” is the time at which this page got them.');
  fill(content, list.element, note);

  const following = stream({
    // What the page has seen already is not asked for again, as after a pause or in a tab that was hidden.
    address: () => url('events', { namespace, tenant: view.server.administrator ? '*' : '', ...(lastId ? { after: lastId } : { from: 'oldest' }) }),
    names: ['stored', 'removed', 'gap', 'message'],
    signal,
    onState: (now) => {
      connected = now;
      showStatus();
    },
    onEvent: (eventName, data, id) => {
      lastId = id || lastId;
      if (data === null) {
        return;
      }
      const row = toRow(eventName, data);
      if (row.kind !== 'gap' && kind && row.kind !== kind) {
        return;
      }
      passed++;
      rows.push(row);
      if (rows.length > 2 * MAX_ROWS) {
        rows = rows.slice(-MAX_ROWS);
      }
      drawTimer ||= setTimeout(draw, DRAW_MILLIS);
    },
  });
  signal.addEventListener('abort', () => clearTimeout(drawTimer));

  function draw() {
    drawTimer = 0;
    rows = rows.slice(-MAX_ROWS);
    list.setRows(rows.toReversed());
    showStatus();
  }

  function togglePause() {
    paused = !paused;
    pause.textContent = paused ? 'Resume' : 'Pause';
    pause.setAttribute('aria-pressed', String(paused));
    if (paused) {
      following.stop();
    } else {
      following.resume();
    }
    showStatus();
  }

  function showStatus() {
    const live = !paused && connected === 'open';
    const shownState = paused ? 'paused' : { open: 'live', connecting: 'connecting' }[connected] ?? 'disconnected, retrying';
    status.textContent = `${shownState}, ${count(passed)} received`;
    status.classList.toggle('is-live', live);
  }
}

function toRow(eventName, data) {
  // A stream names an addition or removal, and the data its cause.
  const kind = data.kind ?? (eventName === 'removed' ? data.cause : eventName);
  return { ...data, kind, receivedAt: serverNow() / 1000 };
}

function columns() {
  return [
    { id: 'sequence', label: 'No.', number: true, value: (event) => event.sequence },
    { id: 'received', label: 'Received', value: (event) => new Date(event.receivedAt * 1000).toISOString(), cell: (event) => ago(event.receivedAt) },
    { id: 'kind', label: 'Kind', value: (event) => event.kind, cell: (event) => h('span', { class: `event event-${event.kind}` },
      event.kind === 'gap' ? 'events missing' : event.kind) },
    { id: 'tier', label: 'Tier', value: (event) => event.tier },
    { id: 'namespace', label: 'Namespace', value: (event) => event.namespace,
      cell: (event) => (event.namespace === undefined ? '–' : name(event.namespace)) },
    { id: 'tenant', label: 'Tenant', value: (event) => event.tenant ?? '', cell: (event) => (event.tenant ? name(event.tenant) : '–') },
    { id: 'what', label: 'What', value: (event) => (event.object ? 'object' : event.kind === 'gap' ? gapText(event) : 'block') },
    { id: 'depth', label: 'Depth', number: true, hint: 'Blocks before it', value: (event) => event.depth, cell: (event) => count(event.depth) },
    { id: 'key', label: 'Key', value: (event) => event.key, cell: (event) => (event.key ? keyText(event.key, true) : '–') },
    { id: 'parent', label: 'Parent', value: (event) => event.parent, cell: (event) => (event.parent ? keyText(event.parent, true) : '–') },
  ];
}

function gapText(event) {
  return event.reason === 'restart' ? 'server restarted' : 'no longer in the server’s history';
}
