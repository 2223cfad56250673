import { formatCount, formatRate } from '@rocev2/command/plot';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LabPacket, LabPackets, LabSample, LabState } from '../../packages/dashboard/src/messages/lab-messages.js';
import { eventually } from '../support/eventually.js';
import { chromiumPath, launch, openPage, RunningDashboard } from './browser.js';

const reason = chromiumPath === undefined ? ' (skipped: there is no Chromium here; CHROMIUM may name one)' : '';

/** For the page: the large numbers that are wider than their tile. */
const TILES_THAT_COLLIDE = `[...document.querySelectorAll('.readouts dd')]
  .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)`;

/** For the page: the names of packets in the ladder that the line of a packet runs through. */
const NAMES_CROSSED = `(() => {
  const lines = [...document.querySelectorAll('.rung line')].map((line) => ['x1', 'y1', 'x2', 'y2'].map((name) => Number(line.getAttribute(name))));
  const runsThrough = ([x1, y1, x2, y2], { x, y, width, height }) => Array.from({ length: 201 }, (_, i) => i / 200)
    .map((part) => [x1 + part * (x2 - x1), y1 + part * (y2 - y1)])
    .some(([atX, atY]) => atX > x && atX < x + width && atY > y && atY < y + height);
  return [...document.querySelectorAll('.rung .name')]
    .filter((name) => lines.some((line) => runsThrough(line, name.getBBox())))
    .map((name) => name.textContent);
})()`;

/** So many packets of four queue pairs, all sent before the first arrives, and answers to them under way meanwhile. */
function burst(count: number): LabPacket[] {
  const packet = (i: number, from: 'a' | 'b'): LabPacket => ({
    timeNs: 100 * i + (from === 'a' ? 0 : 50),
    arrivedNs: 100 * (count + i),
    from,
    operation: `QP ${(i % 4) + 1} ${from === 'a' ? 'RC RDMA_WRITE_MIDDLE' : 'ACK'}`, // As where there are several.
    psn: i,
    relativePsn: i,
    lane: i % 4,
    kind: from === 'a' ? 'data' : 'ack',
    isDropped: false,
    isRepeated: false,
  });
  return Array.from({ length: count }, (_, i) => packet(i, i % 5 === 4 ? 'b' : 'a'));
}

describe.skipIf(chromiumPath === undefined)(`the page over the live lab${reason}`, () => {
  let browser: Browser;
  let dashboard: RunningDashboard;
  let page: Page;
  let troubles: string[];

  beforeAll(async () => {
    browser = await launch();
    dashboard = await RunningDashboard.start();
    ({ page, troubles } = await openPage(browser, dashboard.url));
    await page.locator('.readouts[data-sample]').waitFor();
  });

  afterEach(() => expect(troubles).toEqual([]));

  afterAll(async () => {
    await browser?.close();
    await dashboard?.[Symbol.asyncDispose]();
  });

  const state = () => dashboard.document<LabState>('state');
  const choice = (name: string) => page.getByRole('radio', { name, exact: true });
  const choose = (name: string) => page.locator('label.choice', { hasText: new RegExp(`^${name}$`) }).click();

  /** Samples of the lab once `count` have been taken under these settings. */
  async function samplesUnder(settings: Partial<LabSample['settings']>, count: number): Promise<LabSample[]> {
    let under: LabSample[] = [];
    await eventually(async () => {
      const { samples } = await state();
      const other = samples.findLastIndex((sample) => !includes(sample.settings, settings));
      under = samples.slice(other + 1);
      return under.length >= count;
    });
    return under;
  }

  /** Waits until messages get through under these settings. */
  async function goodputUnder(settings: Partial<LabSample['settings']>): Promise<void> {
    const flows = async () => (await samplesUnder(settings, 2)).some(({ goodputBps }) => goodputBps > 0);
    await expect.poll(flows, { timeout: 20_000 }).toBe(true);
  }

  it('shows go-back-0 in its livelock: a busy link, and nothing comes of it', async () => {
    const samples = await samplesUnder({ scheme: 'go-back-0' }, 8);
    expect(samples.at(-1)!.linkBps).toBeGreaterThan(0);
    expect(samples.at(-1)!.totals.messages).toBe(0);
    await expect.poll(() => page.locator('[data-name="goodput"]').textContent()).toBe('0 b/s');
    expect(await choice('go-back-0').isChecked()).toBe(true);
    expect(await choice('1 packet in 256').isChecked()).toBe(true);
  });

  it('shows goodput and link rate on the first screen, explains the chosen options, and dates its totals', async () => {
    const chart = (await page.getByRole('region', { name: 'Throughput', exact: true }).boundingBox())!;
    expect(chart.y + chart.height).toBeLessThanOrEqual(900);
    await page.getByRole('group', { name: /^rate control: as fast as the link allows$/ }).waitFor();
    await page.getByRole('heading', { name: 'since the start of the lab' }).waitFor();
  });

  it('says why go-back-0 delivers nothing, while it does', async () => {
    const verdict = page.locator('.verdict');
    await expect.poll(() => verdict.textContent()).toMatch(/^Livelock: .*A message is 1024 packets/);
    expect(await verdict.textContent()).toContain('one packet in 256');
    expect(await verdict.getAttribute('class')).toContain('bad');
  });

  it('has the newest values in its legends without a mouse, and says which charts have no data and why', async () => {
    await page.keyboard.press(' ');
    const number = Number(await page.locator('.readouts').getAttribute('data-sample'));
    const sample = (await state()).samples.find((candidate) => candidate.number === number)!;
    const chart = (name: string) => page.getByRole('region', { name, exact: true });
    const legend = (await chart('Throughput').locator('.chart-legend').textContent())!;
    await page.keyboard.press(' '); // For the tests behind this one.
    const [goodput, link] = [sample.goodputBps, sample.linkBps].map(formatRate);
    expect(legend).toBe(`time${(sample.timeNs / 1e9).toFixed(2)} sgoodput${goodput}on the link${link}`);
    for (const [name, why] of [
      ['Rate that rate control allows', 'rate control was “none”'],
      ['DCQCN’s alpha', 'Only DCQCN has an alpha'],
      ['Queue of the switch', 'On the fast link the switch has no queue'],
    ]) {
      expect(await chart(name).locator('.chart-note').textContent()).toContain(why);
    }
    expect(await chart('Throughput').locator('.chart-note').isVisible()).toBe(false);
  });

  it('numbers packets from the start of the connection, and so none is negative', async () => {
    const { packets } = await dashboard.document<LabPackets>('packets');
    const numbers = packets.map(({ relativePsn }) => relativePsn);
    expect(numbers.length).toBeGreaterThan(20);
    expect(numbers.filter((value) => value !== null && value < 0)).toEqual([]);
    expect(numbers).toContain(0); // Where go-back-0 goes back to: nothing of this connection has ever arrived.
  });

  it('recovers when a click switches to go-back-N', async () => {
    await choose('go-back-n');
    await goodputUnder({ scheme: 'go-back-n' });
    expect(await choice('go-back-n').isChecked()).toBe(true);
    const events = page.getByRole('list', { name: /events/ });
    await events.getByText('scheme: go-back-n').waitFor();
    await events
      .getByText(/NAK: PSN sequence error/)
      .first()
      .waitFor();
    for (const chart of await page.locator('.chart').all()) {
      await expect.poll(() => chart.getAttribute('data-marks')).toBe('scheme: go-back-n');
    }
    const verdict = () => page.locator('.verdict').textContent();
    await expect.poll(verdict, { timeout: 20_000 }).toMatch(/^Messages arrive.*by go-back-n \(.*the first lost packet/);
  });

  it('shows the stretch of time that is dragged out, and follows the newest again', async () => {
    const strip = page.locator('.time-range');
    const shown = () => strip.locator('output').textContent();
    const edge = strip.getByRole('slider', { name: 'time: end of the stretch' });
    await edge.scrollIntoViewIfNeeded();
    const box = (await edge.boundingBox())!;
    const track = (await strip.locator('.track').boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(track.x + track.width / 2, box.y + 10, { steps: 4 });
    await page.mouse.up();
    const newest = strip.getByRole('button', { name: 'Follow the newest' });
    await newest.waitFor();
    const words = await shown();
    const time = page.getByRole('region', { name: 'Throughput' }).locator('.chart-legend .value').first();
    const held = Number((await time.textContent())!.split(' ')[0]);
    const last = (await state()).samples.at(-1)!;
    expect(held).toBeLessThan(last.timeNs / 1e9 - 1);
    await eventually(async () => (await state()).samples.at(-1)!.number >= last.number + 3);
    expect(await shown()).toBe(words);
    await edge.press('ArrowRight');
    expect(await edge.getAttribute('aria-valuenow').then(Number)).toBeGreaterThan(held);
    await newest.click();
    await expect.poll(() => newest.isVisible()).toBe(false);
    await expect.poll(async () => Number((await time.textContent())!.split(' ')[0])).toBeGreaterThan(held);
  });

  it('shows the numbers that the state has', async () => {
    await page.keyboard.press(' ');
    const row = page.locator('.readouts');
    const number = Number(await row.getAttribute('data-sample'));
    const sample = (await state()).samples.find((candidate) => candidate.number === number)!;
    const shown = async (name: string) => {
      const cell = page.locator(`[data-name="${name}"]`);
      return { value: Number(await cell.getAttribute('data-value')), text: await cell.textContent() };
    };
    const { goodputBps, linkBps, totals } = sample;
    expect(await shown('goodput')).toEqual({ value: goodputBps, text: formatRate(goodputBps) });
    expect(await shown('on the link')).toEqual({ value: linkBps, text: formatRate(linkBps) });
    expect(await shown('lost')).toEqual({ value: totals.packetsDropped, text: formatCount(totals.packetsDropped) });
    expect(await shown('messages done')).toEqual({ value: totals.messages, text: formatCount(totals.messages) });
    const newest = async () => (await state()).samples.at(-1)!.number;
    const next = (await newest()) + 2;
    await eventually(async () => (await newest()) >= next);
    expect(await row.getAttribute('data-sample')).toBe(String(number)); // Paused, while the lab goes on.
    await page.getByRole('button', { name: 'Pause' }).click();
    await expect.poll(() => row.getAttribute('data-sample')).not.toBe(String(number));
  });

  it('takes keys: 3 for selective repeat, n for no loss; then nothing is lost any more', async () => {
    await page.keyboard.press('3');
    await expect.poll(() => choice('selective-repeat').isChecked()).toBe(true);
    await page.keyboard.press('n');
    const samples = await samplesUnder({ scheme: 'selective-repeat', loss: 'none' }, 6);
    expect(samples.at(-1)!.totals.packetsDropped).toBe(samples.at(-4)!.totals.packetsDropped);
    await page.keyboard.press('1');
    await goodputUnder({ scheme: 'go-back-0', loss: 'none' }); // Without loss there is no livelock.
  });

  it('can READ and SEND', async () => {
    for (const [name, op] of [
      ['READ', 'read'],
      ['SEND', 'send'],
    ] as const) {
      await choose(name);
      await goodputUnder({ op });
    }
  });

  it('shows a queue, marks, CNPs and allowed rates where the link to B is slow, and pauses where there is PFC', async () => {
    for (const name of ['nothing', 'go-back-n', '200 Mb/s, ECN', 'dcqcn']) await choose(name);
    // Each click changes one thing, however soon the next one comes.
    const settings = { loss: 'none', scheme: 'go-back-n', link: 'slow', cc: 'dcqcn' } as const;
    const isCongested = async () => {
      const { totals, queuePairs } = (await samplesUnder(settings, 1)).at(-1)!;
      return totals.marks > 0 && totals.cnps > 0 && queuePairs[0].rateBps !== null && queuePairs[0].alpha !== null;
    };
    await expect.poll(isCongested, { timeout: 20_000 }).toBe(true);
    await choose('none');
    const hasQueue = async () =>
      (await samplesUnder({ link: 'slow', cc: 'none' }, 1)).some(({ queueBytes }) => queueBytes > 0);
    await expect.poll(hasQueue, { timeout: 20_000 }).toBe(true);
    await choose('200 Mb/s, ECN, PFC');
    const pauses = async () => (await samplesUnder({ link: 'slow-pfc' }, 1)).at(-1)!.totals.pauses;
    await expect.poll(pauses, { timeout: 20_000 }).toBeGreaterThan(0);
    await choose('fast');
    await goodputUnder({ link: 'fast' });
  });

  it('lets packets run along the links', async () => {
    const packet = page.locator('.packet').first();
    await packet.waitFor();
    const before = await packet.getAttribute('transform');
    await expect.poll(() => page.locator('.packet').first().getAttribute('transform')).not.toBe(before);
    expect(await page.locator('.story output:not(.ladder-detail)').textContent()).toMatch(
      /^[AB] → [AB], QP 1: .*, packet \d+ of the connection \(PSN 0x[0-9a-f]{6}\)/,
    );
  });

  it('folds long runs in the ladder, opens a fold that is clicked, and shows the NAK without scrolling', async () => {
    const packet = (i: number, change: Partial<LabPacket> = {}): LabPacket => ({
      ...burst(1)[0],
      timeNs: 100 * i,
      arrivedNs: 100 * i + 50,
      operation: 'RC RDMA_WRITE_MIDDLE',
      psn: i,
      relativePsn: i,
      lane: 0,
      ...change,
    });
    const packets = [
      packet(0),
      packet(1, { isDropped: true, arrivedNs: null }),
      ...Array.from({ length: 100 }, (_, i) => packet(i + 2)),
      packet(102, { from: 'b', kind: 'nak', operation: 'NAK PSN_SEQUENCE_ERROR', relativePsn: 1 }),
    ];
    const folded = await openPage(browser, dashboard.url);
    await folded.page.route('**/packets', (route) => route.fulfill({ json: { packets } }));
    await folded.page.reload();
    const fold = folded.page.locator('.rung.fold');
    await fold.getByText('96 × RDMA_WRITE_MIDDLE 4 to 99').waitFor();
    const nak = (await folded.page.locator('.rung.nak .name').boundingBox())!;
    const ladder = (await folded.page.locator('.ladder-scroll').boundingBox())!;
    expect(nak.y + nak.height).toBeLessThan(ladder.y + ladder.height);
    await fold.dispatchEvent('click');
    await expect.poll(() => folded.page.locator('.rung').count()).toBe(packets.length);
    await folded.page.close();
    expect(folded.troubles).toEqual([]);
  });

  it('draws the same packets as a ladder', async () => {
    const rungs = page.locator('.rung');
    await rungs.first().waitFor();
    await rungs.first().dispatchEvent('click');
    expect(await page.locator('.ladder-detail').textContent()).toMatch(
      /^Packet 1: .*endpoint [AB] → endpoint [AB], at 0 ns/,
    );
  });

  it.each([
    ['on a desk', 1280],
    ['on a phone', 390],
  ])('draws no line of the ladder through a name, however many packets are under way: %s', async (_, width) => {
    const busy = await openPage(browser, dashboard.url, { viewport: { width, height: 844 } });
    const packets = burst(60);
    await busy.page.route('**/packets', (route) => route.fulfill({ json: { packets } }));
    await busy.page.reload();
    const names = busy.page.locator('.rung .name');
    await expect.poll(() => names.allTextContents().then((texts) => texts.at(-1))).toMatch(/ 59$/);
    expect(await names.count()).toBe(packets.length);
    expect(await busy.page.evaluate(NAMES_CROSSED)).toEqual([]);
    const room = (await busy.page.locator('.rung line').first().boundingBox())!.width;
    expect(room).toBeGreaterThan(60);
    await busy.page.close();
    expect(busy.troubles).toEqual([]);
  });

  it('has names on all controls, and help behind ?', async () => {
    for (const legend of [
      'recovery scheme (keys 1, 2, 3, 4, 5, 6, 7, 8)',
      'the switch loses',
      'operation',
      'link to B',
    ]) {
      expect(await page.getByRole('group', { name: legend }).getByRole('radio').count()).toBeGreaterThanOrEqual(3);
    }
    expect(await page.getByRole('slider', { name: 'packets per second' }).count()).toBe(1);
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys' });
    await help.getByText('pause and continue').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => help.isVisible()).toBe(false);
  });

  it('is light or dark as the system, until the toggle chooses', async () => {
    const background = (of: Page) => of.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(await background(page)).toBe('rgb(245, 245, 244)');
    await page.keyboard.press('t');
    expect(await background(page)).toBe('rgb(22, 20, 18)');
    const dark = await openPage(browser, dashboard.url, { colorScheme: 'dark' });
    expect(await background(dark.page)).toBe('rgb(22, 20, 18)');
    await dark.page.getByRole('button', { name: 'Light' }).click();
    expect(await background(dark.page)).toBe('rgb(245, 245, 244)');
    await dark.page.close();
    expect(dark.troubles).toEqual([]);
  });

  it('fits a narrow window', async () => {
    const narrow = await openPage(browser, dashboard.url, { viewport: { width: 420, height: 800 } });
    await narrow.page.locator('.readouts[data-sample]').waitFor();
    expect(await narrow.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(await narrow.page.evaluate(TILES_THAT_COLLIDE)).toEqual([]);
    // Words as large as on a desk, and the controls in sight.
    const size = `document.querySelector('.topology .small').getBoundingClientRect().height`;
    expect(await narrow.page.evaluate(size)).toBeGreaterThan(12);
    await narrow.page.evaluate('scrollTo(0, 1500)');
    const controls = (await narrow.page.locator('.sticky').boundingBox())!;
    expect(controls.y).toBeGreaterThanOrEqual(0);
    expect(controls.y + controls.height).toBeLessThan(200);
    await narrow.page.close();
    expect(await page.evaluate(TILES_THAT_COLLIDE)).toEqual([]);
  });

  it('says when the lab is gone', async () => {
    await using brief = await RunningDashboard.start('-q', '2');
    const gone = await openPage(browser, brief.url);
    await gone.page.locator('.chart-legend', { hasText: 'QP 2' }).first().waitFor();
    await brief[Symbol.asyncDispose]();
    await gone.page.getByText('no connection; trying again').waitFor();
    await gone.page.close();
  });
});

function includes(settings: LabSample['settings'], wanted: Partial<LabSample['settings']>): boolean {
  return Object.entries(wanted).every(([name, value]) => settings[name as keyof typeof settings] === value);
}
