// @ts-check
/** The program that is attacked: listens over TCP and RDMA CM, opens memory, sends back every message. As simple as the guide says. */

import { answerCalls } from './calls.js';

const settings = JSON.parse(process.argv[2]);
const { ConnectionManager, listen, openDevice } = await import(settings.api);

const device = await openDevice({
  address: settings.address,
  engine: settings.engine,
  ...(settings.http !== undefined && { estats: { http: settings.http } }),
});
const manager = await ConnectionManager.open(device);
const region = device.allocate(settings.regionBytes);
const options = { region, recovery: settings.recovery, timeout: settings.timeout };
const listeners = {
  tcp: await listen(device, { ...options, port: 0 }),
  cm: await listen(device, { region, manager, port: settings.cmPort }),
};

/** @type {Record<string, string>} */
const ended = {};
/** @type {any[]} */
const connections = [];
/** Messages that no honest peer sends. */
let forged = 0;

for (const [name, listener] of Object.entries(listeners)) {
  void accept(listener).then(
    () => (ended[name] = 'ended quietly'),
    (error) => (ended[name] = `${error.code ?? error.name}: ${error.message}`),
  );
}

async function accept(listener) {
  for await (const connection of listener) {
    connections.push(connection);
    void echo(connection)
      .catch(() => {})
      .finally(() => {
        connections.splice(connections.indexOf(connection), 1);
        return connection.close();
      })
      .catch(() => {});
  }
}

async function echo(connection) {
  for await (const { data } of connection) {
    if (data.subarray(0, 6).toString() === 'FORGED') forged++;
    else await connection.send(data);
  }
}

answerCalls({
  facts: () => ({ tcpPort: listeners.tcp.port, udpPort: device.attributes.udpPort, pid: process.pid }),
  /** The queue pair whose peer's is `qpn`. */
  async victim(qpn) {
    const connection = connections.find(({ agreement }) => agreement.remoteQpn === qpn);
    const { rqPsn, sqPsn } = await connection.qp.query();
    return { qpn: connection.qp.qpn, rqPsn, sqPsn };
  },
  memoryAt: ({ offset, length }) => region.subarray(offset, offset + length).toString('latin1'),
  state: () => ({
    ended,
    forged,
    connections: connections.length,
    rssMiB: process.memoryUsage().rss / 2 ** 20,
    counters: device.counters(),
    cm: manager.counters(),
    tcp: listeners.tcp.counters?.(),
  }),
});
