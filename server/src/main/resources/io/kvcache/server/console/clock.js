// Ages are taken against the server's clock: an operator's laptop may be minutes off.

let offsetMillis = 0;

/** Takes over the server's time. */
export function setServerNow(iso) {
  const at = Date.parse(iso);
  if (!Number.isNaN(at)) {
    offsetMillis = at - Date.now();
  }
}

export function serverNow() {
  return Date.now() + offsetMillis;
}
