/** Test suites that need the rig, skipped with the reason where it cannot run. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { auditOf, expectClean } from '../../audit/capture-file.js';
import { type Capture, Rig, type RigOptions, type Wiring } from './rig.js';
import { buildRocev2 } from './rocev2.js';

/** `await describeOnRig(...)` at the top level of a test file. */
export async function describeOnRig(title: string, wiring: Wiring, body: () => void): Promise<void> {
  const refusal = await Rig.refusal(wiring);
  if (refusal !== undefined) console.warn(`skipped: ${title}: ${refusal}`);
  describe.skipIf(refusal !== undefined)(title, body);
}

export interface SuiteOptions extends RigOptions {
  /** A capture of the first guest's wire is audited when all tests have run; nothing else may capture then. */
  readonly isAudited?: boolean;
}

/** One rig on a bridge for all tests of a suite, beside a build of what is there: booted before the first, stopped after the last. */
export async function describeWithRig(
  title: string,
  { isAudited = false, ...options }: SuiteOptions,
  body: (rig: () => Rig) => void,
): Promise<void> {
  await describeOnRig(title, 'bridge', () => {
    let rig: Rig | undefined;
    let capture: Capture | undefined;
    beforeAll(async () => {
      await buildRocev2();
      rig = await Rig.start(options);
      // Behind the bridge, where the kernel has cut trains of datagrams into packets.
      if (isAudited) capture = await rig.capture({ interface: rig.guests[0].interface! });
    });
    afterAll(() => rig?.stop());
    body(() => rig!);
    test.runIf(isAudited)('both sides have kept the rules that a capture shows', async () => {
      expectClean(await auditOf(await capture!.stop()));
    });
  });
}
