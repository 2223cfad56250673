/** Before the interop suite: install and build what the rig needs, so that no test's time limit has to cover it. */
import { Rig } from './rig.js';

export default async function prepareRig(): Promise<void> {
  if ((await Rig.refusal('dgram')) === undefined) await Rig.prepare();
}
