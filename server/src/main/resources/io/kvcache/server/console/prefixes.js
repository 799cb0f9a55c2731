import { request } from './api.js';
import { tenantSelect } from './controls.js';
import { confirm } from './dialog.js';
import { bar, button, field, fill, h, keyText, name, select, visible } from './dom.js';
import { age, ago, bytes, count, counted, percent, ratio } from './format.js';
import { serverNow } from './clock.js';
import { table } from './table.js';
import { toast } from './toast.js';

const FIRST_LIMIT = 50;
const MAX_LIMIT = 1000;

export function open(view) {
  const { server, parameters, toolbar, content, signal, link } = view;
  const { tenant, namespace, under } = parameters;
  const limit = Math.min(Number(parameters.limit) || FIRST_LIMIT, MAX_LIMIT);
  let namespaces = new Map();

  const namespaceField = h('span');
  showNamespaceSelect();
  const refresh = button('Refresh', () => loading.now(), 'outline-secondary', { id: 'refresh' });
  const scanned = h('span', { class: 'source' });
  fill(toolbar, tenantSelect(view, { namespace: '', under: '', path: '' }), namespaceField, refresh, scanned);

  const crumbs = h('nav', { class: 'crumbs', 'aria-label': 'Prefix' });
  const totals = h('p', { class: 'note' });
  const more = h('p', { class: 'note' });
  const nodes = table({
    id: 'nodes', caption: under ? 'Continuations' : 'Prefixes', file: 'prefixes',
    sort: parameters.sort, onSort: (sort) => view.remember({ sort }),
    rowKey: (node) => `${node.namespace}/${node.key}`,
    empty: under ? 'No blocks are stored below this prefix.' : 'No blocks are stored here.',
    columns: nodeColumns(),
  });
  const models = table({
    id: 'namespaces', caption: 'Namespaces', columns: namespaceColumns(), rowKey: (each) => each.id,
    empty: 'No namespaces are registered yet.',
  });
  fill(content, crumbs, totals, nodes.element, more, !under && models.element);

  const loading = view.poll(
    () => request('prefixes', { parameters: { limit, tenant, namespace, under }, signal }), { onData: showData });

  function showData(data) {
    namespaces = new Map((data.namespaces ?? []).map((each) => [each.id, each]));
    fill(scanned, 'scanned ', ago(data.at), ` in ${count(data.scanMillis)} ms`);
    fill(totals, `${counted(data.blocks, 'block')}, ${bytes(data.bytes)}. The counts of a prefix include all blocks below it. `
      + 'A block can be in memory and on disk at the same time.');
    showNamespaceSelect();
    showCrumbs(data.parent);
    nodes.setRows(data.nodes ?? []);
    models.setRows([...namespaces.values()]);
    fill(more, data.more > 0 && [
      `Not shown: ${counted(data.more, 'prefix', 'prefixes')} used less recently. `,
      limit < MAX_LIMIT && h('a', { href: link({ limit: Math.min(limit * 4, MAX_LIMIT) }) }, 'Show more')]);
  }

  function showNamespaceSelect() {
    const offered = [...namespaces.values()].filter((each) => each.blockTokens !== null)
      .map((each) => [String(each.id), visible(server.tenants.length > 1 ? `${each.name} (${each.tenant})` : each.name)]);
    if (namespace && !namespaces.has(Number(namespace))) {
      offered.push([namespace, namespace]);
    }
    const focused = document.activeElement?.id === 'namespace';
    fill(namespaceField, field('Namespace', select('namespace', [['', 'all'], ...offered], namespace ?? '',
      (chosen) => view.go({ namespace: chosen, under: '', path: '' }))));
    if (focused) {
      document.getElementById('namespace').focus();
    }
  }

  /** The way down is in the link (`path`), as a node tells only its parent. */
  function showCrumbs(parent) {
    if (!under) {
      fill(crumbs);
      return;
    }
    const above = (parameters.path ?? '').split('.').filter((each) => /^[0-9a-f]{32}$/.test(each));
    fill(crumbs, h('ol', {},
      h('li', {}, h('a', { href: link({ under: '', path: '' }) }, 'All prefixes')),
      above.map((key, index) => h('li', {},
        h('a', { class: 'key-short', title: key, href: link({ under: key, path: above.slice(0, index).join('.') }) }, shorten(key)))),
      h('li', { 'aria-current': 'page' }, keyText(under),
        parent && `: ${counted(parent.run, 'block')} from depth ${count(parent.depth)}, then ${counted(parent.branches, 'branch', 'branches')}`,
        parent && server.mayChange && [' ', dropButton(parent)])));
  }

  function nodeColumns() {
    const into = (node) => link({
      namespace: node.namespace, under: node.key,
      path: under ? [parameters.path, under].filter(Boolean).join('.') : '',
    });
    const columns = [
      { id: 'key', label: 'Prefix', value: (node) => node.key, hint: 'Key of the first block',
        cell: (node) => (node.branches > 0
          ? h('a', { href: into(node), title: `Show what follows ${node.key}` }, keyText(node.key))
          : keyText(node.key)) },
      { id: 'namespace', label: 'Namespace', value: (node) => namespaceText(namespaces.get(node.namespace), node.namespace),
        cell: (node) => name(namespaceText(namespaces.get(node.namespace), node.namespace)) },
      { id: 'tokens', label: 'Tokens', number: true, hint: 'From the start of the prompt to the end of this run',
        value: tokensOf, cell: (node) => count(tokensOf(node)) },
      { id: 'run', label: 'Run', number: true, hint: 'Blocks up to the next branch', value: (node) => node.run,
        cell: (node) => count(node.run) },
      { id: 'branches', label: 'Branches', number: true, value: (node) => node.branches, cell: (node) => count(node.branches) },
      { id: 'blocks', label: 'Blocks', number: true, value: (node) => node.blocks, cell: (node) => count(node.blocks) },
      { id: 'bytes', label: 'Size', number: true, value: (node) => node.bytes, cell: (node) => bytes(node.bytes) },
      tierColumn('memory', 'Memory', 'memoryBlocks'),
      tierColumn('disk', 'Disk', 'diskBlocks'),
      { id: 'uses', label: 'Uses', number: true, hint: 'Of its first block since that came into memory: exact up to 3, above that within a factor of two; not counted under LRU',
        value: (node) => node.uses, cell: (node) => (node.uses > 3 ? `about ${count(node.uses)}` : count(node.uses)) },
      { id: 'used', label: 'Last use', number: true, value: (node) => node.lastUseSecondsAgo,
        cell: (node) => lastUse(node) },
    ];
    if (server.tenants.length > 1) {
      columns.splice(2, 0, { id: 'tenant', label: 'Tenant', value: (node) => namespaces.get(node.namespace)?.tenant ?? '',
        cell: (node) => name(namespaces.get(node.namespace)?.tenant ?? '–') });
    }
    if (server.mayChange) {
      columns.push({ id: 'drop', label: h('span', { class: 'visually-hidden' }, 'Actions'), unsorted: true, cell: dropButton });
    }
    return columns;
  }

  function tierColumn(kind, label, field) {
    return { id: kind, label, number: true, value: (node) => node[field],
      cell: (node) => h('span', { class: 'bar-cell', title: `${count(node[field])} of ${count(node.blocks)} blocks` },
        bar(ratio(node[field], node.blocks), kind), h('span', {}, percent(ratio(node[field], node.blocks)))) };
  }

  function tokensOf(node) {
    const blockTokens = namespaces.get(node.namespace)?.blockTokens;
    return blockTokens ? (node.depth + node.run) * blockTokens : null;
  }

  function dropButton(node) {
    return button('Drop', () => drop(node), 'outline-danger', { 'aria-label': `Drop prefix ${node.key}` });
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
      ],
      action: `Drop ${counted(node.blocks, 'block')}`,
    });
    if (!agreed) {
      return;
    }
    try {
      const { dropped } = await request(`prefixes/${encodeURIComponent(node.namespace)}/${encodeURIComponent(node.key)}`, { method: 'DELETE', signal });
      toast(`Dropped ${counted(dropped, 'block')}.`);
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

  function namespaceColumns() {
    return [
      { id: 'name', label: 'Namespace', value: (each) => each.name,
        cell: (each) => (each.blockTokens === null ? name(each.name)
          : h('a', { href: link({ namespace: each.id, under: '', path: '' }) }, name(each.name))) },
      { id: 'tenant', label: 'Tenant', value: (each) => each.tenant, cell: (each) => name(each.tenant) },
      { id: 'tokens', label: 'Tokens per block', number: true, value: (each) => each.blockTokens, cell: (each) => count(each.blockTokens) },
      { id: 'block', label: 'Block size', number: true, value: (each) => each.blockBytes, cell: (each) => bytes(each.blockBytes) },
      { id: 'entries', label: 'Blocks or values', number: true, value: (each) => each.live, cell: (each) => count(each.live) },
      { id: 'live', label: 'Size', number: true, value: (each) => each.liveBytes, cell: (each) => bytes(each.liveBytes) },
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
