/** The dashboard's lab costs nothing while nobody looks: its traffic ends, and goes on when somebody does. */

import { afterEach, describe, expect, it } from 'vitest';
import type { Lab } from '../../packages/dashboard/src/lab/lab.js';
import { eventually } from '../support/eventually.js';
import { isBuilt, isLinux } from './executable.js';

const BUILT = '../../build/packages/dashboard/src/lab/lab.js';

/** A whole day: it does not rest within a test. */
const DAY_NS = 86_400e9;
const GOES_ON = 'traffic continues: it was paused while no page was open';

describe.skipIf(!isBuilt || !isLinux)('a lab', () => {
  let lab: Lab | undefined;
  afterEach(() => lab?.close());

  async function openLab(restAfterNs: number): Promise<Lab> {
    const built = (await import(BUILT)) as { readonly Lab: typeof Lab };
    lab = new built.Lab(1, restAfterNs);
    await lab.open();
    return lab;
  }

  it('rests while nobody looks, and goes on for who comes', async () => {
    const at = await openLab(0);
    // Each look at its state is over at once: it rests before the next sample.
    const texts = () => at.documents.state().events.map(({ text }) => text);
    await eventually(() => texts().includes(GOES_ON));
    let samples = 0;
    const leave = at.subscribe((name) => {
      if (name === 'sample') samples++;
    });
    await eventually(() => samples > 2);
    expect(at.documents.state().samples.at(-1)!.linkBps).toBeGreaterThan(0);
    leave();
  });

  it('does not rest before its time', async () => {
    const at = await openLab(DAY_NS);
    await eventually(() => at.documents.state().samples.length > 4);
    expect(at.documents.state().events.map(({ text }) => text)).not.toContain(GOES_ON);
  });
});
