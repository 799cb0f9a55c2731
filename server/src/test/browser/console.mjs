// Drives the web console of a running server in headless Chromium, and fails on anything that a user would trip over.
//
//   npm ci
//   node console.mjs http://localhost:7379/ [--out DIR] [--user NAME --password TEXT] [--pages a,b] [--widths 400,1280]
//       [--insecure] [--behind PREFIX] [--reopen] [--hold SECONDS]
//
// It takes the server as it finds it: nothing is dropped or changed, and no values are expected. --insecure takes any
// certificate, --behind puts a proxy in front that serves everything below a path, --reopen wants a disk that is not
// serving and reopens it first, and --hold does nothing but keep the overview open.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string', default: 'target/console' },
    user: { type: 'string' },
    password: { type: 'string' },
    pages: { type: 'string' },
    widths: { type: 'string', default: '400,820,1280' },
    insecure: { type: 'boolean', default: false },
    behind: { type: 'string' },
    reopen: { type: 'boolean', default: false },
    hold: { type: 'string' },
  },
});
if (positionals.length !== 1) {
  console.error('usage: node console.mjs BASE_URL [--out DIR] [--user NAME --password TEXT] [--pages a,b] [--widths 400,1280]'
    + ' [--insecure] [--behind PREFIX] [--reopen] [--hold SECONDS]');
  process.exit(2);
}

const server = new URL(positionals[0].endsWith('/') ? positionals[0] : `${positionals[0]}/`);
const proxy = options.behind ? await startProxy() : null;
const base = proxy ? new URL(`http://127.0.0.1:${proxy.address().port}${options.behind}/`) : server;
const consoleUrl = new URL('console/', base).href;
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const widths = options.widths.split(',').map(Number);
const HEIGHT = 900;
const STEP_MILLIS = 15_000;
const QUIET_MILLIS = 400;
/** Until pages that follow a stream of events show some. */
const STREAM_MILLIS = 1500;
const problems = [];
/** Error replies that are expected: a single server has no cluster, and viewers of the live stream are limited. */
const EXPECTED_ERRORS = [/\/v1\/cluster$/, /\/v1\/live(\?|$)/];

mkdirSync(options.out, { recursive: true });
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
let where = '';
try {
  if (options.hold) {
    await inNewPage({}, (page) => page.waitForTimeout(1000 * Number(options.hold)));
  } else {
    await checkAll();
  }
} finally {
  await browser.close();
  proxy?.close();
}
if (problems.length > 0) {
  console.error(`${problems.length} problems:`);
  problems.forEach((each) => console.error(`  ${each}`));
  process.exit(1);
}
console.log(`The console is fine. Screenshots: ${options.out}`);

async function checkAll() {
  if (options.reopen) {
    where = 'reopensADisk';
    await inNewPage({}, reopensADisk).catch((error) => fail(firstLine(error)));
  }
  for (const theme of ['light', 'dark']) {
    await tourPages(theme);
  }
  if (options.user) {
    where = 'saysThatThePasswordIsWrong';
    await saysThatThePasswordIsWrong().catch((error) => fail(firstLine(error)));
  }
  for (const [name, check] of Object.entries({
    sortsATable, exportsCsv, disarmsFormulas, keepsTheTheme, skipsToTheContent, drillsDown, cancelsADrop, tellsWhenUnreachable, keepsTheViewInTheLink,
    showsTheMissesOfTheServer, showsThePrefixesOfTheServer, showsChunksAsATree, hasOneHitRatio, setsThePrefillSpeed, keepsItselfOut,
  })) {
    where = name;
    await inNewPage({ tolerant: check === tellsWhenUnreachable }, check).catch((error) => fail(firstLine(error)));
  }
}

async function tourPages(theme) {
  await inNewPage({ theme }, async (page) => {
    const pages = await visiblePages(page);
    for (const width of widths) {
      await page.setViewportSize({ width, height: HEIGHT });
      for (const id of pages) {
        where = `${id} ${width} ${theme}`;
        await goTo(page, id);
        if (['overview', 'events'].includes(id)) {
          await page.waitForTimeout(STREAM_MILLIS);
        }
        await checkLayout(page);
        await checkAccessibility(page);
        await page.screenshot({ path: join(options.out, `${id}-${width}-${theme}.png`), fullPage: true });
      }
    }
  }).catch((error) => fail(firstLine(error)));
}

/** The pages that the server offers to this user. */
async function visiblePages(page) {
  const offered = await page.locator('#nav a').evaluateAll((links) => links.map((link) => link.hash.slice(2).split('?')[0]));
  const wanted = options.pages?.split(',');
  return wanted ? offered.filter((each) => wanted.includes(each)) : offered;
}

async function checkLayout(page) {
  const [wide, view] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  if (wide > view) {
    const culprits = await page.evaluate((limit) => [...document.querySelectorAll('body *')]
      .filter((each) => each.getBoundingClientRect().right > limit + 1 && !each.closest('.table-scroll'))
      .slice(0, 3).map((each) => `${each.tagName.toLowerCase()}.${each.className}`), view);
    fail(`the page scrolls sideways: ${wide} of ${view} pixels (${culprits.join(', ')})`);
  }
  // Tables fit at the width of a small laptop, and are cards on a phone; between the two a shadow shows what is hidden.
  const cut = await page.evaluate(() => [...document.querySelectorAll('.table-scroll')].filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => [each.getAttribute('aria-labelledby'), getComputedStyle(each).backgroundImage.split('linear-gradient').length]));
  if ((view <= 640 || view >= 1280) && cut.length > 0) {
    fail(`tables are cut: ${cut.map(([name]) => name).join(', ')}`);
  }
  check(cut.every(([, gradients]) => gradients === 5), 'a table that is cut has no shadow');
  const spilled = view > 640 ? [] : await page.evaluate(() => [...document.querySelectorAll('.has-cards td')]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).slice(0, 3).map((each) => `${each.dataset.label}: ${each.textContent}`));
  if (spilled.length > 0) {
    fail(`cards spill over: ${spilled.join(', ')}`);
  }
  const current = await page.locator('#nav a[aria-current=page]').count();
  if (current !== 1) {
    fail(`${current} links of the navigation are current`);
  }
  const problem = page.locator('.problem, .banner:visible');
  if (await problem.count() > 0) {
    fail(`the page shows: ${await problem.first().innerText()}`);
  }
}

async function checkAccessibility(page) {
  // Evaluated by the debugger, as the content security policy keeps scripts of others out of the page.
  await page.evaluate(axeSource);
  const violations = await page.evaluate(async () => {
    const found = await window.axe.run(document, { preload: false, resultTypes: ['violations'] });
    return found.violations.filter((each) => ['serious', 'critical'].includes(each.impact)).map((each) =>
      `${each.id}: ${each.help} (${each.nodes.length} times, as ${each.nodes[0].target.join(' ')}: ${each.nodes[0].failureSummary})`);
  });
  violations.forEach((each) => fail(`axe: ${each.replaceAll(/\s+/g, ' ')}`));
}

async function sortsATable(page) {
  const table = await goToATable(page);
  // Of a column of texts, as ages and numbers with units are shown otherwise than they are compared.
  const column = await table.evaluate((element) => [...element.tHead.rows[0].cells].findIndex((cell, index) =>
    cell.querySelector('.sort') && !cell.classList.contains('num') && !element.tBodies[0].rows[0].cells[index].querySelector('time')));
  const header = table.locator('th').nth(column);
  await header.locator('.sort').click();
  const first = await columnValues(header, table);
  const direction = await header.getAttribute('aria-sort');
  await header.locator('.sort').click();
  const second = await columnValues(header, table);
  const turned = await header.getAttribute('aria-sort');
  check(['ascending', 'descending'].includes(direction) && turned !== direction && turned !== null,
    `aria-sort is ${direction}, then ${turned}`);
  const collator = new Intl.Collator('en', { numeric: true });
  for (const [values, sign] of [[first, direction === 'ascending' ? 1 : -1], [second, turned === 'ascending' ? 1 : -1]]) {
    check(values.every((each, index) => index === 0 || sign * collator.compare(values[index - 1], each) <= 0),
      `the column is not in order ${sign}: ${values.slice(0, 5).join(', ')}`);
  }
  check(first.length === second.length, 'a sort changes the number of rows');
}

async function columnValues(header, table) {
  const index = await header.evaluate((cell) => cell.cellIndex);
  return table.locator('tbody tr:not(.empty)').evaluateAll((rows, at) => rows.map((row) => row.cells[at].textContent), index);
}

async function exportsCsv(page) {
  const table = await goToATable(page);
  const [download] = await Promise.all([
    page.waitForEvent('download', { timeout: STEP_MILLIS }),
    table.locator('xpath=ancestor::section[1]').getByRole('button', { name: /as CSV$/ }).click(),
  ]);
  const text = readFileSync(await download.path(), 'utf8');
  const rows = parseCsv(text);
  const labels = await table.locator('th .sort').evaluateAll((all) => all.map((each) => each.textContent));
  const shown = await table.locator('tbody tr:not(.empty)').count();
  check(download.suggestedFilename().endsWith('.csv'), `the file is called ${download.suggestedFilename()}`);
  check(labels.every((label) => rows[0].includes(label)), `the header is ${rows[0]}, without some of ${labels}`);
  check(rows.length - 1 === shown, `there are ${rows.length - 1} rows, but ${shown} are shown`);
  check(text.endsWith('\r\n') && rows.every((row) => row.length === rows[0].length), 'the lines are not as RFC 4180 has them');
  check(!rows.slice(1).flat().some((cell) => /^[=+@\t\r]|^-(?!\d)/.test(cell)), 'a cell begins as a formula does');
}

/** The names that a server has need not be hostile, so the page's own module is given some that are. */
async function disarmsFormulas(page) {
  const text = await page.evaluate(async () => {
    const { csv } = await import(new URL('csv.js', document.baseURI));
    return csv(['name'], [['=1+1'], ['+1'], ['-1'], ['@a'], [' =1'], ['\t=1'], [-1], ['a"b,c'], ['a\nb'], [null]]);
  });
  const cells = parseCsv(text).map((row) => row[0]);
  const wanted = ['name', "'=1+1", "'+1", "'-1", "'@a", "' =1", "'\t=1", '-1', 'a"b,c', 'a\nb', ''];
  check(JSON.stringify(cells) === JSON.stringify(wanted), `the cells are ${JSON.stringify(cells)}`);
}

/** RFC 4180. */
function parseCsv(text) {
  const rows = [[]];
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    if (match.index === text.length) {
      break;
    }
    rows.at(-1).push(match[1] === undefined ? match[2] : match[1].replaceAll('""', '"'));
    if (match[3] === '\r\n') {
      rows.push([]);
    }
  }
  return rows.slice(0, -1); // the last line ends as all do
}

async function keepsTheTheme(page) {
  const theme = () => page.evaluate(() => document.documentElement.dataset.bsTheme);
  const seen = new Set([await theme()]);
  for (let press = 0; press < 2; press++) {
    await page.locator('#theme').click();
    seen.add(await theme());
  }
  check(seen.has('light') && seen.has('dark'), `the button offers only ${[...seen]}`);
  const chosen = await theme();
  await page.reload();
  await quiet(page);
  check(await theme() === chosen, `the theme is ${await theme()} after a reload, not ${chosen}`);
}

async function skipsToTheContent(page) {
  await page.keyboard.press('Tab');
  check(await page.evaluate(() => document.activeElement.id) === 'skip', 'the first Tab does not reach the skip link');
  check(await page.locator('#skip').evaluate((link) => link.getBoundingClientRect().top >= 0), 'the skip link is not visible');
  const before = page.url();
  await page.keyboard.press('Enter');
  check(await page.evaluate(() => document.activeElement.id) === 'main', 'the skip link does not lead to the content');
  check(page.url().includes('#main') === false && (page.url() === before || before.endsWith('/')), 'the skip link changes the place');
  await page.keyboard.press('Tab');
  check(await page.evaluate(() => document.getElementById('main').contains(document.activeElement)),
    'Tab after the skip link leaves the content');
}

async function drillsDown(page) {
  await goTo(page, 'prefixes');
  const link = page.locator('#nodes tbody a').first();
  if (await link.count() === 0) {
    note('no prefix has branches, so the way down was not tried');
    return;
  }
  const address = page.url();
  await link.click();
  await page.waitForURL(/under=[0-9a-f]{32}/, { timeout: STEP_MILLIS });
  await quiet(page);
  check(await page.locator('.crumbs [aria-current=page]').count() === 1, 'there is no breadcrumb');
  check(await page.locator('#nodes tbody tr').count() > 0, 'there is no table below');
  await page.locator('.crumbs a').first().click();
  await quiet(page);
  check(!page.url().includes('under='), 'the breadcrumb does not lead back');
  await page.goBack();
  await page.goBack();
  check(page.url() === address, `the browser's way back leads to ${page.url()}, not ${address}`);
}

async function cancelsADrop(page) {
  const changes = [];
  page.on('request', (request) => request.method() !== 'GET' && changes.push(request.url()));
  await goTo(page, 'prefixes');
  const opener = page.locator('#nodes').getByRole('button', { name: /^Drop/ }).first();
  if (await opener.count() === 0) {
    note('nothing may be dropped, so the dialog was not tried');
    return;
  }
  for (const close of [() => page.keyboard.press('Escape'), () => page.getByRole('button', { name: 'Cancel' }).click()]) {
    await opener.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor({ timeout: STEP_MILLIS });
    where = 'cancelsADrop, dialog';
    await checkAccessibility(page);
    check(/\d blocks?/.test(await dialog.innerText()), 'the dialog does not tell how much is dropped');
    check(await page.evaluate(() => document.activeElement.textContent) === 'Cancel', 'the focus does not begin on Cancel');
    for (let press = 0; press < 4; press++) {
      await page.keyboard.press('Tab');
      check(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog') !== null),
        'Tab leaves the dialog');
    }
    await page.screenshot({ path: join(options.out, 'drop-dialog.png') });
    await close();
    await dialog.waitFor({ state: 'detached', timeout: STEP_MILLIS });
    check(await opener.evaluate((button) => document.activeElement === button), 'the focus does not come back to the button');
  }
  check(changes.length === 0, `a cancelled drop sent ${changes}`);
}

async function tellsWhenUnreachable(page) {
  await goTo(page, 'prefixes');
  const rows = await page.locator('#nodes tbody tr').count();
  await page.route('**/v1/**', (route) => route.abort());
  await page.locator('#refresh').click();
  await page.locator('#banner').waitFor({ timeout: STEP_MILLIS });
  check(await page.locator('#nodes tbody tr').count() === rows, 'the last values are gone');
  await page.screenshot({ path: join(options.out, 'unreachable.png') });
  await page.unroute('**/v1/**');
  await page.locator('#banner button').click();
  await page.locator('#banner').waitFor({ state: 'hidden', timeout: STEP_MILLIS });
}

async function keepsTheViewInTheLink(page) {
  await page.goto(`${consoleUrl}#/misses?reason=evicted&minutes=15`);
  await page.reload();
  await quiet(page);
  check(await page.locator('#reason').inputValue() === 'evicted', 'the reason of the link is not chosen');
  check(await page.locator('#minutes').inputValue() === '15', 'the time span of the link is not chosen');
  await page.locator('#minutes').selectOption('5');
  await quiet(page);
  check(page.url().includes('minutes=5') && page.url().includes('reason=evicted'), `a choice leads to ${page.url()}`);
}

async function reopensADisk(page) {
  await goTo(page, 'disks');
  const failed = page.locator('#disks tbody tr', { has: page.getByRole('button', { name: /^Reopen/ }) });
  check(await failed.count() === 1, `${await failed.count()} disks can be reopened`);
  const cause = page.locator('#disks th', { hasText: /^Cause$/ });
  check((await columnValues(cause, page.locator('#disks')))[0] !== '', 'the page does not tell why the disk does not serve');
  await page.screenshot({ path: join(options.out, 'failed-disk.png'), fullPage: true });
  await failed.getByRole('button').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reopen' }).click();
  await failed.waitFor({ state: 'detached', timeout: STEP_MILLIS });
}

/** For a server without traffic but the console's own. */
async function showsTheMissesOfTheServer(page) {
  await goTo(page, 'misses');
  const table = page.locator('table', { hasText: 'What to do' });
  const shown = await table.locator('tbody tr:not(.empty)').evaluateAll((rows) => rows.map((row) => Number(row.cells[1].textContent.replaceAll(',', ''))));
  const { reasons } = await reply(page, '../v1/misses');
  const wanted = Object.values(reasons).filter((count) => count > 0).sort((a, b) => b - a);
  check(JSON.stringify(shown) === JSON.stringify(wanted), `misses are ${shown}; the server says ${wanted}`);
}

async function showsThePrefixesOfTheServer(page) {
  await goTo(page, 'prefixes');
  const table = page.locator('#nodes');
  const header = table.locator('th', { hasText: /^Blocks$/ });
  const shown = (await columnValues(header, table)).map((text) => Number(text.replaceAll(',', '')));
  const { nodes } = await reply(page, '../v1/prefixes?limit=1000');
  const wanted = nodes.map((node) => node.blocks);
  check(JSON.stringify(shown.sort()) === JSON.stringify(wanted.slice(0, shown.length).sort()), `blocks are ${shown}; the server says ${wanted}`);
}

async function showsChunksAsATree(page) {
  await goTo(page, 'prefixes');
  const { models } = (await reply(page, '../v1/prefixes')).chunks;
  const rows = page.locator('#chunks tbody tr:not(.empty)');
  check(await rows.count() === models.length, `${await rows.count()} models are shown; the server has ${models.length}`);
  if (models.length === 0) {
    note('there are no chunks, so their tree was not tried');
    return;
  }
  await rows.first().locator('a').click();
  await page.waitForURL(/chunks=/, { timeout: STEP_MILLIS });
  await quiet(page);
  check(await page.locator('#nodes tbody tr:not(.empty)').count() > 0, 'a model has no sequences');
  check(/learned from the order/.test(await page.locator('.content').innerText()), 'nothing says where the order is from');
  await checkLayout(page);
  await page.screenshot({ path: join(options.out, 'chunks.png'), fullPage: true });
  const branches = page.locator('#nodes tbody a').first();
  if (await branches.count() > 0) {
    await branches.click();
    await page.waitForURL(/under=/, { timeout: STEP_MILLIS });
    await quiet(page);
    check(await page.locator('#nodes tbody tr:not(.empty)').count() > 1, 'a branch has no continuations');
  }
}

/** For a server without traffic but the console's own. */
async function hasOneHitRatio(page) {
  if (await page.locator('#nav a[href="#/whatif"]').count() === 0) {
    note('this user may not see What if');
    return;
  }
  await goTo(page, 'overview');
  if (/^Nothing was asked for/.test(await page.locator('.summary').innerText())) {
    note('nothing was asked for, so there is no hit ratio');
    return;
  }
  await page.locator('.summary b').first().waitFor({ timeout: STEP_MILLIS });
  const shown = await page.locator('.summary b').first().innerText();
  const text = await page.locator('.summary').innerText();
  check(/Half the memory would find [\d.]+%, double [\d.]+%/.test(text), `the overview says ${text}`);
  await goTo(page, 'whatif');
  check(await page.locator('.summary b').first().innerText() === shown, `What if says ${await page.locator('.summary').innerText()}, the overview ${shown}`);
  const today = page.locator('#sizes tbody tr', { hasText: 'today' });
  check((await today.innerText()).includes(shown), `the table says ${await today.innerText()}, the overview ${shown}`);
}

async function setsThePrefillSpeed(page) {
  await goTo(page, 'overview');
  const ask = page.getByRole('button', { name: 'set the prefill speed' });
  if (await ask.count() === 0) {
    note('no tokens were saved, or the speed is set');
    return;
  }
  await ask.click();
  check(await page.evaluate(() => document.activeElement.id) === 'prefill', 'the focus is not in the field');
  await page.keyboard.type('100');
  await page.locator('#gpuPrice').fill('2');
  check(/GPU hours at 100 tokens\/s for [\d.,]+/.test(await page.locator('.summary').innerText()), `it says ${await page.locator('.summary').innerText()}`);
  await page.reload();
  await page.locator('.summary b').first().waitFor({ timeout: STEP_MILLIS });
  check(/GPU hours/.test(await page.locator('.summary').innerText()), 'the speed is forgotten');
}

async function keepsItselfOut(page) {
  await goTo(page, 'requests');
  const requests = await page.locator('#connections tbody tr:not(.empty)').allInnerTexts();
  check(!requests.some((row) => /get_(requests|live|console|page)/.test(row)), `the console shows itself: ${requests}`);
  check(/Not shown: \d+ connection/.test(await page.locator('.content').innerText()), 'nothing says what is left out');
}

/** What a browser shows once its prompt is cancelled after a wrong password. */
async function saysThatThePasswordIsWrong() {
  const context = await browser.newContext({
    ignoreHTTPSErrors: options.insecure, httpCredentials: { username: options.user, password: `not ${options.password}` },
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => fail(`page error: ${firstLine(error)}`));
  try {
    const response = await page.goto(consoleUrl);
    check(response.status() === 401, `the status is ${response.status()}`);
    check(await page.locator('h1').innerText() === 'Wrong name or password', `the page says ${await page.locator('body').innerText()}`);
    for (const [theme, background] of [['light', 'rgb(245, 246, 248)'], ['dark', 'rgb(21, 24, 28)']]) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForFunction((wanted) => document.documentElement.dataset.bsTheme === wanted, theme, { timeout: STEP_MILLIS });
      const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      check(colour === background, `the page has no style: ${colour}`);
      await checkAccessibility(page);
      for (const width of [400, 1280]) {
        await page.setViewportSize({ width, height: HEIGHT });
        await page.screenshot({ path: join(options.out, `wrong-password-${width}-${theme}.png`) });
      }
    }
  } finally {
    await context.close();
  }
}

function reply(page, path) {
  return page.evaluate((wanted) => fetch(wanted).then((response) => response.json()), path);
}

/** A page with a table of several rows, which any server has. */
async function goToATable(page) {
  for (const id of ['settings', 'requests', 'misses', 'prefixes']) {
    if (await page.locator(`#nav a[href="#/${id}"]`).count() > 0) {
      await goTo(page, id);
      const tables = page.locator('.table-section:visible table');
      for (let index = 0; index < await tables.count(); index++) {
        if (await tables.nth(index).locator('tbody tr:not(.empty)').count() > 0) {
          const all = tables.nth(index).getByRole('button', { name: /^Show all/ });
          if (await all.count() > 0) {
            await all.click();
          }
          return tables.nth(index);
        }
      }
    }
  }
  throw new Error('no page has a table with rows');
}

async function goTo(page, id) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${id}`);
  await page.waitForFunction((wanted) => document.querySelector('#nav a[aria-current]')?.hash.slice(2).split('?')[0] === wanted
    && document.querySelector('main h1') !== null, id, { timeout: STEP_MILLIS });
  await quiet(page);
}

/** Waits until the page has what it asked for. Streams of events never end, so they do not count. */
async function quiet(page) {
  const deadline = Date.now() + STEP_MILLIS;
  let since = Date.now();
  while (Date.now() - since < QUIET_MILLIS && Date.now() < deadline) {
    await page.waitForTimeout(50);
    if (page.pendingFetches.size > 0) {
      since = Date.now();
    }
  }
}

async function inNewPage({ theme = 'light', tolerant = false }, work) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: HEIGHT },
    colorScheme: theme,
    reducedMotion: 'reduce',
    acceptDownloads: true,
    ignoreHTTPSErrors: options.insecure,
    ...(options.user ? { httpCredentials: { username: options.user, password: options.password ?? '' } } : {}),
  });
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MILLIS);
  page.pendingFetches = new Set();
  page.on('dialog', (dialog) => {
    fail(`a script of a stored name ran: ${dialog.message()}`); // the console itself opens none of the browser's own
    dialog.dismiss().catch(() => {});
  });
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== base.origin) {
      fail(`a request to another host: ${request.url()}`);
    }
    if (request.resourceType() === 'fetch') {
      page.pendingFetches.add(request);
    }
  });
  const ended = (request) => page.pendingFetches.delete(request);
  context.on('requestfinished', ended);
  context.on('requestfailed', ended);
  page.on('pageerror', (error) => fail(`page error: ${firstLine(error)}`));
  page.on('console', (message) => {
    const source = message.location().url;
    if (message.type() === 'error' && !tolerant && !EXPECTED_ERRORS.some((each) => each.test(source))) {
      fail(`console error: ${message.text()} (${source})`);
    }
  });
  try {
    await page.goto(consoleUrl);
    await page.locator('main h1').waitFor({ timeout: STEP_MILLIS });
    await quiet(page);
    await work(page);
  } finally {
    await context.close();
  }
}

/** A proxy as operators have in front: all that is asked below its prefix goes on to the server without it. */
async function startProxy() {
  const listening = createServer((request, response) => {
    if (!request.url.startsWith(`${options.behind}/`)) {
      response.writeHead(404).end();
      return;
    }
    const onward = forward(server, {
      path: request.url.slice(options.behind.length), method: request.method, headers: request.headers,
    }, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise((started) => {
    listening.listen(0, '127.0.0.1', started);
  });
  return listening;
}

function findChromium() {
  const given = process.env.CHROMIUM ?? 'chromium';
  return given.includes('/') ? given : execFileSync('which', [given], { encoding: 'utf8' }).trim();
}

function check(holds, otherwise) {
  if (!holds) {
    fail(otherwise);
  }
}

function fail(text) {
  problems.push(`${where}: ${text}`);
}

function note(text) {
  console.log(`${where}: ${text}`);
}

function firstLine(error) {
  return String(error?.message ?? error).split('\n')[0];
}
