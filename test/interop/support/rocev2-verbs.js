/**
 * rigverbs (rig/guest/rigverbs.c) for our side: one RC, UC or UD queue pair with every number in the open. The same line over TCP, the same
 * operations (and `block:MS`), the same output, most of the same options, so that either side of a test can be either program:
 *
 *     node rocev2-verbs.js --address ADDRESS [options] -l PORT [operation ...]
 *
 * Prints `COUNTERS {json}` at its end. It listens; rigverbs connects with -c.
 */

import { parseArgs } from 'node:util';
import { FixedListener } from '../../../build/src/cm/fixed-listener.js';
import { Access, IpAddress, openDevice } from '../../../build/src/index.js';
import { VerbsOperations } from './verbs-operations.js';

const READY = Buffer.from('R');

const text = (short, fallback) => ({ type: 'string', short, ...(fallback !== undefined && { default: fallback }) });
const { values: options, positionals: operations } = parseArgs({
  allowPositionals: true,
  options: {
    address: { type: 'string' },
    /** Where the NIC runs, and its fault rules. */
    engine: { type: 'string', default: 'inline' },
    loss: { type: 'string' },
    listen: text('l'),
    type: text('q', 'rc'),
    pathMtu: text('m', '1024'),
    psn: text('p', '0x123456'),
    bufferBytes: text('b', '1048576'),
    receives: text('n', '64'),
    receiveBytes: text('r', '65536'),
    timeout: text('t', '16'),
    retries: text('k', '7'),
    rnrRetries: text('R', '7'),
    rnrTimer: text('T', '12'),
    depth: text('D', '16'),
    waitSeconds: text('w', '40'),
    qkey: text('Q', '0x11111111'),
    bufferAccess: text('a', 'rwa'),
    qpAccess: text('A', 'rwa'),
    carryOn: { type: 'boolean', short: 'e', default: false },
  },
});
const number = (name) => Number(options[name]);
const hex = (value, digits) => value.toString(16).padStart(digits, '0');

const device = await openDevice({
  address: options.address,
  engine: options.engine,
  ...(options.loss !== undefined && { loss: options.loss }),
});
const pd = await device.createPd();
const sendCq = await device.createCq(4096);
const recvCq = await device.createCq(4096);
const isUd = options.type === 'ud';
const qp = await pd.createQp({ type: options.type.toUpperCase(), sendCq, recvCq, maxSendWr: 1024, maxRecvWr: 1024 });
const buffer = await pd.regMr(number('bufferBytes'), Access.MW_BIND | accessFlags(options.bufferAccess));
const attributes = { state: 'INIT', pkeyIndex: 0, port: 1 };
await qp.modify(
  isUd ? { ...attributes, qkey: number('qkey') } : { ...attributes, accessFlags: accessFlags(options.qpAccess) },
);

const listener = await FixedListener.open(Number(options.listen));
process.stderr.write('listening\n');
const tcp = await listener.accept();
listener.close();
const peer = await exchangeLines();
await connect();
const own = { device, pd, qp, sendCq, recvCq, buffer, isUd };
const limits = {
  receives: number('receives'),
  receiveBytes: number('receiveBytes'),
  waitMs: 1000 * number('waitSeconds'),
};
const verbs = await VerbsOperations.create(own, peer, tcp, {
  ...limits,
  qkey: number('qkey'),
  access: accessFlags(options.bufferAccess),
  carriesOn: options.carryOn,
});
tcp.write(READY);
await tcp.read(1, 'ready byte');
for (const operation of operations) await verbs.run(operation);
await verbs.drain();
process.stdout.write(`OK\nCOUNTERS ${JSON.stringify(device.counters())}\n`);
await device.close();
tcp.abort(); // a peer that has died would not end it

function accessFlags(letters) {
  let flags = Access.LOCAL_WRITE;
  if (letters.includes('r')) flags |= Access.REMOTE_READ;
  if (letters.includes('w')) flags |= Access.REMOTE_WRITE;
  if (letters.includes('a')) flags |= Access.REMOTE_ATOMIC;
  return flags;
}

/** QPN PSN RKEY ADDRESS LENGTH GID, both ways. */
async function exchangeLines() {
  const gid = device.address.family === 4 ? `::ffff:${device.address.text}` : device.address.text;
  const numbers = [
    hex(qp.qpn, 6),
    hex(number('psn'), 6),
    hex(buffer.rkey, 8),
    hex(buffer.addr, 16),
    hex(buffer.length, 1),
  ];
  tcp.write(Buffer.from(`${[...numbers, gid].join(' ')}\n`));
  let line = '';
  while (!line.endsWith('\n')) line += (await tcp.read(1, "the peer's line")).toString('latin1');
  const [qpn, psn, rkey, remoteAddr, , address] = line.trim().split(' ');
  return {
    qpn: Number.parseInt(qpn, 16),
    psn: Number.parseInt(psn, 16),
    rkey: Number.parseInt(rkey, 16),
    remoteAddr: BigInt(`0x${remoteAddr}`),
    address: IpAddress.parse(address),
  };
}

async function connect() {
  if (isUd) {
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: number('psn') });
    return;
  }
  const path = { av: { address: peer.address }, pathMtu: number('pathMtu'), destQpn: peer.qpn, rqPsn: peer.psn };
  if (options.type === 'uc') {
    await qp.modify({ state: 'RTR', ...path });
    await qp.modify({ state: 'RTS', sqPsn: number('psn') });
    return;
  }
  await qp.modify({
    state: 'RTR',
    ...path,
    maxDestRdAtomic: number('depth'),
    minRnrTimer: number('rnrTimer'),
  });
  await qp.modify({
    state: 'RTS',
    sqPsn: number('psn'),
    timeout: number('timeout'),
    retryCnt: number('retries'),
    rnrRetry: number('rnrRetries'),
    maxRdAtomic: number('depth'),
  });
}
