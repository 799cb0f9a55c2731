import { request } from './api.js';
import { tenantSelect } from './controls.js';
import { confirm } from './dialog.js';
import { bar, button, field, fill, h, keyText, name, select, visible } from './dom.js';
import { aboutUses, age, ago, bytes, count, counted, percent, ratio } from './format.js';
import { serverNow } from './clock.js';
import { table } from './table.js';
import { toast } from './toast.js';

const FIRST_LIMIT = 50;
const MAX_LIMIT = 1000;
/** Parameters of the first level. */
const TOP = { namespace: '', under: '', path: '', chunks: '' };

export function open(view) {
  const { server, parameters, toolbar, content, signal, link } = view;
  const { tenant, namespace, under, chunks: stem } = parameters;
  const limit = Math.min(Number(parameters.limit) || FIRST_LIMIT, MAX_LIMIT);
  let namespaces = new Map();
  let chunkTokens = 0;

  const what = stem ? 'chunk' : 'block';
  const nouns = stem ? 'Chunks' : 'Blocks';
  const isNarrow = Boolean(stem) || server.tenants.length > 1; // so that all columns fit

  const namespaceField = h('span');
  showNamespaceSelect();
  const refresh = button('Refresh', () => loading.now(), 'outline-secondary', { id: 'refresh' });
  const scanned = h('span', { class: 'source' });
  fill(toolbar, tenantSelect(view, TOP), namespaceField, refresh, scanned);

  const crumbs = h('nav', { class: 'crumbs', 'aria-label': 'Prefix' });
  const totals = h('p', { class: 'note' });
  const more = h('p', { class: 'note' });
  const unknown = h('p', { class: 'note' });
  const nodes = table({
    id: 'nodes', caption: under ? 'Continuations' : stem ? 'Sequences' : 'Prefixes', file: 'prefixes',
    sort: parameters.sort, onSort: (sort) => view.remember({ sort }),
    rowKey: (node) => `${node.namespace}/${node.key}`,
    empty: stem ? 'The place of these chunks in their sequences is not known, or they have left.'
      : under ? 'No blocks are stored below this prefix.' : 'No blocks are stored here.',
    columns: nodeColumns(),
  });
  const chunks = table({
    id: 'chunks', caption: 'LMCache’s chunks by model and rank', file: 'chunks', columns: chunkColumns(),
    rowKey: (model) => `${model.namespace}/${model.stem}`, empty: 'No chunks are stored here.',
  });
  const models = table({
    id: 'namespaces', caption: 'Namespaces', columns: namespaceColumns(), rowKey: (each) => each.id,
    empty: 'No namespaces are registered yet.',
  });
  fill(content, crumbs, totals, chunks.element, nodes.element, more, unknown, !under && !stem && models.element);

  const loading = view.poll(
    () => request('prefixes', { parameters: { limit, tenant, namespace, under, chunks: stem }, signal }), { onData: showData });

  function showData(data) {
    namespaces = new Map((data.namespaces ?? []).map((each) => [each.id, each]));
    fill(scanned, 'scanned ', ago(data.at), ` in ${count(data.scanMillis)} ms`);
    chunkTokens = data.chunks.chunkTokens;
    const offered = data.chunks.models;
    fill(totals, stem || data.blocks > 0 || offered.length === 0
      ? `${counted(data.blocks, what)}, ${bytes(data.bytes)}. The counts of a prefix include all ${what}s below it. ` : '',
    `A ${offered.length > 0 ? 'chunk' : what} can be in memory and on disk at the same time.`);
    chunks.element.hidden = offered.length === 0;
    chunks.setRows(offered);
    nodes.element.hidden = offered.length > 0 && data.blocks === 0;
    fill(unknown, whyUnknown(data));
    showNamespaceSelect();
    showCrumbs(data.parent);
    nodes.setRows(data.nodes ?? []);
    models.setRows([...namespaces.values()]);
    fill(more, data.more > 0 && [
      `Not shown: ${counted(data.more, 'prefix', 'prefixes')} used less often, or smaller. `,
      limit < MAX_LIMIT && h('a', { href: link({ limit: Math.min(limit * 4, MAX_LIMIT) }) }, 'Show more')]);
  }

  /** What stands in no tree, and why. */
  function whyUnknown({ chunks: { models: of, otherValues, unreadValues }, namespaces: all }) {
    if (stem || under) {
      return stem && 'The order of chunks is learned from the order in which clients ask for them, for the latest 65,536 chunks since the start. '
        + (server.cluster ? 'Chunks of a sequence lie on all servers of the cluster: this shows those of this server, in the order in which requests are passed on to it.' : '');
    }
    const unplaced = of.reduce((sum, model) => sum + model.chunks - model.placed, 0);
    const foreign = all.filter((each) => each.blockTokens === null && each.name !== 'objects').reduce((sum, each) => sum + each.live, 0);
    return [
      unplaced > 0 && `Of ${counted(unplaced, 'chunk')} the place in a sequence is not known: it is learned from the order in which clients ask, `
        + 'for the latest 65,536 chunks since the start. ',
      otherValues > 0 && `${counted(otherValues, 'value')} ${otherValues === 1 ? 'has a key' : 'have keys'} of another form than LMCache’s, which tell nothing of prompts. `,
      unreadValues > 0 && `Of ${counted(unreadValues, 'value')} from before the start the key is not known until a client asks for it. `,
      foreign > 0 && `${counted(foreign, 'value')} of connectors have keys that only their engine understands. `,
    ];
  }

  function showNamespaceSelect() {
    const offered = [...namespaces.values()].filter((each) => each.blockTokens !== null)
      .map((each) => [String(each.id), visible(server.tenants.length > 1 ? `${each.name} (${each.tenant})` : each.name)]);
    if (namespace && !namespaces.has(Number(namespace))) {
      offered.push([namespace, namespace]);
    }
    const focused = document.activeElement?.id === 'namespace';
    fill(namespaceField, field('Namespace', select('namespace', [['', 'all'], ...offered], namespace ?? '',
      (chosen) => view.go({ ...TOP, namespace: chosen }))));
    if (focused) {
      document.getElementById('namespace').focus();
    }
  }

  /** The way down is in the link (`path`), as a node tells only its parent. */
  function showCrumbs(parent) {
    if (!under && !stem) {
      fill(crumbs);
      return;
    }
    const above = (parameters.path ?? '').split('.').filter((each) => /^[0-9a-fA-F]{8,128}$/.test(each));
    const model = stem && name(stem.replace('@*', ''));
    fill(crumbs, h('ol', {},
      h('li', {}, h('a', { href: link(stem ? TOP : { under: '', path: '' }) }, 'All prefixes')),
      stem && h('li', { 'aria-current': under ? null : 'page' }, under ? h('a', { href: link({ under: '', path: '' }) }, model) : model),
      above.map((key, index) => h('li', {},
        h('a', { class: 'key-short', title: key, href: link({ under: key, path: above.slice(0, index).join('.') }) }, shorten(key)))),
      under && h('li', { 'aria-current': 'page' }, keyText(under),
        parent && `: ${counted(parent.run, 'block')}${parent.depth === null ? '' : ` from depth ${count(parent.depth)}`}, then ${counted(parent.branches, 'branch', 'branches')}`,
        parent && server.mayChange && [' ', dropButton(parent)])));
  }

  function nodeColumns() {
    const into = (node) => link({
      namespace: node.namespace, under: node.key,
      path: under ? [parameters.path, under].filter(Boolean).join('.') : '',
    });
    const columns = [
      { id: 'key', label: 'Prefix', value: (node) => node.key, hint: `${stem ? 'Digest' : 'Key'} of the first ${what}`,
        cell: (node) => (node.branches > 0
          ? h('a', { href: into(node), title: `Show what follows ${node.key}` }, keyText(node.key, isNarrow))
          : keyText(node.key, isNarrow)) },
      { id: 'namespace', hidden: Boolean(stem), label: 'Namespace', value: (node) => namespaceText(namespaces.get(node.namespace), node.namespace),
        cell: (node) => name(namespaceText(namespaces.get(node.namespace), node.namespace)) },
      { id: 'tokens', label: 'Tokens', number: true, hidden: Boolean(stem) && server.cluster, hint: 'From the start of the prompt to the end of this run',
        value: tokensOf, cell: (node) => count(tokensOf(node)) },
      { id: 'run', label: 'Run', number: true, hint: `${nouns} up to the next branch`, value: (node) => node.run,
        cell: (node) => count(node.run) },
      { id: 'branches', label: 'Branches', number: true, value: (node) => node.branches, cell: (node) => count(node.branches) },
      { id: 'blocks', label: nouns, number: true, value: (node) => node.blocks, cell: (node) => count(node.blocks) },
      { id: 'bytes', label: 'Size', number: true, value: (node) => node.bytes, cell: (node) => bytes(node.bytes) },
      tierColumn('memory', 'Memory', 'memoryBlocks'),
      tierColumn('disk', 'Disk', 'diskBlocks'),
      { ...tierColumn('device', 'GPU', 'deviceBlocks'), hidden: Boolean(stem) },
      { id: 'uses', label: 'Uses', number: true, hint: 'Of its first block since that came into memory: exact up to 3, within a factor of two up to 513 and of eight above; not counted under LRU',
        value: (node) => node.uses, cell: (node) => aboutUses(node.uses) },
      { id: 'used', label: 'Last use', number: true, value: (node) => node.lastUseSecondsAgo,
        cell: (node) => lastUse(node) },
    ];
    if (server.tenants.length > 1 && !stem) {
      columns.splice(2, 0, { id: 'tenant', label: 'Tenant', value: (node) => namespaces.get(node.namespace)?.tenant ?? '',
        cell: (node) => name(namespaces.get(node.namespace)?.tenant ?? '–') });
    }
    if (server.mayChange && !stem) {
      columns.push({ id: 'drop', label: h('span', { class: 'visually-hidden' }, 'Actions'), unsorted: true, cell: dropButton });
    }
    return columns;
  }

  function tierColumn(kind, label, field) {
    return { id: kind, label, number: true, value: (node) => node[field],
      cell: (node) => h('span', { class: 'bar-cell', title: `${count(node[field])} of ${counted(node.blocks, what)}` },
        bar(ratio(node[field], node.blocks), kind), h('span', {}, percent(ratio(node[field], node.blocks)))) };
  }

  function tokensOf(node) {
    const blockTokens = stem ? chunkTokens : namespaces.get(node.namespace)?.blockTokens;
    return blockTokens && node.depth !== null ? (node.depth + node.run) * blockTokens : null;
  }

  function dropButton(node) {
    return button('Drop', () => drop(node), 'outline-danger', { 'aria-label': `Drop prefix ${node.key}` });
  }

  function groups(node) {
    return server.cluster && namespaces.get(node.namespace)?.groups;
  }

  async function drop(node) {
    const agreed = await confirm({
      title: 'Drop this prefix?',
      lines: [
        ['Prefix ', keyText(node.key), ' in namespace ',
          name(namespaceText(namespaces.get(node.namespace), node.namespace)), '.'],
        `${counted(node.blocks, 'block')}, ${bytes(node.bytes)}${node.uses === null ? '' : `, used about ${counted(node.uses, 'time')}`}. `
          + 'Includes all blocks below it.',
        'The blocks are removed from memory and disk. This cannot be undone; clients have to compute them again.',
        ...(groups(node) ? ['All servers of the cluster drop them, with their copies. A prompt is kept in groups of blocks on several '
          + 'servers: those of its later groups stay, and are found again once this part is back. The Java client drops them too.'] : []),
      ],
      action: `Drop ${counted(node.blocks, 'block')}`,
    });
    if (!agreed) {
      return;
    }
    try {
      const { dropped, cluster } = await request(`prefixes/${encodeURIComponent(node.namespace)}/${encodeURIComponent(node.key)}`, { method: 'DELETE', signal });
      toast(`Dropped ${counted(dropped, 'block')}${cluster ? ' here; the other servers follow within a second' : ''}.`);
      nodes.heading.focus(); // the row with the button goes away
      if (under === node.key) {
        view.go({ under: '', path: '' });
      } else {
        loading.now();
      }
    } catch (error) {
      if (!signal.aborted) {
        toast(`Not dropped: ${error.message}`);
      }
    }
  }

  function chunkColumns() {
    const tierOf = (kind, label, field) => ({ id: kind, label, number: true, value: (model) => model[field],
      cell: (model) => h('span', { class: 'bar-cell', title: `${count(model[field])} of ${counted(model.chunks, 'chunk')}` },
        bar(ratio(model[field], model.chunks), kind), h('span', {}, percent(ratio(model[field], model.chunks)))) });
    return [
      { id: 'model', label: 'Model', value: (model) => model.model,
        cell: (model) => h('a', { href: link({ namespace: model.namespace, chunks: model.stem }) }, name(model.model, 'name-wide')) },
      { id: 'rank', label: 'Rank', value: (model) => rankText(model.worker) },
      { id: 'tenant', label: 'Tenant', hidden: server.tenants.length < 2, value: (model) => namespaces.get(model.namespace)?.tenant ?? '' },
      { id: 'chunks', label: 'Chunks', number: true, value: (model) => model.chunks, cell: (model) => count(model.chunks) },
      { id: 'tokens', label: 'Tokens', number: true, value: (model) => model.chunks * chunkTokens, cell: (model) => count(model.chunks * chunkTokens) },
      { id: 'bytes', label: 'Size', number: true, value: (model) => model.bytes, cell: (model) => bytes(model.bytes) },
      tierOf('memory', 'Memory', 'memoryChunks'),
      tierOf('disk', 'Disk', 'diskChunks'),
      { id: 'placed', label: 'In a sequence', number: true, hint: 'Chunks whose place in a sequence is known',
        value: (model) => ratio(model.placed, model.chunks), cell: (model) => percent(ratio(model.placed, model.chunks)) },
    ];
  }

  function namespaceColumns() {
    return [
      { id: 'name', label: 'Namespace', value: (each) => each.name,
        cell: (each) => (each.blockTokens === null ? name(each.name)
          : h('a', { href: link({ ...TOP, namespace: each.id }) }, name(each.name))) },
      { id: 'tenant', label: 'Tenant', value: (each) => each.tenant, cell: (each) => name(each.tenant) },
      { id: 'tokens', label: 'Tokens per block', number: true, value: (each) => each.blockTokens, cell: (each) => count(each.blockTokens) },
      { id: 'block', label: 'Block size', number: true, value: (each) => each.blockBytes, cell: (each) => bytes(each.blockBytes) },
      { id: 'entries', label: 'Blocks or values', number: true, value: (each) => each.live, cell: (each) => count(each.live) },
      { id: 'live', label: 'Size', number: true, value: (each) => each.liveBytes, cell: (each) => bytes(each.liveBytes) },
      { id: 'clients', label: 'Used by', hint: 'Programs and versions of the clients that are connected now, over the transport, as they say',
        value: (each) => each.clients.join('; '), cell: (each) => (each.clients.length ? name(each.clients.join('; ')) : '–') },
    ];
  }
}

function lastUse(node) {
  const seconds = node.lastUseSecondsAgo;
  if (seconds === null || seconds === undefined) {
    return '–';
  }
  return h('span', { title: new Date(serverNow() - seconds * 1000).toISOString() }, seconds < 1 ? 'now' : `${age(seconds)} ago`);
}

function namespaceText(namespace, id) {
  return namespace ? namespace.name : String(id);
}

function shorten(key) {
  return `${key.slice(0, 8)}…`;
}

/** `4@0` is worker 0 of 4. */
function rankText(worker) {
  const [of, rank, ...others] = worker.split('@');
  return rank !== undefined && others.length === 0 ? `${rank} of ${of}` : worker;
}
