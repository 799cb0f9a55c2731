import { h } from './dom.js';

const KINDS = {
  serving: 'good', ready: 'good',
  opening: 'busy', joining: 'busy', draining: 'busy', read_only: 'busy',
  failed: 'bad', refused: 'bad', stopped: 'bad', 'no answer': 'bad',
};

/** A state in words, with a mark whose shape tells as much as its colour. */
export function state(text) {
  const key = String(text ?? '').toLowerCase();
  return h('span', { class: `state state-${KINDS[key] ?? 'other'}` }, key === '' ? '–' : key.replaceAll('_', ' '));
}
