import { timeChart } from './charts.js';
import { decimal } from './format.js';
import { reasonNames, reasonShort } from './reasons.js';
import { merge } from './series.js';

/** Misses by reason over time; only reasons that occur, as nine colours are too many to tell apart. */
export function missChart({ id, signal }) {
  let shown = '';
  const chart = timeChart({
    id, title: 'Misses by reason', note: 'per second', series: [], stacked: true, signal, format: decimal,
  });
  return {
    element: chart.element,
    show(samples, minutes) {
      const totals = samples.length === 0 ? {} : merge(samples).missReasons;
      const reasons = reasonNames(totals).map((reason, index) => ({ reason, index }))
        .filter(({ reason }) => totals[reason] > 0);
      if (shown !== reasons.map(({ reason }) => reason).join()) {
        shown = reasons.map(({ reason }) => reason).join();
        // The colour goes with the reason, so it stays when another reason comes or goes.
        chart.setSeries(reasons.map(({ reason, index }) => ({
          label: reasonShort(reason),
          colour: index,
          value: (sample) => (sample.missReasons?.[reason] ?? 0) / (sample.seconds || 1),
        })));
      }
      chart.show(samples, minutes);
    },
  };
}
