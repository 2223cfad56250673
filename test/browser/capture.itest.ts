import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CaptureState } from '../../packages/dashboard/src/messages/ladder-messages.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

const CAPTURE = fileURLToPath(new URL('../golden/loss-req-send-rc-v4.pcapng', import.meta.url));

describe.skipIf(chromiumPath === undefined)('the page over a capture', () => {
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];

  beforeAll(async () => {
    browser = await launch();
    dashboard = await RunningDashboard.start('--capture', CAPTURE);
    ({ page, troubles } = await openPage(browser, dashboard.url));
    await page.locator('.rung').first().waitFor();
  });

  afterEach(() => expect(troubles).toEqual([]));

  afterAll(async () => {
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
  });

  const state = () => dashboard.document<CaptureState>('state');
  const detail = () => page.locator('.ladder-detail').textContent();

  it('draws a line for each packet that the state has, in its order, and crosses for those that were lost', async () => {
    const [{ packets, name }] = (await state()).connections;
    const drawn = await page
      .locator('.rung')
      .evaluateAll((rungs) => rungs.map((rung) => rung.getAttribute('data-number')));
    expect(drawn).toEqual(packets.map(({ number }) => String(number)));
    expect(await page.locator('.rung .cross').count()).toBe(packets.filter(({ isLost }) => isLost).length);
    expect(await page.locator('.rung.nak').count()).toBe(packets.filter(({ kind }) => kind === 'nak').length);
    expect(await page.locator('.rung.repeated').count()).toBe(packets.filter(({ isRepeated }) => isRepeated).length);
    expect(await page.locator('[data-name="lost"]').textContent()).toBe('5');
    expect(await page.getByRole('combobox', { name: 'connection' }).textContent()).toContain(name);
  });

  it('goes from one trouble to the next, and says what happened', async () => {
    await page.keyboard.press('n');
    expect(await detail()).toMatch(
      /^Packet 7: RC SEND_FIRST, 6 of the connection .* It did not arrive: packet 20 is a NAK/,
    );
    await page.keyboard.press('n');
    expect(await detail()).toMatch(/^Packet 20: NAK PSN_SEQUENCE_ERROR/);
    await page.getByRole('button', { name: 'Next trouble' }).click();
    expect(await detail()).toMatch(/^Packet 21: .* Retransmitted after the NAK of packet 20/);
    await page.keyboard.press('p');
    expect(await detail()).toMatch(/^Packet 20/);
    await page.keyboard.press('ArrowUp');
    expect(await detail()).toMatch(/^Packet 19: ACK/);
  });

  it('shows the packets of the stretch of time that is chosen, and no others', async () => {
    const edge = page.getByRole('slider', { name: 'time: end of the stretch' });
    for (let i = 0; i < 40; i++) await edge.press('ArrowLeft');
    const to = Number(await edge.getAttribute('aria-valuenow'));
    const [{ packets }] = (await state()).connections;
    const inTime = packets.filter(({ sentNs }) => sentNs <= to + 1).length;
    expect(inTime).toBeLessThan(packets.length);
    expect(await page.locator('.rung').count()).toBe(inTime);
  });

  it('fits a phone, and shows nothing to who does not have the token', async () => {
    const phone = await openPage(browser, dashboard.url, { viewport: { width: 390, height: 844 } });
    await phone.page.locator('.rung').first().waitFor();
    expect(await phone.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await phone.page.close();
    expect((await fetch(`${new URL(dashboard.url).origin}/state`)).status).toBe(404);
  });
});
