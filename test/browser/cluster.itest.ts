/** The page over a cluster of extents: a node is killed, and comes back. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttachedCluster, AttachedState } from '../../packages/dashboard/src/messages/attached.js';
import { Program } from '../e2e/executable.js';
import { RuntimeFolder } from '../support/runtime-folder.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

/** A loaded machine takes its time for five processes, and a manager takes a node for down after five seconds. */
const SLOW_MS = 60_000;
const SLOW = { timeout: SLOW_MS };
const HOSTILE = '<img src=x onerror=alert(1)>';

describe.skipIf(chromiumPath === undefined)('the page over a cluster', { timeout: 4 * SLOW_MS }, () => {
  let runtime: RuntimeFolder;
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];
  let up: Program;
  let manager: string;
  const started: Program[] = [];

  beforeAll(async () => {
    runtime = await RuntimeFolder.take('cluster');
    const dir = join(runtime.path, 'c');
    up = Program.rocev2('extents', 'up', '--dir', dir, '--nodes', '4', '-p', '0', '--extent-size', '1MiB', '--estats');
    await up.writes('stderr', /Ctrl-C ends it/);
    manager = /the manager is at (\S+),/.exec(up.stderr)![1];
    const file = join(runtime.path, 'data');
    writeFileSync(file, Buffer.alloc(3 << 20, 1));
    expect(await Program.rocev2('extents', 'append', 'log', file, '--manager', manager).ended()).toBe(0);
    browser = await launch();
    dashboard = await RunningDashboard.start('--attach', manager);
    ({ page, troubles } = await openPage(browser, dashboard.url));
  }, 2 * SLOW_MS);

  afterAll(async () => {
    for (const program of [...started, up]) {
      program.kill('SIGINT');
      await program.ended();
    }
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
    expect(troubles).toEqual([]);
  }, SLOW_MS);

  const cluster = async () => {
    const { programs } = await dashboard.document<AttachedState>('state');
    return programs[0] as AttachedCluster | undefined;
  };
  const shownState = (of: Page, node: number) => of.locator(`.nodes [data-node="${node}"]`).getAttribute('data-state');
  const line = (node: number) => page.locator(`.nodes [data-node="${node}"]`);
  const readout = async (label: string) =>
    Number(await page.locator(`.readouts [data-name="${label}"]`).getAttribute('data-value'));
  const event = (text: string | RegExp) =>
    page
      .getByRole('list', { name: /events/ })
      .getByText(text)
      .first();

  it('shows nodes, extents, space and streams as the manager tells them', async () => {
    await page.locator('.readouts[data-sample]').waitFor(SLOW);
    await expect.poll(() => readout('nodes up'), SLOW).toBe(4);
    await expect.poll(() => readout('stored'), SLOW).toBeGreaterThan(9 << 20); // Three times, with heads.
    const { detail, samples } = (await cluster())!;
    expect(detail.nodes.map(({ node }) => node)).toEqual([1, 2, 3, 4]);
    await page.getByText(`cluster ${detail.cluster}; the manager at ${manager} leads`).waitFor();
    for (const { node, address, domain } of detail.nodes) {
      expect(await line(node).textContent()).toContain(address);
      expect(await line(node).textContent()).toContain(domain);
    }
    const { reading } = samples.at(-1)!;
    expect(await readout('sealed')).toBe(reading!.replicated + reading!.coded);
    expect(await readout('sealed')).toBeGreaterThan(1);
    expect(await page.getByRole('table', { name: 'streams' }).textContent()).toContain('log');
    for (const title of ['Nodes by state', 'Extents by state', 'Space in use by node', 'Free space'])
      await page.getByRole('region', { name: title }).locator('.plot .axis').waitFor();
    expect(await page.getByRole('region', { name: 'Managers' }).isVisible()).toBe(false);
  });

  it('shows a node that is killed as down, repairs what it had, and shows that it is back', async () => {
    const { nodes } = (await cluster())!.detail;
    const { node: killed } = nodes.reduce((a, b) => (b.replicas > a.replicas ? b : a));
    const another = nodes.find(({ node }) => node !== killed)!.node;
    // The twin: a page that hears nothing of the cluster goes on to show the node as it was.
    const deaf = await openPage(browser, 'about:blank');
    await deaf.page.route('**/stream', () => {}); // Never answered.
    await deaf.page.goto(dashboard.url);
    await deaf.page.locator(`.nodes [data-node="${killed}"]`).waitFor();
    const before = await shownState(deaf.page, killed);
    expect(before).not.toBe('down');

    const pid = Number(new RegExp(`^node ${killed} is at .*process (\\d+)$`, 'm').exec(up.stderr)![1]);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => shownState(page, killed), SLOW).toBe('down');
    await event(`node ${killed} is down`).waitFor(SLOW);
    await expect.poll(() => readout('down'), SLOW).toBe(1);
    expect(await line(killed).locator('.state').textContent()).toBe('down');
    await expect.poll(() => shownState(page, another), SLOW).not.toBe('down');
    expect(await shownState(deaf.page, killed)).toBe(before);
    await deaf.page.close();

    await expect.poll(() => readout('under-replicated'), SLOW).toBe(0);
    await expect.poll(() => readout('repairs done'), SLOW).toBeGreaterThan(0);
    const folder = join(runtime.path, 'c', `node${killed}`);
    started.push(Program.rocev2('extents', 'node', '--dir', folder, '--join', manager, '--domain', HOSTILE));
    await expect.poll(() => shownState(page, killed), SLOW).toBe('up');
    await event(`node ${killed} is back`).waitFor(SLOW);
    const strip = line(killed).getByRole('img');
    await expect.poll(() => strip.getAttribute('aria-label'), SLOW).toMatch(/down, then (.*, then )?up$/);
  });

  it('shows what a node says of itself as text, whatever it says', async () => {
    await page.getByRole('table', { name: 'nodes' }).getByText(HOSTILE, { exact: true }).waitFor(SLOW);
    expect(await page.locator('img').count()).toBe(0);
  });

  it('is as good in the dark, and in a narrow window', async () => {
    const viewport = { width: 420, height: 800 };
    const other = await openPage(browser, dashboard.url, { colorScheme: 'dark', viewport });
    await other.page.locator('.nodes [data-node="1"]').waitFor();
    expect(await other.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    // Found and measured at once: each reading of the cluster makes the rows anew, and an element that has left the page has no place in it.
    const strip = `document.querySelector('.nodes [data-node="1"] .node-strip').getBoundingClientRect()`;
    const { right, width } = await other.page.evaluate<{ right: number; width: number }>(`${strip}.toJSON()`);
    expect(width).toBeGreaterThan(0);
    expect(right).toBeLessThan(viewport.width); // State and history need no scrolling.
    await other.page.close();
    expect(other.troubles).toEqual([]);
  });
});
