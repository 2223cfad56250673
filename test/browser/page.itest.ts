/** The page of packages/page in browsers, from a file: it needs no server, and simulates the same packets as Node.js. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { completed, runVariant, SIMULATED_SCENES } from '@rocev2/page/scenes';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  DOCUMENT,
  hashesInNode,
  hashesInPage,
  hashRows,
  SHORT_SCENARIOS,
  simulatorForPages,
} from '../../scripts/trace-hashes.js';
import { chromiumPath, firefoxPath, launch, launchFirefox } from './browser.js';

const COMPRESSED_BYTES_MAX = 250_000;
/** The whole catalogue, on a loaded machine. */
const CATALOGUE_MS = 300_000;

async function complete(page: Page): Promise<void> {
  await page.locator('.scene[data-state=complete]').waitFor({ timeout: 60_000 });
}

describe.skipIf(chromiumPath === undefined)('the page', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-page-'));
  const url = pathToFileURL(join(folder, 'index.html')).href;
  let browser: Browser;
  const troubles: string[] = [];

  beforeAll(async () => {
    execFileSync(process.execPath, ['scripts/page.js', folder]);
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
    expect(troubles).toEqual([]);
  });

  async function open(address: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', ...options });
    page.on('console', (message) => troubles.push(message.text()));
    page.on('pageerror', (error) => troubles.push(String(error)));
    page.on('request', (request) => {
      if (!/^(file|blob|data):/.test(request.url())) troubles.push(`asked ${request.url()}`);
    });
    await page.goto(address);
    return page;
  }

  it('is small, and has no validation of files', () => {
    const html = readFileSync(join(folder, 'index.html'));
    expect(gzipSync(html).length).toBeLessThan(COMPRESSED_BYTES_MAX);
    expect(html.includes('livelock')).toBe(true);
    expect(html.includes('ZodError')).toBe(false);
  });

  it('shows the livelock, with the trace hash of Node.js', async () => {
    const page = await open(`${url}#livelock?seed=7&loss=1%2F256&message=1+MiB&lang=en`);
    await complete(page);
    expect(await page.locator('.verdict').textContent()).toMatch(/Livelock/);
    const [scene] = SIMULATED_SCENES;
    const [variant] = scene.variants(completed(scene, { loss: '1/256', message: '1 MiB' }), 7);
    const { outcome } = (await runVariant(variant, () => true))!;
    expect(await page.locator('.hash').textContent()).toContain(outcome.result.traceHash);
    expect(await page.locator('.rung').count()).toBeGreaterThan(10);
    await page.close();
  });

  it('runs the window protocol, with the trace hash of Node.js', async () => {
    const page = await open(`${url}#window?seed=3&block=4+KiB&blocks=4&lang=en`);
    await complete(page);
    const scene = SIMULATED_SCENES.find(({ name }) => name === 'window')!;
    const [variant] = scene.variants(completed(scene, { block: '4 KiB', blocks: '4' }), 3);
    const { outcome } = (await runVariant(variant, () => true))!;
    expect(await page.locator('.hash').textContent()).toContain(outcome.result.traceHash);
    expect(await page.locator('.verdict').textContent()).toMatch(/^The pool is too small/);
    await page.close();
  });

  it('runs again from the seed when a control moves, and its address keeps the run', async () => {
    const page = await open(`${url}#livelock?schemes=go-back-n&message=64+KiB&lang=en`);
    await complete(page);
    const hash = await page.locator('.hash').textContent();
    const loss = page.getByRole('slider', { name: 'loss' });
    await loss.press('ArrowRight');
    await expect.poll(() => page.url()).toContain('loss=0.01');
    await complete(page);
    await expect.poll(() => page.locator('.hash').textContent()).not.toBe(hash);
    await loss.press('ArrowLeft');
    await expect.poll(() => page.locator('.hash').textContent()).toBe(hash);
    const time = page.locator('.time-now');
    const before = await time.textContent();
    await page.getByRole('button', { name: 'Next packet' }).click();
    expect(await time.textContent()).not.toBe(before);
    await page.close();
  });

  it.each(['light', 'dark'] as const)(
    'has no violation that axe finds in any scene (%s)',
    { timeout: CATALOGUE_MS },
    async (colorScheme) => {
      const width = colorScheme === 'light' ? 390 : 1024;
      const page = await open(`${url}#livelock?schemes=go-back-0&message=64+KiB&lang=en`, {
        colorScheme,
        viewport: { width, height: 800 },
      });
      await page.evaluate(axe.source);
      for (const { name, parameters } of SIMULATED_SCENES) {
        const isRow = await page.locator(`nav a[href^="#${name}?"]`).isVisible();
        expect(isRow, name).toBe(true);
        await page.evaluate(`location.hash = '#${name}?lang=${colorScheme === 'light' ? 'zh' : 'en'}'`);
        await page.locator(`nav a[href^="#${name}?"][aria-current]`).waitFor();
        await complete(page);
        expect(await page.locator('.settings fieldset small').count(), name).toBe(parameters.length);
        const found = (await page.evaluate('axe.run()')) as {
          violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
        };
        const lines = found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
        expect(lines, name).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBeLessThanOrEqual(width);
      }
      await page.close();
    },
  );

  it('prints in dark colours on light paper, without controls', async () => {
    const page = await open(`${url}#livelock?schemes=go-back-0&message=64+KiB&lang=en`, { colorScheme: 'dark' });
    await complete(page);
    const looks = () =>
      page.evaluate('[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]');
    const dark = await looks();
    await page.emulateMedia({ media: 'print' });
    expect(dark).toEqual(['rgb(22, 20, 18)', 'rgb(245, 245, 244)']);
    expect(await looks()).toEqual(['rgb(245, 245, 244)', 'rgb(28, 25, 23)']);
    expect(await page.locator('.tools').isVisible()).toBe(false);
    await page.close();
  });

  it.each(['light', 'dark'] as const)('runs own code only after a click on Run (%s)', async (colorScheme) => {
    const page = await open(`${url}#own?lang=en&code=${encodeURIComponent('for (;;);')}`, { colorScheme });
    const code = page.getByRole('textbox', { name: 'code' });
    await page.locator('.scene[data-state=held]').waitFor();
    expect(await page.locator('.verdict').textContent()).toMatch(/^This link contains code/);
    await page.getByRole('button', { name: 'Run' }).click(); // It never returns: the page stays usable.
    await page.locator('.scene[data-state=running]').waitFor();
    await code.fill('const a = 1;\nfail();');
    await page.getByRole('button', { name: 'Run' }).click();
    await complete(page);
    expect(await page.locator('.verdict').textContent()).toMatch(/line 2: fail is not defined/);
    expect(page.url()).toContain('fail%28%29');
    await page.getByRole('button', { name: 'Reset' }).click();
    await expect.poll(() => page.locator('.verdict').textContent()).toMatch(/^(?:Your|A built-in) scheme delivers/);
    await complete(page);
    await page.evaluate(axe.source);
    expect(((await page.evaluate('axe.run()')) as { violations: unknown[] }).violations).toEqual([]);
    await page.close();
  });

  it.each(['light', 'dark'] as const)('reads a capture without a request (%s)', async (colorScheme) => {
    const page = await open(`${url}#capture?lang=en`, { colorScheme });
    await page.getByLabel('Choose a capture').setInputFiles('test/golden/loss-req-send-rc-v4.pcapng');
    await complete(page);
    expect(await page.locator('.verdict').textContent()).toMatch(/^No rule is broken/);
    expect(await page.locator('.rung.dropped').count()).toBeGreaterThan(0);
    await page.getByRole('button', { name: 'Example' }).click();
    await expect.poll(() => page.locator('.verdict').textContent()).toMatch(/^Rules that must be kept are broken: 11/);
    const number = page.locator('.packet-number').first();
    await number.click();
    expect(await page.locator('mark').textContent()).toBe(await number.textContent());
    await page.evaluate(axe.source);
    expect(((await page.evaluate('axe.run()')) as { violations: unknown[] }).violations).toEqual([]);
    await page.close();
  });

  it('is embedded by an element', async () => {
    const host = join(folder, 'host.html');
    writeFileSync(host, '<script src="rocev2-lab.js"></script><rocev2-lab scene="livelock" loss="0.05"></rocev2-lab>');
    const page = await open(pathToFileURL(host).href);
    const frame = page.frameLocator('iframe');
    await frame.locator('.scene[data-state=complete]').waitFor({ timeout: 60_000 });
    expect(await frame.getByRole('slider', { name: 'loss' }).getAttribute('aria-valuetext')).toBe('0.05');
    await page.close();
  });
});

describe('the engine', () => {
  const table = (hashes: readonly string[]) => hashRows([hashes]);
  let program: string;
  let inNode: Promise<string[]> | undefined;

  beforeAll(async () => {
    program = await simulatorForPages();
  });

  it('simulates every scenario of the catalogue in Chromium as in Node.js', { timeout: CATALOGUE_MS }, async (test) => {
    test.skip(chromiumPath === undefined, 'Chromium is not installed');
    const browser = await launch();
    try {
      const page = await browser.newPage();
      await page.evaluate(program);
      const inBrowser = page.evaluate(hashesInPage, SHORT_SCENARIOS); // At the same time as Node.js.
      inNode ??= hashesInNode();
      expect(table(await inBrowser)).toEqual(table(await inNode));
    } finally {
      await browser.close();
    }
  });

  it('simulates every scenario of the catalogue in Firefox as in Node.js', { timeout: CATALOGUE_MS }, async (test) => {
    test.skip(firefoxPath === undefined, 'Firefox is not installed');
    const browser = await launchFirefox(CATALOGUE_MS);
    try {
      const page = await browser.newPage();
      await page.evaluate(program);
      const inBrowser = page.evaluate(hashesInPage, SHORT_SCENARIOS); // At the same time as Node.js.
      inNode ??= hashesInNode();
      expect(table(await inBrowser)).toEqual(table(await inNode));
    } finally {
      await browser.close();
    }
  });

  it('has the hashes that the documents list', { timeout: CATALOGUE_MS }, async () => {
    inNode ??= hashesInNode();
    const hashes = await inNode;
    expect(new Set(hashes).size).toBeGreaterThan(10);
    const listed = readFileSync(DOCUMENT, 'utf8').split('\n');
    expect(listed.filter((line) => hashRows([hashes, hashes, hashes]).includes(line))).toHaveLength(hashes.length);
  });
});
