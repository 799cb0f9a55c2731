import { request } from './api.js';
import { setServerNow } from './clock.js';
import { connection } from './connection.js';
import { button, fill, h, name } from './dom.js';
import { agoText, duration, toMillis } from './format.js';
import { poll, pollAllNow, secondsToNextTry } from './poll.js';
import { current, hash } from './route.js';
import { showProblem } from './problem.js';

// Modules of pages load when they are first shown. `tenant` marks those that a choice of tenant follows.
const PAGES = [
  { id: 'overview', title: 'Overview', tenant: true, load: () => import('./overview.js') },
  { id: 'prefixes', title: 'Prefixes', tenant: true, load: () => import('./prefixes.js') },
  { id: 'misses', title: 'Misses', tenant: true, load: () => import('./misses.js') },
  { id: 'whatif', title: 'What if', administrators: true, load: () => import('./whatif.js') },
  { id: 'requests', title: 'Requests', load: () => import('./requests.js') },
  { id: 'disks', title: 'Disks', administrators: true, load: () => import('./disks.js') },
  { id: 'settings', title: 'Settings', administrators: true, load: () => import('./settings.js') },
  { id: 'events', title: 'Events', load: () => import('./events.js') },
  { id: 'cluster', title: 'Cluster', administrators: true, load: () => import('./cluster.js') },
];
const TICK_MILLIS = 1000;

const main = document.getElementById('main');
const menu = document.getElementById('menu');
let server = null;
let open = null;

async function show({ moveFocus }) {
  const { page: id, parameters } = current();
  const page = PAGES.find((each) => each.id === id);
  const focusedId = document.activeElement?.id;
  open?.abort();
  open = new AbortController();
  const { signal } = open;
  showNav(id, parameters);
  if (!page) {
    fill(main, h('h1', {}, 'No such page'), h('p', {}, h('a', { href: hash('overview') }, 'Go to the overview')));
    return;
  }
  document.title = `${page.title} · KVCache`;
  if (page.administrators && server.administrator === false) {
    fill(main, h('h1', { tabIndex: -1 }, page.title), h('p', {}, 'This page tells of all tenants and is for administrators: tenants with ',
      h('code', {}, 'admin: true'), ', and clients of a listener on loopback without authentication.'));
    return;
  }
  let module;
  try {
    module = await page.load();
  } catch {
    if (!signal.aborted) {
      fill(main, h('h1', {}, page.title), h('p', {}, 'This page did not load. Reload it when the server is back.'));
    }
    return;
  }
  if (signal.aborted) {
    return;
  }
  const heading = h('h1', { tabIndex: -1 }, page.title);
  const toolbar = h('div', { class: 'toolbar' });
  const content = h('div', { class: 'content' });
  const problem = h('div');
  fill(main, h('div', { class: 'page-head' }, heading, toolbar), problem, content);
  module.open({
    server, parameters, toolbar, content, signal,
    /** Shows the same page with other parameters. */
    go: (changed) => {
      location.hash = hash(id, { ...current().parameters, ...changed });
    },
    /** Keeps parameters in the link, for a view that shows them already. */
    remember: (changed) => {
      history.replaceState(null, '', hash(id, { ...current().parameters, ...changed }));
    },
    link: (changed) => hash(id, { ...parameters, ...changed }),
    /** Loads while the page is shown. Errors appear above what was shown before. */
    poll: (load, options) => poll(load, {
      everySeconds: 0,
      ...options,
      signal,
      onData: (data) => {
        fill(problem);
        options.onData(data);
        refocus();
      },
      onError: (error) => {
        // Without an answer the banner tells it, and the values stay.
        if (!error.isUnreachable) {
          showProblem(problem, error);
        }
      },
    }),
  });
  if (moveFocus) {
    heading.focus();
    window.scrollTo(0, 0);
  } else {
    refocus();
  }

  /** The page is built anew after a change of one of its controls: the keyboard goes on there, once it is there. */
  function refocus() {
    const lost = document.activeElement === null || document.activeElement === document.body;
    if (!moveFocus && lost && focusedId) {
      document.getElementById(focusedId)?.focus();
    }
  }
}

function showNav(currentId, parameters) {
  const tenant = parameters.tenant;
  fill(document.querySelector('#nav ul'), PAGES
    .filter((page) => !page.administrators || server.administrator !== false)
    .map((page) => h('li', {}, h('a', {
      href: hash(page.id, page.tenant ? { tenant } : {}),
      'aria-current': page.id === currentId ? 'page' : null,
    }, page.title))));
  setMenu(false);
}

function setMenu(expanded) {
  menu.setAttribute('aria-expanded', String(expanded));
  document.body.classList.toggle('menu-open', expanded);
}

function showServer() {
  fill(document.getElementById('server'),
    server.recovering && h('span', { class: 'badge text-bg-warning' }, 'recovering'),
    h('span', { title: `Up ${duration((Date.parse(server.now) - Date.parse(server.startedAt)) / 1000)}, since ${server.startedAt}` },
      `${server.version}`),
    h('span', {}, name(server.tenant), server.administrator ? ' (administrator)' : ''));
}

function showBanner() {
  const banner = document.getElementById('banner');
  const lost = connection.cause !== '';
  document.body.classList.toggle('stale', lost);
  if (!lost) {
    banner.hidden = true;
    fill(banner);
    return;
  }
  if (banner.hidden) {
    fill(banner, h('span', {}, connection.cause), h('span', { class: 'banner-age', 'aria-live': 'off' }),
      button('Retry now', pollAllNow, 'light'));
    banner.hidden = false;
  }
  const seconds = secondsToNextTry();
  banner.querySelector('.banner-age').textContent = (server ? ` Values are ${
    duration(Math.floor((Date.now() - connection.answeredAt) / 1000))} old.` : '')
    + (seconds === null ? '' : ` Retrying in ${seconds} s.`);
}

function tick() {
  if (document.hidden) {
    return;
  }
  if (connection.cause !== '') {
    showBanner();
  }
  for (const time of document.querySelectorAll('time[data-ago]')) {
    const text = agoText(toMillis(time.dateTime) / 1000);
    if (time.textContent !== text) {
      time.textContent = text;
    }
  }
}

/** The first load decides what the pages may show, so nothing else begins before it. */
function start() {
  const starting = new AbortController();
  poll(() => request('console', { signal: starting.signal }), {
    everySeconds: 0,
    signal: starting.signal,
    onData: (info) => {
      starting.abort();
      takeServer(info);
      window.addEventListener('hashchange', onHashChange);
      shownPage = current().page;
      show({ moveFocus: false });
    },
    onError: (error) => {
      if (!error.isUnreachable) {
        showProblem(main, error);
      }
    },
  });
}

function takeServer(info) {
  server = info;
  setServerNow(info.now);
  showServer();
}

let shownPage = '';

function onHashChange() {
  if (location.hash === '#main') {
    // The skip link is not a place of its own.
    history.replaceState(null, '', hash(shownPage));
    return;
  }
  const moved = current().page !== shownPage;
  shownPage = current().page;
  show({ moveFocus: moved });
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault(); // the hash is the page's place
  main.focus();
});
menu.addEventListener('click', () => setMenu(menu.getAttribute('aria-expanded') !== 'true'));
const theme = document.getElementById('theme');
function showTheme() {
  const choice = window.kvcacheTheme.choice();
  theme.textContent = `Theme: ${choice}`;
}
theme.addEventListener('click', () => {
  window.kvcacheTheme.next();
  showTheme();
});
showTheme();
let wasLost = false;
connection.onChange(() => {
  showBanner();
  if (wasLost && connection.cause === '' && server !== null) {
    // Another version or another owner may answer after a restart.
    request('console').then(takeServer, () => {});
    pollAllNow();
  }
  wasLost = connection.cause !== '';
});
setInterval(tick, TICK_MILLIS);
start();
