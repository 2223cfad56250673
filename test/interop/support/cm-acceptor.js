/**
 * A listener of rdma_cm for the interop suite: `node cm-acceptor.js ADDRESS PORT COUNT`. Accepts COUNT connections, ends them, as
 * the server of ucmatose does, and prints how it went as JSON.
 */

import { ConnectionManager } from '../../../dist/cm/connection-manager.js';
import { openDevice } from '../../../dist/verbs/open-device.js';

const [address, port, count] = process.argv.slice(2);
const device = await openDevice({ address });
const cm = await ConnectionManager.open(device);
const cq = await device.createCq(64);
const pd = await device.createPd();
const listener = cm.listen(Number(port));
process.stderr.write('listening\n');
const accepting = [];
while (accepting.length < Number(count)) {
  const request = await listener.next();
  accepting.push(pd.createQp({ sendCq: cq, maxSendWr: 1, maxRecvWr: 1 }).then((qp) => request.accept(qp)));
}
const connections = await Promise.all(accepting);
const states = connections.map(({ qp }) => qp.state);
await Promise.all(connections.map((connection) => connection.disconnect()));
process.stdout.write(`${JSON.stringify({ states, counters: cm.counters() })}\n`);
await cm.close();
await device.close();
