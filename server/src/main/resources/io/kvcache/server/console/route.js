// The place in the hash: `#/page?name=value`. It holds all of a view, so that a link shows another person the same.

/** The page and its parameters. */
export function current() {
  const text = location.hash.replace(/^#\/?/, '');
  const at = text.indexOf('?');
  return {
    page: decodeSafely(at < 0 ? text : text.slice(0, at)) || 'overview',
    parameters: Object.fromEntries(new URLSearchParams(at < 0 ? '' : text.slice(at + 1))),
  };
}

function decodeSafely(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a link that was cut in the middle of an escape
  }
}

/** The hash of a page; parameters without a value are left out. */
export function hash(page, parameters = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ''));
  const text = query.toString();
  return `#/${encodeURIComponent(page)}${text ? `?${text}` : ''}`;
}
