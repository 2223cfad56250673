/**
 * A client of rdma_cm for the interop suite: `node cm-connector.js ADDRESS HOST PORT COUNT`. Connects and ends the connection COUNT times, one
 * after another, and prints how it went as JSON.
 */

import { ConnectionManager } from '../../../build/src/cm/connection-manager.js';
import { IpAddress } from '../../../build/src/packet/address.js';
import { openDevice } from '../../../build/src/verbs/open-device.js';

const [address, host, port, count] = process.argv.slice(2);
const device = await openDevice({ address });
const cm = await ConnectionManager.open(device);
const cq = await device.createCq(64);
const pd = await device.createPd();
const states = [];
for (let i = 0; i < Number(count); i++) {
  const qp = await pd.createQp({ sendCq: cq, maxSendWr: 1, maxRecvWr: 1 });
  const connection = await cm.connect(IpAddress.parse(host), Number(port), qp);
  states.push(qp.state);
  await connection.disconnect();
  await qp.close();
}
process.stdout.write(`${JSON.stringify({ states, counters: cm.counters() })}\n`);
await cm.close();
await device.close();
