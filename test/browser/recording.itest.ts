import { formatNs, formatRate } from '@rocev2/command/plot';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RecordingState } from '../../packages/dashboard/src/messages/recording-messages.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

/** For the page: resolves after thirty frames that the browser has drawn. */
const FRAMES = `new Promise((resolve) => {
  let left = 30;
  const frame = () => (left-- > 0 ? requestAnimationFrame(frame) : resolve());
  frame();
})`;

describe.skipIf(chromiumPath === undefined)('the page over a recorded simulation', () => {
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];

  beforeAll(async () => {
    browser = await launch();
    dashboard = await RunningDashboard.start('--sim', 'dcqcn-n2-4us');
    ({ page, troubles } = await openPage(browser, dashboard.url));
    await page.locator('.readouts[data-sample]').waitFor();
  });

  afterEach(() => expect(troubles).toEqual([]));

  afterAll(async () => {
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
  });

  const shown = (name: string) => page.locator(`[data-name="${name}"]`).textContent();

  it('shows any moment of it, by slider and by keys', async () => {
    const { result } = await dashboard.document<RecordingState>('state');
    const { timeNs, rateBps } = result.series;
    const rateAt = (index: number) => formatRate(rateBps.reduce((sum, values) => sum + values[index], 0));
    expect(await shown('time')).toBe(formatNs(timeNs[0]));
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowLeft');
    expect(await shown('time')).toBe(formatNs(timeNs[2]));
    expect(await shown('sent by all hosts')).toBe(rateAt(2));
    const middle = Math.floor(timeNs.length / 2);
    await page.getByRole('slider', { name: 'time' }).fill(String(middle));
    expect(await shown('time')).toBe(formatNs(timeNs[middle]));
    expect(await shown('sent by all hosts')).toBe(rateAt(middle));
    await page.keyboard.press('End');
    expect(await shown('CNPs so far')).toBe(String(result.series.cnps.reduce((sum, count) => sum + count, 0)));
  });

  it('plays and pauses', async () => {
    const slider = page.getByRole('slider', { name: 'time' });
    await page.keyboard.press('Home');
    await page.keyboard.press(' ');
    await expect.poll(() => slider.inputValue().then(Number)).toBeGreaterThan(3);
    await page.getByRole('button', { name: 'Pause' }).click();
    const stopped = await slider.inputValue();
    await page.evaluate(FRAMES); // A playing one would advance meanwhile.
    expect(await slider.inputValue()).toBe(stopped);
  });

  it('draws hosts, the switch and its queue', async () => {
    const network = page.getByRole('img', { name: /hosts and switches/ });
    for (const node of ['h0', 'h1', 's0']) await network.getByText(node, { exact: true }).waitFor();
    expect(await network.locator('.queue').count()).toBeGreaterThanOrEqual(1);
  });
});
