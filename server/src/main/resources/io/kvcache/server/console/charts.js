import { serverNow } from './clock.js';
import { fill, h } from './dom.js';
import { clockTime, absolute } from './format.js';
import { table } from './table.js';

const SERIES_COLOURS = 9;
/** Of the time axis. */
const MIN_SPAN_SECONDS = 300;
let library = null;

/** Loads Chart.js when the first chart is shown; pages of tables go without. */
function load() {
  library ??= new Promise((resolve, reject) => {
    document.head.append(h('script', {
      src: 'lib/chart.umd.min.js',
      onload: () => resolve(window.Chart),
      onerror: () => {
        library = null;
        reject(new Error('lib/chart.umd.min.js did not load'));
      },
    }));
  });
  return library;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function seriesColour(index) {
  return colour(`--kv-series-${(index % SERIES_COLOURS) + 1}`);
}

/** The axis of a chart over time: what a row has on it, and how that is written. */
const TIME = {
  of: (sample) => sample.at * 1000,
  title: (x) => new Date(x).toLocaleTimeString('en-GB'),
  tick: clockTime,
  ticks: timeTicks,
  sort: '-at',
  column: { id: 'at', label: 'Time', value: (sample) => new Date(sample.at * 1000).toISOString(),
    cell: (sample) => clockTimeCell(sample.at * 1000) },
};

/**
 * A chart over time, with its latest values in words for screen readers, and all values as a table.
 *
 * Each series has `label`, `value(sample)`, and perhaps `colour` (its number in the palette) and `dashed`.
 *
 * @param stacked whether the series add up, as areas; lines otherwise
 * @param format a value in words
 * @param max of the axis, where it is known
 * @param binary whether the axis has steps of powers of two, as bytes have
 * @param axis another one than that of time
 * @param isMarked whether a row of another axis is the one that there is
 */
export function timeChart({
  id, title, note = '', series, stacked = false, format, max, binary = false, axis = TIME, isMarked = () => false, signal,
}) {
  let samples = [];
  let chart = null;
  let spanSeconds = 3600;
  const canvas = h('canvas', { role: 'img', 'aria-label': title });
  const legend = h('ul', { class: 'legend' });
  const details = h('details', { class: 'chart-data' }, h('summary', {}, 'Show data as a table'));
  let data = null;
  const element = h('section', { class: 'chart', 'aria-labelledby': `${id}-chart` },
    h('h2', { class: 'section-title', id: `${id}-chart` }, title, note && h('small', {}, ` ${note}`)),
    legend, h('div', { class: 'chart-canvas' }, canvas), details);

  details.addEventListener('toggle', () => {
    if (details.open && data === null) {
      data = table({ id: `${id}-data`, caption: title, columns: dataColumns(), empty: 'No samples yet.', sort: axis.sort, cards: false });
      details.append(data.element);
    }
    showData();
  });
  window.addEventListener('themechange', () => {
    if (chart) {
      chart.options = options();
      update();
    }
  }, { signal });
  signal.addEventListener('abort', () => chart?.destroy());

  load().then((Chart) => {
    if (!signal.aborted) {
      chart = new Chart(canvas, { type: 'line', data: { datasets: [] }, options: options() });
      update();
    }
  }, (failure) => {
    canvas.replaceWith(h('p', { class: 'note' }, `No chart: ${failure.message}. The table below has the values.`));
  });

  function dataColumns() {
    return [
      axis.column,
      ...series.map((each, index) => ({
        id: `s${index}`, label: each.label, number: true, value: each.value, cell: (sample) => format(each.value(sample)),
      })),
    ];
  }

  function showData() {
    if (details.open && data !== null) {
      data.setRows(samples);
    }
  }

  function options() {
    const text = colour('--bs-secondary-color');
    const grid = colour('--bs-border-color-translucent');
    return {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      parsing: false,
      normalized: true,
      interaction: { mode: 'index', intersect: false },
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? axis.title(items[0].parsed.x) : ''),
            label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
          },
        },
      },
      scales: {
        x: {
          type: 'linear',
          grid: { display: false },
          border: { color: grid },
          ticks: { color: text, maxTicksLimit: 6, maxRotation: 0, callback: (value) => axis.tick(value) },
          // Even steps of whole minutes, as the linear scale would choose round numbers of milliseconds.
          afterBuildTicks: (scale) => {
            scale.ticks = axis.ticks(scale.min, scale.max, samples).map((value) => ({ value }));
          },
        },
        y: {
          stacked,
          beginAtZero: true,
          max,
          grid: { color: grid },
          border: { display: false },
          afterBuildTicks: (scale) => {
            if (binary) {
              scale.ticks = binaryTicks(scale.max).map((value) => ({ value }));
            }
          },
          ticks: { color: text, maxTicksLimit: 5, callback: (value) => format(value) },
        },
      },
    };
  }

  function update() {
    if (!chart) {
      return;
    }
    if (axis === TIME) {
      const last = samples.at(-1)?.at ?? Date.now() / 1000;
      chart.options.scales.x.max = last * 1000;
      chart.options.scales.x.min = (last - spanSeconds) * 1000;
    }
    chart.data.datasets = series.map((each, index) => {
      const line = seriesColour(each.colour ?? index);
      return {
        label: each.label,
        data: samples.map((sample) => ({ x: axis.of(sample), y: each.value(sample) })),
        borderColor: line,
        backgroundColor: stacked ? `${line}99` : line,
        borderWidth: stacked ? 1 : 1.75,
        borderDash: each.dashed ? [5, 3] : [],
        fill: stacked ? (index === 0 ? 'origin' : '-1') : false,
        pointRadius: (point) => (isAlone(point.dataset.data, point.dataIndex) ? 3 : isMarked(samples[point.dataIndex] ?? {}) ? 5 : 0),
        pointHitRadius: 8,
        tension: 0,
      };
    });
    chart.update('none');
  }

  function describe() {
    const sample = samples.find(isMarked) ?? samples.at(-1);
    const values = series.map((each) => `${each.label} ${sample ? format(each.value(sample)) : 'unknown'}`);
    canvas.setAttribute('aria-label', `${title}, ${axis === TIME ? 'latest values' : 'values of today'}: ${values.join(', ')}. All values are in the table below.`);
    fill(legend, series.map((each, index) => {
      const mark = h('span', { class: each.dashed ? 'legend-mark dashed' : 'legend-mark', 'aria-hidden': 'true' });
      mark.style.color = `var(--kv-series-${((each.colour ?? index) % SERIES_COLOURS) + 1})`;
      return h('li', {}, mark, `${each.label} `, h('b', {}, sample ? format(each.value(sample)) : '–'));
    }));
  }

  describe();
  return {
    element,
    /** @param minutes the span of the axis */
    show(newSamples, minutes) {
      samples = newSamples;
      if (axis !== TIME) {
        update();
        describe();
        showData();
        return;
      }
      // A server that runs for less has nothing to show of the time before; but no axis is shorter than a few samples.
      const since = newSamples.length > 0 ? serverNow() / 1000 - newSamples[0].at + newSamples[0].seconds : 0;
      spanSeconds = Math.min(minutes * 60, Math.max(since, MIN_SPAN_SECONDS));
      update();
      describe();
      showData();
    },
    /** Changes which series there are. */
    setSeries(newSeries) {
      series = newSeries;
      if (data !== null) {
        data.element.remove();
        data = null;
        details.open = false;
      }
    },
  };
}

function clockTimeCell(at) {
  return h('time', { title: absolute(at) }, new Date(at).toLocaleTimeString('en-GB'));
}

function binaryTicks(max) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(max, 4) / 4));
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, index) => index * step);
}

/** Whether a value has none beside it, so that no line leads to it. */
function isAlone(points, index) {
  return !isShown(points[index - 1]) && !isShown(points[index + 1]);
}

function isShown(point) {
  return point !== undefined && point.y !== null && point.y !== undefined;
}

function timeTicks(from, to) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 240].map((each) => each * 60_000);
  const step = steps.find((each) => (to - from) / each <= 6) ?? steps.at(-1);
  const offset = new Date(from).getTimezoneOffset() * 60_000; // so that hours are whole ones of the local time
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) {
    ticks.push(at);
  }
  return ticks;
}
