/** Many runs of rping, one after the other, on two NICs that keep running. VERBS_RUNS: how many. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { missing, Rig } from './rig.js';

const RUNS = Number(process.env['VERBS_RUNS'] ?? 5);
const SECONDS_PER_RUN = 30;
const SERVER = '127.0.42.5';
const CLIENT = '127.0.42.6';

describe.skipIf(missing('rping').length > 0)('rping', () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await Rig.open(SERVER, CLIENT);
  });
  afterEach(() => rig.endPrograms());
  afterAll(() => rig?.close());

  it(`-C 100, ${RUNS} times`, { timeout: RUNS * SECONDS_PER_RUN * 1000 }, async () => {
    for (let run = 0; run < RUNS; run++) {
      const line = `-a ${SERVER} -C 100 -V`;
      for (const text of await rig.connected(SERVER, `rping -s ${line}`, CLIENT, `rping -c ${line}`)) {
        expect(text, `run ${run}`).not.toMatch(/fail|unexpected/i);
      }
    }
    expect([rig.nic(SERVER).objects, rig.nic(CLIENT).objects]).toEqual([0, 0]);
  });
});
