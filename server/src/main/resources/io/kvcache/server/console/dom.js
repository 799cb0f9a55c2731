// Elements are built from text nodes only: keys and names of tenants and namespaces come from clients, and are hostile.

/** Builds an element: `on…` properties are listeners, `class`, `aria-…` and `data-…` attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (name in element && !name.includes('-') && name !== 'list') {
      element[name] = value;
    } else {
      element.setAttribute(name === 'className' ? 'class' : name, value === true ? '' : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A label with its control, side by side in a toolbar. */
export function field(label, control) {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

/** A select: options are `[value, text]`. */
export function select(id, options, selected, onChange) {
  const element = h('select', { id, class: 'form-select form-select-sm', onchange: () => onChange(element.value) },
    options.map(([value, text]) => h('option', { value, selected: value === selected }, text)));
  return element;
}

/** A share between 0 and 1 as a thin bar; the text beside it carries the value for readers and screen readers. */
export function bar(share, kind = 'memory') {
  const inner = h('span', { class: `bar-fill bar-${kind}` });
  // By script, as the content security policy rejects style attributes.
  inner.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, inner);
}

/** A button in the page's small size. */
export function button(text, onclick, kind = 'outline-secondary', properties = {}) {
  return h('button', { type: 'button', class: `btn btn-sm btn-${kind}`, onclick, ...properties }, text);
}

/** What a cell is about, and smaller below it what belongs to that. */
export function twoLines(main, below) {
  return h('span', { class: 'two-lines' }, h('span', {}, main), h('small', { class: 'quiet' }, below));
}

/** Text in which characters that would not be seen, or would turn others around, show as a sign. */
export function visible(text) {
  return String(text).replaceAll(/\p{C}/gu, '\ufffd');
}

/** A name from a client: bounded in width, whole in its title, and isolated from the direction of the text around it. */
export function name(text, extraClass = '') {
  return h('bdi', { class: `name ${extraClass}`, title: visible(text) }, text === '' ? '(empty)' : visible(text));
}

/** A key, in a face where its digits line up. A narrow one is cut at its end, but copied whole. */
export function keyText(key, narrow = false) {
  return h('bdi', { class: narrow ? 'key key-narrow' : 'key', title: visible(key) }, visible(key));
}
