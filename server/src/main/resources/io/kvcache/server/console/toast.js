const SHOWN_MILLIS = 8000;
let timer = 0;

/** Says what came of an action, at the page's edge and to screen readers. */
export function toast(text) {
  const line = document.getElementById('toast');
  line.textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    line.textContent = '';
  }, SHOWN_MILLIS);
}
