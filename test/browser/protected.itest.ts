/** The page over two programs whose packets are protected, and an attacker whose are not. */

import { createSocket } from 'node:dgram';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttachedEndpoint, AttachedState } from '../../packages/dashboard/src/messages/attached.js';
import { connectionName } from '../../packages/dashboard/src/messages/connection-name.js';
import { Program } from '../e2e/executable.js';
import { RuntimeFolder } from '../support/runtime-folder.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

const MAIN = fileURLToPath(new URL('../../packages/cli/bin/rocev2.js', import.meta.url));
const [SERVER, CLIENT] = ['127.61.5.1', '127.61.5.2'];
const SLOW = { timeout: 20_000 };

describe.skipIf(chromiumPath === undefined)('protected connections on the page', () => {
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];
  let runtime: RuntimeFolder;
  const programs: Program[] = [];

  beforeAll(async () => {
    runtime = await RuntimeFolder.take('protected'); // Programs inherit it.
    const keys = join(runtime.path, 'keys.psk');
    await writeFile(keys, `alice:${'5a'.repeat(32)}\n`, { mode: 0o600 });
    const common = ['bw', 'write', '--psk', keys, '-p', '18584', '-s', '4096', '--estats'];
    const server = new Program(MAIN, [...common, '--bind', SERVER]);
    programs.push(server);
    await server.writes('stderr', /waiting for/);
    programs.push(new Program(MAIN, [...common, SERVER, '--bind', CLIENT, '-D', '600s', '--rate', '20Mbps']));
    browser = await launch();
    dashboard = await RunningDashboard.start('--attach');
    ({ page, troubles } = await openPage(browser, dashboard.url));
  });

  afterAll(async () => {
    for (const program of programs.reverse()) {
      program.kill('SIGINT');
      await program.ended();
    }
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
  });

  const server = async () => {
    const { programs: all } = await dashboard.document<AttachedState>('state');
    return all.find(({ kind, address }) => kind === 'endpoint' && address === SERVER) as AttachedEndpoint | undefined;
  };

  it('names the peer, the cipher and the SPIs, and what was dropped', async () => {
    await expect.poll(async () => (await server())?.detail.protections[0]?.opened ?? 0, SLOW).toBeGreaterThan(10);
    await page.locator('.programs li', { hasText: 'endpoint' }).filter({ hasText: SERVER }).click();
    const { conn, sendSpi, receiveSpi } = (await server())!.detail.protections[0];
    const row = page.getByRole('table', { name: 'protected connections' }).locator('tbody tr');
    await row.waitFor();
    const cells = await row.locator('td').allTextContents();
    const spi = (value: number) => `0x${value.toString(16)}`;
    expect(cells.slice(0, 5)).toEqual([connectionName(conn), 'alice', 'aes-128-gcm', spi(sendSpi), spi(receiveSpi)]);
    expect(cells.slice(7)).toEqual(['0', '0', '0']);
    const panel = page.getByRole('region', { name: 'Protected connections' });
    await panel.getByText('Dropped by the endpoint: nothing.').waitFor();

    const attacker = createSocket('udp4');
    attacker.send(Buffer.alloc(64, 4), 4791, SERVER);
    await panel.getByText('Dropped by the endpoint: 1 plain.').waitFor(SLOW);
    attacker.close();
    await page
      .getByRole('list', { name: /events/ })
      .getByText(/packet dropped: no peer has sealed it/)
      .waitFor();
    expect(troubles).toEqual([]);
  });
});
