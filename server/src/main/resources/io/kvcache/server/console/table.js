import { csv, download } from './csv.js';
import { button, fill, h } from './dom.js';
import { count } from './format.js';

/** Where rows are cards, of which each takes as much room as a dozen rows of a table. */
const PHONE = window.matchMedia('(max-width: 640px)');
const FIRST_CARDS = 20;

/**
 * A table that sorts by a click on a column's header and exports what it shows as CSV.
 *
 * A column has `id`, `label`, `value(row)` for sorting and CSV, perhaps `cell(row)` for what is shown, `number` for right
 * alignment, `unsorted` for a column of buttons, which CSV leaves out too, `hidden` for one that CSV alone has, as another
 * one shows it too, `wide` for a number that takes a line of a card for itself, and `hint` as the header's title. On a phone each row is a card.
 *
 * @param rowKey names a row over updates, to keep the keyboard's focus in it
 * @param sort column to begin with; `-` in front for the largest first
 * @param first rows that are shown before one asks for all
 * @param onSort is told the new order, to keep it in the link
 */
export function table({ id, caption, columns: allColumns, rowKey, sort = '', onSort, empty, file, actions = [], cards = true, first = Infinity }) {
  const columns = allColumns.filter((column) => !column.hidden);
  let rows = [];
  let order = parseOrder(sort, columns);
  let showsAll = false;
  const headers = new Map();
  const head = h('tr', { role: 'row' }, columns.map((column) => headerCell(column)));
  const body = h('tbody', { role: 'rowgroup' });
  const sorter = cards && sortSelect();
  const captionText = h('span', {}, caption);
  const exportButton = button('CSV', exportCsv, 'outline-secondary',
    { 'aria-label': `Export ${caption} as CSV`, title: 'Export the rows as CSV' });
  const heading = h('h2', { class: 'section-title', id: `${id}-title`, tabIndex: -1 }, captionText);
  const scroller = h('div',
    { class: 'table-scroll', role: 'region', 'aria-labelledby': `${id}-title`, tabIndex: 0 },
    // The roles stay when styles show rows as cards.
    h('table', { class: 'table table-sm table-hover', id, role: 'table', 'aria-labelledby': `${id}-title` },
      h('thead', { role: 'rowgroup' }, head), body));
  const element = h('section', { class: cards ? 'table-section has-cards' : 'table-section' },
    h('div', { class: 'section-head' }, heading, h('div', { class: 'section-actions' }, sorter, actions, exportButton)), scroller);

  function headerCell(column) {
    const right = column.number ? 'num' : '';
    if (column.unsorted) {
      return h('th', { scope: 'col', role: 'columnheader', class: right }, column.label);
    }
    const cell = h('th', { scope: 'col', role: 'columnheader', class: right },
      h('button', { type: 'button', class: 'sort', title: column.hint, onclick: () => sortBy(column) },
        column.label, h('span', { class: 'sort-mark', 'aria-hidden': 'true' })));
    headers.set(column.id, cell);
    return cell;
  }

  /** For phones, where there is no head to click at. */
  function sortSelect() {
    const offered = columns.filter((column) => !column.unsorted);
    return h('select', {
      class: 'form-select form-select-sm phone-sort', 'aria-label': `Sort ${caption}`,
      onchange: (event) => sortBy(offered.find((column) => column.id === event.target.value) ?? offered[0]),
    }, h('option', { value: '' }, 'Sort by…'), offered.map((column) => h('option', { value: column.id }, column.label)));
  }

  function sortBy(column) {
    // The second click turns the order round; numbers begin with the largest, as those are looked for.
    const descending = order?.column === column ? !order.descending : Boolean(column.number);
    order = { column, descending };
    render();
    onSort?.(`${descending ? '-' : ''}${column.id}`);
  }

  function sorted() {
    if (!order) {
      return rows;
    }
    const { column, descending } = order;
    const sign = descending ? -1 : 1;
    return rows
      .map((row, index) => ({ row, index, value: column.value(row) }))
      .sort((a, b) => compare(a.value, b.value, sign) || a.index - b.index)
      .map((each) => each.row);
  }

  function render() {
    for (const [columnId, cell] of headers) {
      if (order?.column.id === columnId) {
        cell.setAttribute('aria-sort', order.descending ? 'descending' : 'ascending');
      } else {
        cell.removeAttribute('aria-sort');
      }
    }
    exportButton.disabled = rows.length === 0;
    const focus = focusedCell(body);
    fill(body, rows.length === 0
      ? h('tr', { class: 'empty', role: 'row' }, h('td', { role: 'cell', colSpan: columns.length }, empty))
      : shownRows());
    restoreFocus(body, focus);
  }

  function shownRows() {
    const all = sorted();
    const most = showsAll ? Infinity : cards && PHONE.matches ? Math.min(first, FIRST_CARDS) : first;
    return all.length <= most ? all.map(bodyRow)
      : [...all.slice(0, most).map(bodyRow), h('tr', { class: 'more', role: 'row' }, h('td', { role: 'cell', colSpan: columns.length },
        button(`Show all ${count(all.length)}`, () => {
          showsAll = true;
          render();
        })))];
  }

  function bodyRow(row) {
    return h('tr', { role: 'row', 'data-key': rowKey ? rowKey(row) : null }, columns.map((column) => {
      const shown = (column.cell ? column.cell(row) : column.value(row)) ?? '–';
      const isEmpty = shown === '' || shown === '–';
      return h('td', {
        role: 'cell', 'data-label': typeof column.label === 'string' ? column.label : null,
        class: `${column.number ? 'num' : column.class ?? ''}${column.wide ? ' is-wide' : ''}${isEmpty ? ' is-empty' : ''}`,
      }, shown);
    }));
  }

  function exportCsv() {
    const exported = allColumns.filter((column) => !column.unsorted);
    download(`${file ?? id}.csv`,
      csv(exported.map((column) => column.label), sorted().map((row) => exported.map((column) => column.value(row)))));
  }

  render();
  return {
    element,
    heading,
    setRows(newRows) {
      rows = newRows;
      // A new body would take away the text that the user is selecting to copy it.
      if (!isSelecting(body)) {
        render();
      }
    },
    setCaption(text) {
      captionText.textContent = text;
    },
  };
}

function parseOrder(sort, columns) {
  const descending = sort.startsWith('-');
  const column = columns.find((each) => each.id === sort.replace(/^-/, '') && !each.unsorted);
  return column ? { column, descending } : null;
}

/** Unknown values come last in both directions. */
function compare(a, b, sign) {
  const aUnknown = a === null || a === undefined || Number.isNaN(a);
  const bUnknown = b === null || b === undefined || Number.isNaN(b);
  if (aUnknown || bUnknown) {
    return Number(aUnknown) - Number(bUnknown);
  }
  return sign * (typeof a === 'number' && typeof b === 'number'
    ? a - b
    : String(a).localeCompare(String(b), 'en', { numeric: true }));
}

function isSelecting(body) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && body.contains(selection.anchorNode);
}

function focusedCell(body) {
  const focused = document.activeElement;
  const row = body.contains(focused) ? focused.closest('tr') : null;
  return row?.dataset.key ? { key: row.dataset.key, index: focusables(row).indexOf(focused) } : null;
}

function restoreFocus(body, focus) {
  if (focus) {
    const row = [...body.rows].find((each) => each.dataset.key === focus.key);
    (row ? focusables(row)[focus.index] : null)?.focus();
  }
}

function focusables(row) {
  return [...row.querySelectorAll('a[href], button')];
}
