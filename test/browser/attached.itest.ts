import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises'; // timer: the rate at which a disk is used
import { fileURLToPath } from 'node:url';
import { formatByteRate, formatBytes, formatCount, formatRate, formatShare } from '@rocev2/command/plot';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AttachedProgram, AttachedState } from '../../packages/dashboard/src/messages/attached.js';
import { connectionName } from '../../packages/dashboard/src/messages/connection-name.js';
import { openBackend } from '../../src/storage-rpc/open-backend.js';
import { Program } from '../e2e/executable.js';
import { RuntimeFolder } from '../support/runtime-folder.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

const MAIN = fileURLToPath(new URL('../../packages/cli/bin/rocev2.js', import.meta.url));
const SERVER = '127.61.4.1';
const GATEWAY = '127.61.4.2';
const SWITCH = '127.61.4.3';
const RECEIVER = '10.61.4.1';
const SENDER = '10.61.4.2';
const SLOW = { timeout: 20_000 };

describe.skipIf(chromiumPath === undefined)('the page over running programs', () => {
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];
  let runtime: RuntimeFolder;
  const programs: Program[] = [];
  const idle = new AbortController();
  let io: Promise<void> | undefined;

  beforeAll(async () => {
    runtime = await RuntimeFolder.take('attached'); // Programs inherit it.
    browser = await launch();
    dashboard = await RunningDashboard.start('--attach');
    ({ page, troubles } = await openPage(browser, dashboard.url));
  });

  afterEach(() => expect(troubles).toEqual([]));

  afterAll(async () => {
    idle.abort();
    await io;
    for (const program of programs.reverse()) {
      program.kill('SIGINT');
      await program.ended();
    }
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
  });

  async function start(ready: RegExp, ...args: string[]): Promise<Program> {
    const program = new Program(MAIN, [...args, '--estats']);
    programs.push(program);
    await program.writes('stderr', ready);
    return program;
  }

  const state = () => dashboard.document<AttachedState>('state');
  const line = (kind: string, place: string) =>
    page.locator('.programs li', { hasText: kind }).filter({ hasText: place });
  const isChosen = (kind: string, place: string) => line(kind, place).getAttribute('aria-selected');
  const events = () => page.getByRole('list', { name: /events/ });

  async function programOf<K extends AttachedProgram['kind']>(kind: K, address: string) {
    const found = (await state()).programs.find((program) => program.kind === kind && program.address === address);
    if (found === undefined)
      throw new Error(`no ${kind} on ${address}: ${programs.map(({ stderr }) => stderr).join('')}`);
    return found as Extract<AttachedProgram, { kind: K }>;
  }

  /** Stops the page, and returns the sample it shows and how it shows a number. */
  async function frozen<K extends AttachedProgram['kind']>(kind: K, address: string) {
    await page.locator('.readouts[data-sample]').waitFor();
    await page.keyboard.press(' ');
    const number = Number(await page.locator('.readouts').getAttribute('data-sample'));
    const { samples } = await programOf(kind, address).catch(async (error) => {
      await page.keyboard.press(' '); // For the tests behind this one.
      throw error;
    });
    type Sample = Extract<AttachedProgram, { kind: K }>['samples'][number];
    const sample = samples.find((candidate) => candidate.number === number) as Sample;
    const shown = async (label: string) => {
      const cell = page.locator(`[data-name="${label}"]`);
      return { value: Number(await cell.getAttribute('data-value')), text: await cell.textContent() };
    };
    return { sample, shown, [Symbol.asyncDispose]: () => page.keyboard.press(' ') };
  }

  it('says how something can be watched while nothing can', async () => {
    await page.getByText('Nothing that can be watched is running here').waitFor();
    expect(await page.locator('.programs').isVisible()).toBe(false);
    expect(await page.locator('pre').textContent()).toContain('rocev2 switch');
    expect(await state()).toMatchObject({ kind: 'attached', which: [], programs: [], events: [] });
  });

  it('lists programs as they appear: a switch, a disk and its gateway, two endpoints behind the switch', async () => {
    const ports = ['--port', `a=${SWITCH}:5001`, '--port', `b=${SWITCH}:5002`, '--rate', '100Mbps'];
    await start(/Ctrl-C/, 'switch', ...ports, '--ecn', '20KB,120KB,0.2', '--loss', 'random=0.001');
    await line('switch', SWITCH).waitFor();
    expect(await page.locator('pre').isVisible()).toBe(false);

    await start(/Ctrl-C/, 'disk', 'serve', '--backend', 'memory', '--size', '64MiB', '--bind', SERVER, '-p', '18564');
    const listen = `unix:${join(runtime.path, 'disk.sock')}`;
    await start(
      /Ctrl-C/,
      'disk',
      'nbd',
      '--connect',
      SERVER,
      '-p',
      '18564',
      '--bind',
      GATEWAY,
      '--listen',
      listen,
      '--hold-down',
      '3s',
    );
    const receiver = ['--frame', `${SWITCH}:5001,1Gbps`, '--bind', RECEIVER, '-p', '18574'];
    await start(/waiting for/, 'bw', 'write', ...receiver);
    const sender = [
      '127.0.0.1',
      '--frame',
      `${SWITCH}:5002,1Gbps`,
      '--bind',
      SENDER,
      '-p',
      '18574',
      '-q',
      '2',
      '-t',
      '4',
    ];
    programs.push(
      new Program(MAIN, [
        'bw',
        'write',
        ...sender,
        '-D',
        '600s',
        '-u',
        '18',
        '--cc',
        'dcqcn',
        '--rate',
        '150Mbps',
        '--estats',
      ]),
    );
    io = useDisk(`nbd+unix:///disk0?socket=${join(runtime.path, 'disk.sock')}`, idle.signal);

    for (const [kind, place] of [
      ['endpoint', SERVER],
      ['disk', SERVER],
      ['endpoint', GATEWAY],
      ['disk', listen],
      ['endpoint', RECEIVER],
      ['endpoint', SENDER],
    ] as const) {
      await line(kind, place).waitFor();
      await events()
        .getByText(new RegExp(`${kind} \\d+ on ${place} is there`))
        .waitFor();
    }
    expect(await page.locator('.programs li').count()).toBe(7);
  });

  it('walks through the list with the arrow keys, and to the details with Enter', async () => {
    await page.locator('.programs li').first().click();
    const chosen = () => page.locator('.programs li[aria-selected="true"]').textContent();
    const lines = await page.locator('.programs .place').allTextContents();
    expect(await chosen()).toContain(lines[0]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await chosen()).toContain(lines[2]);
    await page.keyboard.press('ArrowUp');
    expect(await chosen()).toContain(lines[1]);
    for (let i = 0; i < 10; i++) await page.keyboard.press('ArrowDown');
    expect(await chosen()).toContain(lines[6]);
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.querySelector("h2").textContent')).toMatch(
      /Endpoint|Switch|Disk/,
    );
  });

  it('shows of an endpoint the numbers that the state has', async () => {
    await line('endpoint', SENDER).click();
    expect(await isChosen('endpoint', SENDER)).toBe('true');
    const repaired = async () => (await programOf('endpoint', SENDER)).samples.at(-1)?.totals.resent ?? 0;
    await expect.poll(repaired, SLOW).toBeGreaterThan(0);
    await using now = await frozen('endpoint', SENDER);
    const { outBps, inBps, totals } = now.sample;
    expect(outBps).toBeGreaterThan(1e6);
    expect(await now.shown('sends')).toEqual({ value: outBps, text: formatRate(outBps) });
    expect(await now.shown('receives')).toEqual({ value: inBps, text: formatRate(inBps) });
    expect(await now.shown('retransmitted')).toEqual({ value: totals.resent, text: formatCount(totals.resent) });
    expect(await now.shown('CNPs received')).toEqual({
      value: totals.cnpsReceived,
      text: formatCount(totals.cnpsReceived),
    });
    expect(await line('endpoint', SENDER).locator('.throughput').textContent()).toBe(
      `receives ${formatRate(inBps)}, sends ${formatRate(outBps)}`,
    );
  });

  it('draws allowed rate and alpha of both connections, stages of the latency, and who owns it', async () => {
    const { samples, detail } = await programOf('endpoint', SENDER);
    const [one, two] = samples.at(-1)!.connections;
    expect(one.rateBps).toBeGreaterThan(0);
    expect(two.alpha).toBeGreaterThan(0);
    for (const title of ['Rate that is allowed', 'DCQCN’s alpha']) {
      const legend = page.getByRole('region', { name: title }).locator('.chart-legend');
      for (const { conn } of [one, two]) await legend.getByText(connectionName(conn)).waitFor();
    }
    const parts = (await page.evaluate(
      `[...document.querySelectorAll('.stage-bar[data-op="RDMA_WRITE"] .part')].map((part) => [Number(part.dataset.share), part.textContent])`,
    )) as Array<[number, string]>;
    expect(parts).toHaveLength(5);
    expect(parts.reduce((sum, [share]) => sum + share, 0)).toBeCloseTo(1, 6);
    const [share, text] = parts.reduce((a, b) => (b[0] > a[0] ? b : a));
    expect(text).toMatch(new RegExp(`^T\\d-T\\d ${formatShare(share)}$`));
    const { conn, owner } = detail.verdicts[0];
    expect(owner).toMatch(/^(sender|pacing|network|responder|application)$/);
    await page.getByRole('table', { name: 'cause of the latency' }).getByText(connectionName(conn)).first().waitFor();
    await page.locator('.latencies [data-op="RDMA_WRITE"]').waitFor();
    await line('endpoint', RECEIVER).click();
    const allowedRate = page.locator('section', { hasText: 'Rate that is allowed' });
    await allowedRate.waitFor({ state: 'visible' }); // Both sides have DCQCN.
    await line('endpoint', SERVER).click();
    await allowedRate.waitFor({ state: 'hidden' });
  });

  it('shows of a switch the numbers that the state has, port by port', async () => {
    await line('switch', SWITCH).click();
    const congested = async () => {
      const totals = (await programOf('switch', SWITCH)).samples.at(-1)?.totals;
      return totals !== undefined && totals.dropped > 0 && totals.marked > 0;
    };
    await expect.poll(congested, SLOW).toBe(true);
    await using now = await frozen('switch', SWITCH);
    const { outBps, totals, ports } = now.sample;
    expect(await now.shown('sends')).toEqual({ value: outBps, text: formatRate(outBps) });
    expect(await now.shown('marked')).toEqual({ value: totals.marked, text: formatCount(totals.marked) });
    expect(await now.shown('dropped')).toEqual({ value: totals.dropped, text: formatCount(totals.dropped) });
    expect(await now.shown('queued')).toEqual({ value: totals.queueBytes, text: formatBytes(totals.queueBytes) });
    expect(ports.map(({ name }) => name)).toEqual(['a', 'b']);
    const table = page.getByRole('table', { name: 'ports', exact: true });
    await table.getByText(`${SWITCH}:5002`).waitFor();
    await table
      .getByText(/tx_dropped_fault \d+/)
      .first()
      .waitFor();
    expect(await page.getByRole('table', { name: 'fault rules' }).textContent()).toContain('random=0.001');
    await events()
      .getByText(/switch .*: packet dropped/)
      .first()
      .waitFor();
  });

  it('shows the stretch of time that is dragged out in a chart in all charts, of other programs, too, until it follows again', async () => {
    await line('endpoint', SENDER).click();
    const enough = async () => (await programOf('endpoint', SENDER)).samples.length;
    await expect.poll(enough, SLOW).toBeGreaterThan(4);
    const shown = () => page.locator('.time-range output').textContent();
    const newest = page.getByRole('button', { name: 'Follow the newest' });
    expect(await newest.isVisible()).toBe(false);
    const times = () => page.locator('.detail .chart-legend tr:first-child .value').allTextContents();
    const plot = page.getByRole('region', { name: 'Sent by connection' }).locator('.plot-area');
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 4 });
    await page.mouse.up();
    await page.mouse.move(0, 0); // Its legend has the newest value again.
    await newest.waitFor();
    const stretch = await shown();
    const { number, timeNs } = (await programOf('endpoint', SENDER)).samples.at(-1)!;
    const held = async () => [...new Set((await times()).map(Number.parseFloat))];
    await expect.poll(async () => (await held()).length).toBe(1);
    expect((await held())[0]).toBeLessThan(timeNs / 1e9);

    await line('switch', SWITCH).click();
    await expect
      .poll(async () => (await programOf('endpoint', SENDER)).samples.at(-1)!.number, SLOW)
      .toBeGreaterThan(number + 1);
    expect(await shown()).toBe(stretch);
    await expect.poll(async () => Math.max(...(await held()))).toBeLessThan(timeNs / 1e9);

    const edge = page.getByRole('slider', { name: 'time: end of the stretch' });
    const before = Number(await edge.getAttribute('aria-valuenow'));
    await edge.press('ArrowRight');
    expect(Number(await edge.getAttribute('aria-valuenow'))).toBeGreaterThan(before);
    await newest.click();
    await expect.poll(() => newest.isVisible()).toBe(false);
    await expect.poll(async () => Math.min(...(await held())), SLOW).toBeGreaterThan(timeNs / 1e9);
  });

  it('names connections in events as the list of connections does', async () => {
    const texts = await events().locator('li').allTextContents();
    expect(texts.length).toBeGreaterThan(5);
    expect(texts.filter((text) => /0x[0-9a-f]+>/.test(text))).toEqual([]);
  });

  it('shows of a disk the numbers that the state has, and a failover while it goes on', async () => {
    const address = `unix:${join(runtime.path, 'disk.sock')}`;
    await line('disk', address).click();
    const isUsed = async () => ((await programOf('disk', address)).samples.at(-1)?.outBps ?? 0) > 0;
    await expect.poll(isUsed, SLOW).toBe(true);
    {
      await using now = await frozen('disk', address);
      const { outBps, inBps, totals } = now.sample;
      expect(await now.shown('is read')).toEqual({ value: outBps, text: formatByteRate(outBps) });
      expect(await now.shown('is written')).toEqual({ value: inBps, text: formatByteRate(inBps) });
      expect(await now.shown('requests')).toEqual({ value: totals.requests, text: formatCount(totals.requests) });
    }
    const isOnRdma = async () => (await programOf('disk', address)).detail.path === 'RDMA';
    await expect.poll(isOnRdma, SLOW).toBe(true);
    const { pid: gateway, samples } = await programOf('disk', address);
    const failovers = samples.at(-1)!.totals.failovers;
    process.kill(gateway, 'SIGUSR2');
    await events()
      .getByText(/disk .*: failover to TCP/)
      .waitFor();
    const shownFailovers = async () => Number(await page.locator('[data-name="failovers"]').textContent());
    await expect.poll(shownFailovers, SLOW).toBeGreaterThan(failovers);
    await events()
      .getByText(/disk .*: back on RDMA/)
      .waitFor(SLOW);
    await expect.poll(() => line('disk', address).locator('.health').textContent(), SLOW).toBe('good');

    idle.abort();
    await io;
    const isEqual = async () => {
      const { latency } = (await programOf('disk', address)).detail;
      const read = latency.find(({ op }) => op === 'read')!;
      const shown = page.locator('.latencies [data-op="read"]');
      return read.count > 0 && Number(await shown.getAttribute('data-count')) === read.count;
    };
    await expect.poll(isEqual, SLOW).toBe(true);
  });

  it('loses a program that ends, and tells so', async () => {
    await line('endpoint', SENDER).click();
    const { pid } = await programOf('endpoint', SENDER);
    process.kill(pid, 'SIGINT');
    await events().getByText(`endpoint ${pid} on ${SENDER} ended`).waitFor();
    await expect.poll(() => line('endpoint', SENDER).count()).toBe(0);
    expect(await page.locator('.programs li[aria-selected="true"]').count()).toBe(1); // Another one is chosen.
  });

  it('opens on the program with trouble, and stays where a person went', async () => {
    const opened = await openPage(browser, dashboard.url);
    // As if the last of the list were the only one in trouble.
    await opened.page.route('**/state', async (route) => {
      const real = (await (await route.fetch()).json()) as AttachedState;
      const last = Math.max(...real.programs.map(({ pid }) => pid));
      const programs = real.programs.map((program) => ({
        ...program,
        health: program.pid === last ? { isGood: false, text: 'timeouts' } : { isGood: true, text: 'good' },
      }));
      await route.fulfill({ json: { ...real, programs } });
    });
    await opened.page.reload();
    const chosen = opened.page.locator('.programs li[aria-selected="true"]');
    await expect
      .poll(async () => Number((await chosen.locator('.place').textContent())!.split(' ')[0]))
      .toBe(Math.max(...(await state()).programs.map(({ pid }) => pid)));
    const first = opened.page.locator('.programs li').first();
    await first.click();
    expect(await first.getAttribute('aria-selected')).toBe('true');
    await opened.page.close();
  });

  it('is as good in the dark, and in a narrow window', async () => {
    const other = await openPage(browser, dashboard.url, {
      colorScheme: 'dark',
      viewport: { width: 420, height: 800 },
    });
    await other.page.locator('.readouts[data-sample]').waitFor();
    expect(await other.page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(22, 20, 18)');
    expect(await other.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await other.page.close();
    expect(other.troubles).toEqual([]);
  });

  it('shows nothing to who does not have the token', async () => {
    const { origin, pathname } = new URL(dashboard.url);
    expect(pathname).toMatch(/^\/[0-9a-f]{32}\/$/);
    expect((await fetch(`${origin}/state`)).status).toBe(404);
  });
});

/** Writes and reads on the disk of an NBD export until the signal. */
async function useDisk(uri: string, signal: AbortSignal): Promise<void> {
  await using disk = await openBackend(uri, undefined);
  const bytes = Buffer.alloc(65_536, 1);
  for (let i = 0; !signal.aborted; i++) {
    await disk.write((i % 800) * bytes.length, bytes);
    await disk.read((i % 700) * bytes.length, 4096, bytes);
    await delay(5);
  }
}
