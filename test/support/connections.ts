/** Connections between the two hosts of a pair, as `connect` and `listen` make them, without an exchange. */

import type { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { Connection } from '../../src/cm/connection.js';
import { makeParts, postReceives } from '../../src/cm/connection-parts.js';
import type { ControlConnection } from '../../src/cm/control-connection.js';
import type { Agreement } from '../../src/cm/exchange.js';
import { type RandomSource, randomInt } from '../../src/core/random.js';
import type { RdmaDevice } from '../../src/verbs/device.js';
import { connectQp } from './pair.js';

/** Two hosts in one virtual time. */
export interface TwoHosts {
  readonly events: EventQueue;
  readonly a: { readonly device: RdmaDevice };
  readonly b: { readonly device: RdmaDevice };
}

export interface PlayersOptions {
  readonly random: RandomSource;
  readonly mtu: number;
  readonly messageBytesMax: number;
  readonly receiveDepth: number;
  /** So long after side b has ended side a hears of it. */
  readonly newsNs: () => number;
}

/** The ends on sides a and b. */
export async function connectPlayers(
  pair: TwoHosts,
  { random, mtu, newsNs, ...options }: PlayersOptions,
): Promise<[Connection, Connection]> {
  const { a, b, events } = pair;
  const end = async ({ device }: TwoHosts['a']) => {
    const [parts] = await makeParts(device, options);
    return { parts, device, psn: randomInt(random, 0, 0xffffff) };
  };
  const [here, there] = [await end(a), await end(b)];
  let leave = () => {};
  const ended = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const control: ControlConnection = { isOpen: true, ended, close: async () => leave() };
  const close = async () => events.after(newsNs(), leave);
  const over = async (own: typeof here, peer: typeof here, its: ControlConnection) => {
    const { address } = peer.device.attributes;
    const recovery = 'go-back-n' as const;
    await connectQp(own.parts.qp, { address, qpn: peer.parts.qp.qpn, psn: peer.psn }, { psn: own.psn, mtu, recovery });
    postReceives(own.parts);
    const agreement: Agreement = {
      peer: address,
      remoteQpn: peer.parts.qp.qpn,
      mtu,
      recovery,
      sharesMemory: false,
      mapsRegion: false,
      region: undefined,
      messageBytesMax: options.messageBytesMax,
      purpose: {},
      destination: {},
    };
    return Connection.over(own.parts, its, agreement);
  };
  return [await over(here, there, control), await over(there, here, { ...control, close })];
}
