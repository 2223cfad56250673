/** Test suites that need the rig, skipped with the reason where it cannot run. */
import { afterAll, beforeAll, describe } from 'vitest';
import { Rig, type RigOptions, type Wiring } from './rig.js';
import { buildRocev2 } from './rocev2.js';

/** `await describeOnRig(...)` at the top level of a test file. */
export async function describeOnRig(title: string, wiring: Wiring, body: () => void): Promise<void> {
  const refusal = await Rig.refusal(wiring);
  if (refusal !== undefined) console.warn(`skipped: ${title}: ${refusal}`);
  describe.skipIf(refusal !== undefined)(title, body);
}

/** One rig on a bridge for all tests of a suite, beside a build of what is there: booted before the first, stopped after the last. */
export async function describeWithRig(
  title: string,
  options: RigOptions,
  body: (rig: () => Rig) => void,
): Promise<void> {
  await describeOnRig(title, 'bridge', () => {
    let rig: Rig | undefined;
    beforeAll(async () => {
      await buildRocev2();
      rig = await Rig.start(options);
    });
    afterAll(() => rig?.stop());
    body(() => rig!);
  });
}
