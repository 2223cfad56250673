/**
 * A listener of rdma_cm for the interop suite: `node cm-acceptor.js ADDRESS PORT COUNT [in-turn]`. Accepts COUNT connections,
 * ends them (in-turn: each before it takes the next), as the server of ucmatose does, and prints how it went as JSON.
 */

import { ConnectionManager } from '../../../build/src/cm/connection-manager.js';
import { openDevice } from '../../../build/src/verbs/open-device.js';

const [address, port, count, order] = process.argv.slice(2);
const device = await openDevice({ address });
const cm = await ConnectionManager.open(device);
const cq = await device.createCq(64);
const pd = await device.createPd();
const listener = cm.listen(Number(port));
process.stderr.write('listening\n');
const states = [];
const served = [];
while (served.length < Number(count)) {
  const serving = serve(await listener.next());
  served.push(serving);
  if (order === 'in-turn') await (await serving).disconnect();
}
await Promise.all((await Promise.all(served)).map((connection) => connection.disconnect()));
process.stdout.write(`${JSON.stringify({ states, counters: cm.counters() })}\n`);
await cm.close();
await device.close();

async function serve(request) {
  const connection = await request.accept(await pd.createQp({ sendCq: cq, maxSendWr: 1, maxRecvWr: 1 }));
  states.push(connection.qp.state);
  return connection;
}
