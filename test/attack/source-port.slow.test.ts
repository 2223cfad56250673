/**
 * A local user of another name sends from any UDP port of the peer's address; he knows QPN, PSN and key. The port of the peer is his alone: what
 * comes from another one is dropped and counted, and the honest WRITE that has the same PSN is executed.
 */

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Access,
  connect,
  listen,
  openDevice,
  type QueuePair,
  type RdmaDevice,
  type RoceError,
} from '../../src/index.js';
import { IpAddress } from '../../src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { RC_WRITE_ONLY } from '../../src/packet/opcode.js';
import { emitRoce, ICRC_BYTES } from '../../src/packet/roce.js';

const SERVER = '127.0.1.1';
const CLIENT = '127.0.1.2';
const FORGED = Buffer.alloc(64, 0xee);
const HONEST = Buffer.alloc(64, 0x11);

const devices: RdmaDevice[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  await Promise.all(devices.splice(0).map((device) => device.close()));
  for (const socket of sockets.splice(0)) socket.close();
});

async function device(address: string): Promise<RdmaDevice> {
  const opened = await openDevice({ address, udpPort: 0 });
  devices.push(opened);
  return opened;
}

/** What the attacker is supposed to know. */
interface Target {
  readonly device: RdmaDevice;
  readonly qpn: number;
  readonly addr: bigint;
  readonly rkey: number;
}

/** A socket of the attacker at the client's address, and how it forges WRITEs. */
async function attacker(target: Target): Promise<(psn: number) => Promise<void>> {
  const socket = createSocket('udp4');
  sockets.push(socket);
  socket.bind(0, CLIENT);
  await once(socket, 'listening');
  const { port } = socket.address();
  const { udpPort } = target.device.attributes;
  const flow = new IcrcFlow(IpAddress.parse(CLIENT), IpAddress.parse(SERVER), port, udpPort);
  return async (psn) => {
    const packet = emitRoce(
      {
        opcode: RC_WRITE_ONLY,
        psn,
        destQpn: target.qpn,
        vaHigh: Number(target.addr >> 32n),
        vaLow: Number(target.addr & 0xffffffffn),
        rkey: target.rkey,
        dmaLength: FORGED.length,
        ackReq: true,
      },
      FORGED,
    );
    const bytes = Buffer.concat([packet, Buffer.alloc(ICRC_BYTES)]);
    sealIcrc(flow, bytes, 0, bytes.length, 0, undefined);
    const received = target.device.counters().rx_packets;
    await new Promise((resolve) => socket.send(bytes, udpPort, SERVER, resolve));
    await expect.poll(() => target.device.counters().rx_packets).toBeGreaterThan(received);
  };
}

it.each(['dgram', 'mmsg'] as const)('nobody else can bind the port of a device with io %s', async (io) => {
  const opened = await openDevice({ address: SERVER, udpPort: 0, io }).catch((error: unknown) => {
    if (io === 'mmsg' && (error as RoceError).code === 'ERR_ROCE_UNSUPPORTED') return undefined; // It needs Linux and koffi.
    throw error;
  });
  if (opened === undefined) return;
  devices.push(opened);
  for (const address of [SERVER, '0.0.0.0']) {
    const socket = createSocket({ type: 'udp4', reuseAddr: true });
    sockets.push(socket);
    socket.bind(opened.attributes.udpPort, address);
    const [error] = await once(socket, 'error');
    expect(error.code).toBe('EADDRINUSE');
  }
});

describe('a connection between two of ours', () => {
  async function connected() {
    const server = await device(SERVER);
    const region = server.allocate(4096);
    const listener = await listen(server, { port: 0, region });
    const client = await device(CLIENT);
    const [accepted, connection] = await Promise.all([
      listener.accept(),
      connect(client, { host: SERVER, port: listener.port }),
    ]);
    const { addr, rkey } = connection.remote!;
    const forge = await attacker({ device: server, qpn: accepted.qp.qpn, addr, rkey });
    const nextPsn = async () => (await connection.qp.query()).sqPsn;
    const told: QueuePair[] = [];
    server.events.on('QP_SOURCE_PORT', (qp) => told.push(qp));
    return { server, region, accepted, connection, forge, nextPsn, told };
  }

  it('drops what comes from another port, even before the first packet of the peer', async () => {
    const { server, region, accepted, connection, forge, nextPsn, told } = await connected();
    await forge(await nextPsn());
    expect(server.counters().rx_drop_source_port).toBe(1);
    expect(region.every((byte) => byte === 0)).toBe(true);

    await connection.write(HONEST, 0);
    expect(region.subarray(0, 64).equals(HONEST)).toBe(true);
    await forge(await nextPsn());
    await connection.write(HONEST, 64);
    expect(region.subarray(64, 128).equals(HONEST)).toBe(true);
    expect(region.includes(FORGED)).toBe(false);

    expect(server.counters()).toMatchObject({ rx_drop_source_port: 2, duplicate_request: 0, rx_icrc_errors: 0 });
    expect(told).toEqual([accepted.qp]); // Once a connection.
  });

  it('is open to the attack when the program lets any port pass', async () => {
    const { server, region, accepted, connection, forge, nextPsn } = await connected();
    await accepted.qp.modify({ remoteSourcePort: 'any' });
    await forge(await nextPsn());
    expect(region.subarray(0, 64).equals(FORGED)).toBe(true);
    await connection.write(HONEST, 0); // Acknowledged,
    expect(region.includes(HONEST)).toBe(false); // and never executed.
    expect(server.counters()).toMatchObject({ rx_drop_source_port: 0, duplicate_request: 1 });
  });
});

/** Two queue pairs that were told of each other by other means: the port of the peer has to be learned. */
describe('a connection whose ports nobody told', () => {
  async function connected() {
    const ends = [];
    for (const address of [SERVER, CLIENT]) {
      const opened = await device(address);
      const pd = await opened.createPd();
      const cq = await opened.createCq(64);
      const qp = await pd.createQp({ sendCq: cq });
      const memory = opened.allocate(4096);
      const mr = await pd.regMr(memory, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
      ends.push({ device: opened, cq, qp, memory, mr });
    }
    const [server, client] = ends;
    for (const [own, peer] of [ends, [...ends].reverse()]) {
      const { address, udpPort } = peer.device.attributes;
      await own.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
      await own.qp.modify({
        state: 'RTR',
        av: { address, udpPort },
        pathMtu: 1024,
        destQpn: peer.qp.qpn,
        rqPsn: 100,
        maxDestRdAtomic: 1,
        minRnrTimer: 1,
      });
      const reliability = { timeout: 8, retryCnt: 3, rnrRetry: 3, maxRdAtomic: 1 };
      await own.qp.modify({ state: 'RTS', sqPsn: 100, ...reliability });
    }
    const { addr, rkey } = server.mr;
    const forge = await attacker({ device: server.device, qpn: server.qp.qpn, addr, rkey });
    const write = async (offset: number) => {
      client.memory.set(HONEST);
      const remoteAddr = addr + BigInt(offset);
      client.qp.postSend({ opcode: 'RDMA_WRITE', sges: [client.mr.sge(0, HONEST.length)], remoteAddr, rkey });
      return (await client.cq.next()).statusName;
    };
    return { server, client, forge, write };
  }

  it('learns the port from the first packet that it takes', async () => {
    const { server, forge, write } = await connected();
    expect(await write(0)).toBe('SUCCESS');
    await forge(101);
    expect(await write(64)).toBe('SUCCESS');
    expect(server.memory.subarray(64, 128).equals(HONEST)).toBe(true);
    expect(server.memory.includes(FORGED)).toBe(false);
    expect(server.device.counters().rx_drop_source_port).toBe(1);
  });

  it('does not learn it from what it does not take', async () => {
    const { server, forge, write } = await connected();
    for (const psn of [99, 101, 102, 5000]) await forge(psn);
    expect(await write(0)).toBe('SUCCESS');
    expect(server.memory.includes(FORGED)).toBe(false);
    expect(server.device.counters().rx_drop_source_port).toBe(0);
    await forge(101);
    expect(server.device.counters().rx_drop_source_port).toBe(1);
  });

  it('when the attacker comes first with everything right, the peer fails loudly: nothing of it is taken for done', async () => {
    const { server, forge, write } = await connected();
    const told = new Promise((resolve) => server.device.events.once('QP_SOURCE_PORT', resolve));
    await forge(100);
    expect(await write(64)).toBe('RETRY_EXC_ERR');
    expect(await told).toBe(server.qp);
    expect(server.device.counters().rx_drop_source_port).toBeGreaterThan(1);
    expect(server.memory.includes(HONEST)).toBe(false);
  });
});
