import { request } from './api.js';
import { bar, fill, h, keyText, name, twoLines } from './dom.js';
import { aboutUses, age, ago, byName, bytes, count, percent, ratio, sentence, words } from './format.js';
import { state } from './states.js';
import { table } from './table.js';

const POLL_SECONDS = 10;
const HOT_GROUPS = 10;

export function open(view) {
  const { server, parameters, toolbar, content, signal } = view;
  const facts = h('div', { class: 'facts' });
  const nodes = table({
    id: 'nodes', caption: 'Servers', file: 'cluster', columns: columns(), sort: parameters.sort ?? 'name',
    onSort: (sort) => view.remember({ sort }), rowKey: (node) => node.name, empty: 'No servers are known.',
  });
  const hot = table({
    id: 'hot', caption: 'Hottest groups at this server', file: 'groups', columns: hotColumns(), rowKey: (node) => node.key,
    empty: 'No blocks are stored here.',
  });
  const single = h('div');
  // A single server joins no cluster before its next start.
  const everySeconds = server.cluster === false ? 0 : POLL_SECONDS;
  fill(toolbar, everySeconds > 0 && h('span', { class: 'source' }, `every ${everySeconds} s`));
  fill(content, single);

  view.poll(load, {
    everySeconds,
    onData: ({ cluster, drain, load, prefixes, alone }) => {
      if (alone) {
        fill(content, single);
        fill(single, h('p', {}, sentence(alone)));
        return;
      }
      fill(content, facts, nodes.element, hot.element);
      fill(facts, [
        ['Cluster', name(cluster.cluster)],
        ['This server', name(cluster.node)],
        ['State', state(cluster.state)],
        cluster.notServing && ['Not serving', cluster.notServing],
        ['View', `epoch ${cluster.epoch}`],
        ['Digest', h('span', { class: 'mono' }, cluster.digest)],
        ['Blocks handed over', count(cluster.handoverBlocks)],
        ['Blocks copied', count(cluster.copiedBlocks)],
        ['Values given away', count(cluster.givenValues)],
        drain && ['Other serving servers', String(drain.othersServing)],
        ...Object.entries(drain?.handover ?? {}).filter(([, value]) => value !== false && value !== 0)
          .map(([key, value]) => [`Handover: ${words(key).toLowerCase()}`, value === true ? 'yes' : byName(key, value)]),
      ].filter(Boolean).map(([label, value]) => h('div', { class: 'fact' }, h('span', {}, label), h('b', {}, value))));
      const namespaces = new Map((prefixes?.namespaces ?? []).map((each) => [each.id, each]));
      hot.setRows((prefixes?.nodes ?? []).map((node) => ({ ...node, of: namespaces.get(node.namespace) })));
      const loads = new Map((load?.servers ?? []).map((each) => [each.name, each]));
      nodes.setRows((cluster.nodes ?? []).map((node) => ({ ...node, here: node.name === cluster.node, load: loads.get(node.name) })));
    },
  });

  /** A single server is a state to show, no error. */
  async function load() {
    try {
      const asked = everySeconds > 0 ? request('cluster/load', { signal }).catch(() => null) : null;
      const hottest = everySeconds > 0
        ? request('prefixes', { parameters: { limit: HOT_GROUPS }, signal }).catch(() => null) : null;
      const cluster = await request('cluster', { signal });
      const drain = cluster.state === 'serving' && !cluster.notServing
        ? null : await request('cluster/drain', { signal }).catch(() => null);
      return { cluster, drain, load: await asked, prefixes: await hottest };
    } catch (error) {
      if (error.isType?.('no-cluster')) {
        return { alone: error.message };
      }
      throw error;
    }
  }
}

function columns() {
  return [
    { id: 'name', label: 'Server', value: (node) => node.name,
      cell: (node) => twoLines(h('span', {}, name(node.name), node.here && h('span', { class: 'quiet' }, ' (this one)')), name(node.address ?? '–', 'mono')) },
    { id: 'state', label: 'State', value: (node) => node.state,
      cell: (node) => twoLines(node.load?.reachable === false ? state('no answer') : state(node.state), [`${node.version}, started `, ago(node.incarnation)]) },
    { id: 'agrees', label: 'Agrees', hint: 'Same drops and same settings as this server', class: 'wrap',
      value: (node) => differences(node) },
    { id: 'share', label: 'Share', number: true, wide: true, hint: 'Average share of block groups owned', value: (node) => node.sharePercent,
      cell: (node) => twoLines(h('span', { class: 'bar-cell' }, bar((node.sharePercent ?? 0) / 100),
        h('span', {}, percent(node.sharePercent === undefined ? null : node.sharePercent / 100))), `weight ${node.weight}`) },
    { id: 'held', label: 'In memory', number: true, wide: true, value: (node) => node.load?.heldBytes ?? null, hint: 'Held in memory, and that for its weight beside the mean of all servers',
      cell: (node) => (node.load?.reachable === false ? 'no answer' : twoLines(h('span', { class: 'bar-cell' },
        bar(ratio(node.load?.heldBytes, node.load?.capacityBytes), 'memory'), h('span', {}, bytes(node.load?.heldBytes))),
      `${percent(node.load?.heldOverMean)} of the mean`)) },
    { id: 'stored', label: 'Stored', number: true, hint: 'Blocks and values since its start, and those that were evicted', value: (node) => node.load?.stored ?? null,
      cell: (node) => twoLines(count(node.load?.stored), `${count(node.load?.evicted)} evicted`) },
    { id: 'zone', label: 'Zone and host', value: (node) => node.zone,
      cell: (node) => (node.zone ? twoLines(name(node.zone), name(node.host ?? '')) : node.host ? name(node.host) : '–') },
    { id: 'valueAddress', label: 'Redis Cluster', hint: 'Address for clients of Redis Cluster', value: (node) => node.valueAddress,
      cell: (node) => (node.valueAddress ? name(node.valueAddress, 'mono') : '–') },
    ...['address', 'weight', 'host', 'version', 'incarnation'].map((field) => ({ id: field, label: words(field), hidden: true, value: (node) => node[field] })),
    { id: 'mean', label: 'Of the mean', hidden: true, value: (node) => node.load?.heldOverMean ?? null },
    { id: 'evicted', label: 'Evicted', hidden: true, value: (node) => node.load?.evicted ?? null },
  ];
}

/** Blocks of a cluster lie in groups, each of which is a tree of its own. */
function hotColumns() {
  return [
    { id: 'key', label: 'Group', value: (node) => node.key, cell: (node) => keyText(node.key) },
    { id: 'namespace', label: 'Namespace', value: (node) => node.of?.name ?? '', cell: (node) => name(node.of?.name ?? '–') },
    { id: 'tenant', label: 'Tenant', value: (node) => node.of?.tenant ?? '', cell: (node) => name(node.of?.tenant ?? '–') },
    { id: 'blocks', label: 'Blocks', number: true, value: (node) => node.blocks, cell: (node) => count(node.blocks) },
    { id: 'bytes', label: 'Size', number: true, value: (node) => node.bytes, cell: (node) => bytes(node.bytes) },
    { id: 'uses', label: 'Uses', number: true, value: (node) => node.uses, cell: (node) => aboutUses(node.uses) },
    { id: 'used', label: 'Last use', number: true, value: (node) => node.lastUseSecondsAgo,
      cell: (node) => (node.lastUseSecondsAgo === null || node.lastUseSecondsAgo === undefined ? '–' : `${age(node.lastUseSecondsAgo)} ago`) },
  ];
}

function differences(node) {
  const found = [
    node.dropsAgree === false ? 'drops differ' : '',
    node.configDiffers?.length > 0 ? `settings differ: ${node.configDiffers.join(', ')}` : '',
  ].filter(Boolean);
  return found.length > 0 ? found.join('; ') : node.configDiffers === null ? 'settings not known yet' : 'yes';
}
