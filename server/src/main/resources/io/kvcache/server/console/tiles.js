import { fill, h } from './dom.js';

/** A number with its name, and a line below that puts it in proportion. */
export function tile(label) {
  const value = h('span', { class: 'tile-value' }, '–');
  const note = h('span', { class: 'tile-note' });
  return {
    element: h('div', { class: 'tile' }, h('span', { class: 'tile-label' }, label), value, note),
    show(text, ...notes) {
      value.textContent = text;
      fill(note, notes);
    },
  };
}
