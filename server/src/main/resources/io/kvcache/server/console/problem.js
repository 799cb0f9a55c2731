import { fill, h } from './dom.js';
import { sentence } from './format.js';

/** Shows why the server refused. */
export function showProblem(element, error) {
  const detail = sentence(error.message ?? String(error));
  const [title, more] = error.status === 401
    ? ['Sign-in required.', 'Reload the page to enter a name and password.']
    : error.status === 403 && error.isType?.('administrators-only')
      ? ['This page is for administrators.', '']
      : ['', ''];
  fill(element, h('div', { class: 'problem', role: 'alert' }, title && h('b', {}, title, ' '), detail, more && ` ${more}`));
}
