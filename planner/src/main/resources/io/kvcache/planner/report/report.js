// Draws the figures of the page with Chart.js: once, and again when the colours of the screen change.
'use strict';
(() => {
  const figures = JSON.parse(document.getElementById('figures').textContent);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const LIGHT = ['#d1590f', '#16876a', '#8a4fc4', '#b8890a', '#c93c83', '#2f8fae', '#6f7a1f', '#a0522d', '#5b64d6'];
  const DARK = ['#f2894a', '#3fc79e', '#b58af0', '#e0b93f', '#f07ab3', '#5fc3e4', '#b5c04f', '#d99468', '#98a0ff'];
  const SUBJECTS = {light: ['#1f6feb', '#0b8ba8', '#6a45d8'], dark: ['#5b9dff', '#45cbe8', '#a58bff']};
  const DASHES = [[], [7, 3], [2, 3], [1, 4]];
  let charts = [];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (value) => `${+(100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0)} %`;
  const exact = (value, axis) => axis.percent
      ? `${(100 * value).toFixed(2)} %`
      : value.toLocaleString('en', {maximumFractionDigits: 2});

  // A colour, a weight and a dash by what a series is; `other` counts those that are nothing special.
  function looks(role, counts) {
    const others = dark.matches ? DARK : LIGHT;
    if (role === 'BOUND') return {colour: css('--ink'), width: 1.75, dash: DASHES[2 + counts.bound++ % 2], radius: 0};
    if (role === 'BASELINE') return {colour: css('--soft'), width: 2.25, dash: [8, 4], radius: 0};
    if (role === 'SUBJECT') {
      const shades = SUBJECTS[dark.matches ? 'dark' : 'light'];
      return {colour: shades[counts.subject++ % shades.length], width: 3, dash: [], radius: 2.5};
    }
    const index = counts.other++;
    const dash = DASHES[Math.floor(index / others.length) % 4];
    return {colour: others[index % others.length], width: 1.4, dash, radius: 2};
  }

  function lines(figure) {
    const counts = {other: 0, subject: 0, bound: 0};
    const datasets = figure.series.map((series) => {
      const look = looks(series.role, counts);
      return {
        label: series.name,
        data: figure.at.map((x, i) => ({x, y: series.values[i]})),
        borderColor: look.colour,
        backgroundColor: look.colour,
        borderWidth: look.width,
        borderDash: look.dash,
        pointRadius: look.radius,
        pointHoverRadius: look.radius + 2,
        order: series.role === 'OTHER' ? 2 : 1,
      };
    });
    return {type: 'line', data: {datasets}};
  }

  function bars(figure) {
    const counts = {other: 0, subject: 0, bound: 0};
    const datasets = figure.series.map((series) => {
      const colour = looks(series.role, counts).colour;
      return {label: series.name, data: series.values, backgroundColor: colour, borderRadius: 2, maxBarThickness: 14};
    });
    return {type: 'bar', data: {labels: figure.labels, datasets}};
  }

  function logarithmic(figure) {
    return {
      type: 'logarithmic',
      min: Math.min(...figure.at) / 1.1,
      max: Math.max(...figure.at) * 1.1,
      title: {display: true, text: 'capacity, share of the distinct blocks', color: css('--soft')},
      afterBuildTicks: (axis) => { axis.ticks = figure.at.map((value) => ({value})); },
      ticks: {callback: (value) => figure.labels[figure.at.indexOf(value)] ?? '', color: css('--soft'), autoSkip: false},
      grid: {color: css('--line')},
    };
  }

  function values(figure) {
    const all = figure.series.flatMap((series) => series.values).filter((value) => value !== null);
    const least = figure.axis.least;
    return {
      min: least === null ? 0 : Math.max(least, Math.min(0, ...all)),
      title: {display: true, text: figure.axis.title, color: css('--soft')},
      ticks: {color: css('--soft'), callback: (value) => figure.axis.percent ? percent(value) : value.toLocaleString('en')},
      grid: {color: css('--line')},
      stacked: figure.form === 'STACKED_BARS',
    };
  }

  // By themselves names have the colours of their lines, but not the dashes.
  function dashed(chart) {
    const labels = Chart.defaults.plugins.legend.labels.generateLabels(chart);
    return labels.map((label) => ({...label, lineDash: chart.data.datasets[label.datasetIndex].borderDash ?? []}));
  }

  // While the pointer is on a name, the other lines are drawn in the colour of the grid.
  function single(chart, chosen) {
    chart.data.datasets.forEach((dataset, index) => {
      dataset.full ??= dataset.borderColor;
      dataset.borderColor = chosen === null || chosen === index ? dataset.full : css('--line');
    });
    chart.update('none');
  }

  function draw(canvas) {
    const figure = figures[canvas.dataset.figure];
    const lying = figure.form !== 'LINES';
    canvas.closest('figure').hidden = false;
    const category = {ticks: {color: css('--ink'), autoSkip: false}, grid: {display: false}, stacked: figure.form === 'STACKED_BARS'};
    const config = lying ? bars(figure) : lines(figure);
    config.options = {
      animation: false,
      maintainAspectRatio: false,
      indexAxis: lying ? 'y' : 'x',
      interaction: {mode: lying ? 'index' : 'nearest', axis: lying ? 'y' : 'xy', intersect: false},
      scales: lying ? {x: values(figure), y: category} : {x: logarithmic(figure), y: values(figure)},
      plugins: {
        legend: {
          position: 'bottom',
          labels: {
            color: css('--ink'),
            usePointStyle: true,
            pointStyle: lying ? 'rectRounded' : 'line',
            pointStyleWidth: lying ? 12 : 30,
            boxHeight: 8,
            padding: 10,
            font: {size: 11.5},
            generateLabels: dashed,
          },
          onHover: (event, item, legend) => lying || single(legend.chart, item.datasetIndex),
          onLeave: (event, item, legend) => lying || single(legend.chart, null),
        },
        tooltip: {
          callbacks: {
            title: (items) => lying ? items[0].label : `${figure.labels[items[0].dataIndex]} of the distinct blocks`,
            label: (item) => `${item.dataset.label}: ${exact(lying ? item.parsed.x : item.parsed.y, figure.axis)}`,
          },
        },
      },
    };
    return new Chart(canvas, config);
  }

  function drawAll() {
    charts.forEach((chart) => chart.destroy());
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    charts = [...document.querySelectorAll('canvas[data-figure]')].map(draw);
  }

  drawAll();
  dark.addEventListener('change', drawAll);
})();
