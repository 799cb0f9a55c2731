// What prefill and memory cost, as the operator has said: kept in this browser, and the same on all pages.
import { h } from './dom.js';
import { isKnown } from './format.js';

const STORAGE_KEY = 'kvcache.prices';
const HINTS = {
  prefill: 'Tokens that a GPU computes in a second. Without one, the setting prefill.tokens_per_second is taken',
  gpuPrice: 'What a GPU costs an hour',
  memoryPrice: 'What a GiB of memory costs a month',
};

const texts = read();

function read() {
  try {
    const value = JSON.parse(localStorage.getItem(STORAGE_KEY));
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {}; // storage is blocked, or holds something else
  }
}

function number(name) {
  const value = Number.parseFloat(texts[name]);
  return Number.isFinite(value) && value > 0 ? value : null;
}

/** The prices, null where none is known. `prefill` is the server's setting unless another speed was entered. */
export function prices(server) {
  return {
    prefill: number('prefill') ?? (isKnown(server.prefillTokensPerSecond) ? server.prefillTokensPerSecond : null),
    gpuPrice: number('gpuPrice'),
    memoryPrice: number('memoryPrice'),
  };
}

/** A field for one of them. */
export function priceInput(server, name, label, onChange) {
  const input = h('input', {
    id: name, type: 'number', min: '0', step: 'any', inputMode: 'decimal', class: 'form-control form-control-sm',
    value: texts[name] ?? '', title: HINTS[name],
    placeholder: name === 'prefill' && isKnown(server.prefillTokensPerSecond) ? String(server.prefillTokensPerSecond) : '',
    oninput: () => {
      texts[name] = input.value;
      try {
        localStorage.setItem(STORAGE_KEY, JSON.stringify(texts));
      } catch {
        // They then last as long as the page.
      }
      onChange();
    },
  });
  return h('label', { class: 'field' }, h('span', {}, label), input);
}
