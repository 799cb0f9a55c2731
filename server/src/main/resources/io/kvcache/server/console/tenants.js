import { request } from './api.js';
import { bar, h, name } from './dom.js';
import { bytes, count, percent, ratio } from './format.js';
import { table } from './table.js';

const POLL_SECONDS = 10;

/** The tenants with what they use of their quotas, those nearest to theirs first. For administrators. */
export function tenantsTable(view) {
  const tenants = table({
    id: 'tenants', caption: 'Tenants', columns: columns(view), sort: '-share', rowKey: (each) => each.name,
    empty: 'There are no tenants.',
  });
  view.poll(() => request('stats', { signal: view.signal }), {
    everySeconds: POLL_SECONDS, onData: (stats) => tenants.setRows(tenantRows(stats)),
  });
  return tenants.element;
}

function tenantRows(stats) {
  return Object.entries(stats.tenants ?? {}).map(([tenant, values]) => {
    const namespaces = (stats.namespaces ?? []).filter((each) => each.tenant === tenant);
    const sum = (field) => namespaces.reduce((total, each) => total + (each[field] ?? 0), 0);
    const { hits, missed } = values.reads ?? { hits: 0, missed: {} };
    const misses = Object.values(missed).reduce((total, each) => total + each, 0);
    return {
      name: tenant,
      keys: values.keys,
      used: values.usage?.usedBytes,
      quota: values.usage?.quotaBytes || null,
      blockBytes: sum('liveBytes'),
      hitRatio: ratio(hits + sum('blocksFound'), hits + misses + sum('blocksAsked')),
      beyondQuota: (values.usage?.evicted ?? 0) + (stats.blocks?.[tenant]?.evicted ?? 0),
    };
  });
}

function columns(view) {
  const share = (each) => ratio(each.used, each.quota);
  return [
    { id: 'name', label: 'Tenant', value: (each) => each.name,
      cell: (each) => h('a', { href: view.link({ tenant: each.name }) }, name(each.name)) },
    { id: 'keys', label: 'Keys', number: true, hint: 'Of values in memory; those on disk from before the start count once they are asked for', value: (each) => each.keys, cell: (each) => count(each.keys) },
    { id: 'share', label: 'Used', number: true, wide: true, hint: 'Bytes that count for the quota', value: share,
      cell: (each) => (share(each) === null ? bytes(each.used)
        : h('span', { class: 'bar-cell' }, bar(share(each), share(each) > 0.9 ? 'miss' : 'memory'),
          h('span', {}, `${percent(share(each))} of ${bytes(each.quota)}`))) },
    { id: 'blocks', label: 'Blocks and values', number: true, wide: true, hint: 'Bytes in the store, in memory or on disk',
      value: (each) => each.blockBytes, cell: (each) => bytes(each.blockBytes) },
    { id: 'hits', label: 'Hit ratio', number: true, hint: 'Since the start', value: (each) => each.hitRatio, cell: (each) => percent(each.hitRatio) },
    { id: 'beyond', label: 'Evicted by quota', number: true, value: (each) => each.beyondQuota, cell: (each) => count(each.beyondQuota) },
  ];
}
