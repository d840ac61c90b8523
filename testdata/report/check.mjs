// Opens pages of ggufreap report in headless Chromium at three widths, light, dark and for
// print; looks for messages on the console, anything loaded, width that overflows, and what
// axe-core finds; and leaves a screenshot of each.
//
// usage: node check.mjs CHROMIUM SCREENSHOTS PAGE...
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, resolve } from 'node:path';
import puppeteer from 'puppeteer-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [chromium, screenshots, ...pages] = process.argv.slice(2);
const looks = [400, 1200, 2400].flatMap((width) => ['light', 'dark', 'print'].map((scheme) => ({ width, scheme })));
const findings = [];

async function look(browser, path, { width, scheme }) {
  const name = `${basename(path, '.html')}-${width}-${scheme}`;
  const found = (what) => findings.push(`${name}: ${what}`);
  const page = await browser.newPage();
  page.on('console', (m) => found(`console: ${m.text()}`));
  page.on('pageerror', (e) => found(`error: ${e.message}`));
  page.on('dialog', (d) => { found(`dialog: ${d.message()}`); d.dismiss(); });
  page.on('request', (r) => { if (!r.isNavigationRequest() && !r.url().startsWith('data:')) found(`loads ${r.url()}`); });
  await page.setViewport({ width, height: 900 });
  if (scheme === 'print') await page.emulateMediaType('print');
  else await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(`file://${resolve(path)}`);
  const seen = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    scripts: document.scripts.length,
    pictures: document.querySelectorAll('svg').length,
    tables: document.querySelectorAll('table').length,
    hints: document.querySelectorAll('svg rect > title').length,
    shownTables: [...document.querySelectorAll('table')].filter((t) => t.checkVisibility({ contentVisibilityAuto: true })).length,
  }));
  if (seen.wide && scheme !== 'print') found('the page is wider than its window');
  if (seen.scripts > 0) found('the page has a script');
  if (seen.pictures === 0 || seen.tables !== seen.pictures) found(`${seen.pictures} pictures, ${seen.tables} tables`);
  if (seen.hints === 0) found('nothing says what it is when it is pointed at');
  if (scheme === 'print' && seen.shownTables !== seen.tables) found('tables that are closed on paper');
  await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  for (const v of violations) found(`axe: ${v.id}: ${v.help}: ${v.nodes[0].html.slice(0, 120)}`);
  await page.close();
}

const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox'] });
for (const path of pages) for (const at of looks) await look(browser, path, at);
await browser.close();
for (const f of findings) console.error(f);
console.log(`${pages.length} pages at ${looks.length} widths and schemes: ${findings.length} findings; screenshots in ${screenshots}`);
process.exit(findings.length > 0 ? 1 : 0);
