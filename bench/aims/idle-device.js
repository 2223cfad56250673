// @ts-check
/** A device with a queue pair that does nothing: `node idle-device.js ENGINE IO ADDRESS`. Ends with its parent or by a signal. */

import process from 'node:process';
import { openDevice } from '../../build/src/index.js';

const [engine, io, address] = process.argv.slice(2);
const device = await openDevice({
  address,
  engine: /** @type {'inline' | 'worker'} */ (engine),
  io: /** @type {'mmsg' | 'shm'} */ (io),
});
const pd = await device.createPd();
const cq = await device.createCq(64);
await pd.createQp({ sendCq: cq });
process.stderr.write('Ctrl-C ends it\n');
await new Promise((resolve) => {
  process.once('SIGINT', resolve);
  setInterval(() => {}, 3_600_000);
});
await device.close();
process.exit();
