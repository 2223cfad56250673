/** Test suites that need the rig, skipped with the reason where it cannot run. */
import { describe } from 'vitest';
import { Rig, type Wiring } from './rig.js';

/** `await describeOnRig(...)` at the top level of a test file. */
export async function describeOnRig(title: string, wiring: Wiring, body: () => void): Promise<void> {
  const refusal = await Rig.refusal(wiring);
  if (refusal !== undefined) console.warn(`skipped: ${title}: ${refusal}`);
  describe.skipIf(refusal !== undefined)(title, body);
}
