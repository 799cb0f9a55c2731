// The first sentence of the overview: what the cache has found, what that saves, and what other sizes would find.
import { request } from './api.js';
import { fill, h } from './dom.js';
import { compact, decimal, duration, isKnown, money, percent, ratio } from './format.js';
import { priceInput, prices } from './prices.js';
import { found, lookups } from './series.js';

const POLL_SECONDS = 60;

/** @param withSizes whether this viewer may see the estimate, which is about all tenants */
export function summary(view, minutes, withSizes) {
  const { server, signal } = view;
  const text = h('p', { class: 'summary' });
  const values = h('details', { class: 'assumptions' }, h('summary', {}, 'Prefill speed and price'),
    h('div', { class: 'inputs' }, priceInput(server, 'prefill', 'Prefill speed of a GPU (tokens/s)', show),
      priceInput(server, 'gpuPrice', 'GPU price per hour', show), h('span', { class: 'note' }, 'Kept in this browser.')));
  let total = null;
  let sizes = [];
  if (withSizes) {
    view.poll(() => request('whatif', { parameters: { minutes }, signal }), {
      everySeconds: POLL_SECONDS,
      onData: (data) => {
        sizes = data.sizes;
        show();
      },
    });
  }

  function show() {
    if (total === null) {
      return;
    }
    const asked = lookups(total);
    if (asked === 0) {
      fill(text, `Nothing was asked for in the last ${duration(total.seconds)}.`);
      return;
    }
    const share = ratio(found(total), asked);
    fill(text, `In the last ${duration(total.seconds)}, `, h('b', {}, percent(share)), ` of ${compact(asked)} blocks and values were found`,
      total.tokensSaved > 0 && [': ', h('b', {}, `${compact(total.tokensSaved)} tokens`), ' were not computed', ...gpuTime()],
      '.', ...otherSizes());
  }

  function gpuTime() {
    const { prefill, gpuPrice } = prices(server);
    if (prefill === null) {
      return [' (', h('button', { type: 'button', class: 'btn-text', onclick: askForSpeed }, 'set the prefill speed'), ' to see GPU hours)'];
    }
    const hours = total.tokensSaved / prefill / 3600;
    return [', which is ', h('b', {}, `${decimal(hours)} GPU hours`), ` at ${compact(prefill)} tokens/s`,
      gpuPrice !== null && [' for ', h('b', {}, money(hours * gpuPrice))]];
  }

  function askForSpeed() {
    values.open = true;
    document.getElementById('prefill').focus();
  }

  function otherSizes() {
    const of = (factor) => sizes.find((size) => size.factor === factor)?.hitRatio;
    return isKnown(of(0.5)) && isKnown(of(2))
      ? [' Half the memory would find ', h('b', {}, percent(of(0.5))), ', double ', h('b', {}, percent(of(2))), '.'] : [];
  }

  return {
    element: h('section', { class: 'lead-section', 'aria-label': 'Summary' }, text, values),
    /** @param merged the whole span as one sample */
    show(merged) {
      total = merged;
      show();
    },
  };
}
