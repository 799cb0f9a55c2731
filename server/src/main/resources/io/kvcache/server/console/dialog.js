import { button, h } from './dom.js';

/**
 * Asks before something that cannot be undone; resolves to whether the user agreed.
 *
 * The browser's own modal dialog keeps the focus inside, closes on Escape and gives the focus back.
 */
export function confirm({ title, lines, action, kind = 'danger' }) {
  return new Promise((resolve) => {
    let agreed = false;
    const dialog = h('dialog', { class: 'confirm', 'aria-labelledby': 'confirm-title', 'aria-describedby': 'confirm-text' },
      h('h2', { id: 'confirm-title' }, title),
      h('div', { id: 'confirm-text' }, lines.map((line) => h('p', {}, line))),
      h('div', { class: 'confirm-actions' },
        button('Cancel', () => dialog.close(), 'secondary', { autofocus: true }),
        button(action, () => {
          agreed = true;
          dialog.close();
        }, kind)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(agreed);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
