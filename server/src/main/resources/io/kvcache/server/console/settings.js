import { request } from './api.js';
import { field, fill, h } from './dom.js';
import { count } from './format.js';
import { table } from './table.js';

export function open(view) {
  const { parameters, toolbar, content, signal } = view;
  let settings = [];
  const filter = h('input', {
    id: 'filter', type: 'search', class: 'form-control form-control-sm', value: parameters.filter ?? '',
    placeholder: 'name, value or source', oninput: () => show(),
  });
  const changedOnly = h('input', {
    id: 'changed', type: 'checkbox', class: 'form-check-input', checked: parameters.changed === 'true', onchange: () => show(),
  });
  const shown = h('span', { class: 'source', 'aria-live': 'polite' });
  fill(toolbar, field('Filter', filter), field('Changed only', changedOnly), shown);
  const list = table({
    id: 'settings', caption: 'Settings', sort: parameters.sort ?? 'name', onSort: (sort) => view.remember({ sort }),
    rowKey: (each) => each.name, empty: 'No settings match the filter.',
    columns: [
      { id: 'name', label: 'Name', value: (each) => each.name, class: 'mono' },
      { id: 'value', label: 'Value', value: (each) => each.value, cell: (each) => each.value ?? '–', class: 'mono wrap' },
      { id: 'source', label: 'Source', value: (each) => each.source,
        cell: (each) => h('span', { class: isDefault(each) ? 'quiet' : '' }, each.source), class: 'wrap' },
    ],
  });
  fill(content, list.element);

  view.poll(() => request('settings', { signal }), {
    onData: (data) => {
      settings = data.settings ?? [];
      show();
    },
  });

  function show() {
    const text = filter.value.trim().toLowerCase();
    view.remember({ filter: filter.value, changed: changedOnly.checked ? 'true' : '' });
    const rows = settings.filter((each) => (!changedOnly.checked || !isDefault(each))
      && [each.name, each.value, each.source].some((part) => String(part ?? '').toLowerCase().includes(text)));
    list.setRows(rows);
    shown.textContent = `${count(rows.length)} of ${count(settings.length)}`;
  }
}

function isDefault(setting) {
  return setting.source === 'default';
}
