// @ts-check
/** What an idle connection holds: resident memory of a process of its own before and after it opens many. */

import { execFileSync } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';

const SELF = fileURLToPath(import.meta.url);
const COUNTS = [1, 10, 100, 1000];
const KIB = 1024;

/** Rows for the table: one for each way and number. */
export async function memoryPerConnection() {
  return ['queue pair', 'node:net socket'].flatMap((kind) =>
    COUNTS.map((count) => {
      const bytes = Number(
        execFileSync(process.execPath, ['--expose-gc', SELF, kind, String(count)], { encoding: 'utf8' }),
      );
      const kib = bytes / count / KIB;
      return {
        name: `${kind}, of ${count}`,
        median: kib,
        min: kib,
        max: kib,
        ratio: null,
        p99: null,
        cpuSecondsPerGib: null,
      };
    }),
  );
}

function usedBytes() {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Queue pairs of the smallest useful depth, connected, whose peers are here too: each holds what two do, of which half is reported. */
async function queuePairs(/** @type {number} */ count) {
  const { Access, openDevice } = await import('../../build/src/index.js');
  const ends = [];
  for (const address of ['127.53.201.1', '127.53.201.2']) {
    const device = await openDevice({ address, io: 'dgram' });
    const pd = await device.createPd();
    const cq = await device.createCq(4096);
    const create = () => pd.createQp({ sendCq: cq, maxSendWr: 16, maxRecvWr: 16, maxInlineBytes: 0 });
    ends.push({ device, create, qps: /** @type {import('../../build/src/index.js').QueuePair[]} */ ([]) });
  }
  const open = async () => {
    for (const end of ends) end.qps.push(await end.create());
    const [a, b] = ends.map(({ qps }) => qps[qps.length - 1]);
    for (const [own, peer, device] of /** @type {const} */ ([
      [a, b, ends[1].device],
      [b, a, ends[0].device],
    ])) {
      await own.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
      await own.modify({
        state: 'RTR',
        av: { address: device.address },
        pathMtu: 4096,
        destQpn: peer.qpn,
        rqPsn: 1,
        maxDestRdAtomic: 1,
        minRnrTimer: 12,
      });
      await own.modify({ state: 'RTS', sqPsn: 1, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
    }
  };
  await open(); // What is loaded and compiled on the way is no connection's.
  const before = usedBytes();
  for (let i = 0; i < count; i++) await open();
  return (usedBytes() - before) / 2;
}

async function sockets(/** @type {number} */ count) {
  const { once } = await import('node:events');
  const net = await import('node:net');
  /** @type {import('node:net').Socket[]} */
  const accepted = [];
  const server = net.createServer((socket) => accepted.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const own = [];
  const open = async () => {
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    own.push(socket);
  };
  await open();
  const before = usedBytes();
  for (let i = 0; i < count; i++) await open();
  while (accepted.length < count + 1) await new Promise(setImmediate);
  return (usedBytes() - before) / 2;
}

if (process.argv[1] === SELF) {
  const [, , kind, count] = process.argv;
  process.stdout.write(String(await (kind === 'queue pair' ? queuePairs : sockets)(Number(count))), () =>
    process.exit(),
  );
}
