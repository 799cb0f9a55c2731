import { request } from './api.js';
import { bar, fill, h } from './dom.js';
import { bytes, compact, count, decimal, duration, isKnown, percent, ratio } from './format.js';
import { table } from './table.js';

const POLL_SECONDS = 60;
const GIB = 2 ** 30;
const HOURS_A_MONTH = 730;
const STORAGE_KEY = 'kvcache.prices';

export function open(view) {
  const { server, toolbar, content, signal } = view;
  const prices = readPrices();
  let data = null;

  const inputs = h('div', { class: 'inputs' },
    numberInput('memoryPrice', 'Memory price per GiB-month'),
    numberInput('gpuPrice', 'GPU price per hour'),
    numberInput('prefill', 'Prefill speed (tokens/s)'));
  const sizes = table({
    id: 'sizes', caption: 'Memory sizes', file: 'what-if', columns: sizeColumns(), rowKey: (row) => row.factor,
    empty: 'No estimate yet: no requests were sampled.',
  });
  const policy = h('div', { class: 'facts' });
  const note = h('p', { class: 'note' });
  fill(toolbar);
  fill(content, inputs, sizes.element, note, h('h2', { class: 'section-title' }, 'Eviction policy'), policy);

  view.poll(() => request('whatif', { signal }), {
    everySeconds: POLL_SECONDS,
    onData: (received) => {
      data = received;
      document.getElementById('prefill').placeholder = isKnown(data.prefillTokensPerSecond)
        ? String(data.prefillTokensPerSecond) : '';
      show();
    },
  });

  function numberInput(id, label) {
    const input = h('input', {
      id, type: 'number', min: '0', step: 'any', inputMode: 'decimal', class: 'form-control form-control-sm',
      value: prices[id] ?? '',
      oninput: () => {
        prices[id] = input.value;
        writePrices(prices);
        show();
      },
    });
    return h('label', { class: 'field' }, h('span', {}, label), input);
  }

  function show() {
    if (data === null) {
      return;
    }
    const rows = data.uses > 0 ? compute(data, prices) : [];
    sizes.setRows(rows);
    fill(note, `Estimate for LRU eviction from ${count(data.uses)} uses (sample rate ${percent(data.sampledShare)}). `,
      data.dropped > 0 && `${count(data.dropped)} uses were dropped from the sample. `,
      isKnown(data.tokensSavedPerSecond) && `Saved now: ${compact(data.tokensSavedPerSecond)} tokens/s, the mean of the last hour or since the start; `
        + 'other sizes save in proportion to their hit ratios. ',
      'A month has 730 hours. Prices are stored in this browser only.');
    showPolicy();
  }

  function showPolicy() {
    if (!data.policy) {
      fill(policy, h('p', { class: 'note' }, server.policy === 'lru'
        ? 'Memory uses LRU eviction, so there is nothing to compare.'
        : `Nothing to compare yet: too few uses were sampled. Evictions are ordered by ${server.followsLru ? 'LRU' : server.policy}.`));
      return;
    }
    const { name, hits, lruHits, sampledUses, switches, followsLru } = data.policy;
    fill(policy, fact(`Hit ratio with ${name}`, percent(ratio(hits, sampledUses)), bar(ratio(hits, sampledUses))),
      fact('Hit ratio with LRU', percent(ratio(lruHits, sampledUses)), bar(ratio(lruHits, sampledUses), 'disk')),
      fact('Sampled uses', count(sampledUses)),
      fact('Active now', followsLru ? `LRU (hits more often than ${name})` : name),
      fact('Switches since the start', count(switches)));
  }
}

function fact(label, ...values) {
  return h('div', { class: 'fact' }, h('span', {}, label), h('b', {}, values));
}

/** What each size would save and cost. */
function compute(data, prices) {
  const memoryPrice = positive(prices.memoryPrice);
  const gpuPrice = positive(prices.gpuPrice);
  const speed = positive(prices.prefill) ?? data.prefillTokensPerSecond;
  const now = (data.lru ?? []).find((size) => size.factor === 1);
  const rows = (data.lru ?? []).map((size) => {
    const tokensSaved = isKnown(data.tokensSavedPerSecond) && now?.hitRatio > 0
      ? data.tokensSavedPerSecond * size.hitRatio / now.hitRatio : null;
    const prefillSeconds = tokensSaved !== null && speed > 0 ? tokensSaved * 3600 / speed : null;
    const memoryCost = memoryPrice === null ? null : size.bytes / GIB * memoryPrice;
    const gpuSaved = gpuPrice === null || prefillSeconds === null ? null : prefillSeconds / 3600 * gpuPrice * HOURS_A_MONTH;
    return { ...size, tokensSaved, prefillSeconds, memoryCost, gpuSaved };
  });
  const today = rows.find((row) => row.factor === 1);
  for (const row of rows) {
    row.extraCost = today && row.memoryCost !== null ? row.memoryCost - today.memoryCost : null;
    row.balance = row.extraCost !== null && row.gpuSaved !== null
      ? row.gpuSaved - today.gpuSaved - row.extraCost : null;
  }
  return rows;
}

function sizeColumns() {
  return [
    { id: 'factor', label: 'Size', number: true, value: (row) => row.factor,
      cell: (row) => (row.factor === 1 ? h('b', {}, 'today') : `${decimal(row.factor)} ×`) },
    { id: 'bytes', label: 'Memory', number: true, value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    { id: 'hitRatio', label: 'Hit ratio', number: true, value: (row) => row.hitRatio,
      cell: (row) => h('span', { class: 'bar-cell' }, bar(row.hitRatio), h('span', {}, percent(row.hitRatio))) },
    { id: 'tokensSaved', label: 'Tokens saved/s', number: true, value: (row) => row.tokensSaved,
      cell: (row) => compact(row.tokensSaved) },
    { id: 'prefillSeconds', label: 'Prefill time saved/h', number: true, value: (row) => row.prefillSeconds,
      cell: (row) => duration(row.prefillSeconds) },
    { id: 'memoryCost', label: 'Memory cost/month', number: true, value: (row) => row.memoryCost, cell: (row) => money(row.memoryCost) },
    { id: 'extraCost', label: 'Cost vs. today', number: true, hint: 'Memory cost per month minus the memory cost today',
      value: (row) => row.extraCost, cell: (row) => signed(row.extraCost) },
    { id: 'gpuSaved', label: 'GPU cost saved/month', number: true, value: (row) => row.gpuSaved, cell: (row) => money(row.gpuSaved) },
    { id: 'balance', label: 'Net gain/month', number: true, hint: 'Additional GPU cost saved minus the additional memory cost',
      value: (row) => row.balance, cell: (row) => signed(row.balance) },
  ];
}

function money(value) {
  return isKnown(value) ? value.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : '–';
}

function signed(value) {
  return isKnown(value) ? `${value > 0 ? '+' : ''}${money(value)}` : '–';
}

function positive(text) {
  const value = Number.parseFloat(text);
  return Number.isFinite(value) && value >= 0 ? value : null;
}

function readPrices() {
  try {
    const value = JSON.parse(localStorage.getItem(STORAGE_KEY));
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {}; // storage is blocked, or holds something else
  }
}

function writePrices(prices) {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(prices));
  } catch {
    // The prices then last as long as the page.
  }
}
