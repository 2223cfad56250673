/** Makes the queue pair of a storage connection: our JSON exchange over TCP, whose connection then stands for the presence of the peer. */

import { randomInt } from 'node:crypto';
import type { ControlChannel } from '../../cm/control-channel.js';
import type { exchangeAsClient } from '../../cm/exchange.js';
import { initializeQp } from '../../cm/qp-parameters.js';
import { PSN_COUNT } from '../../packet/psn.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePairInit } from '../../verbs/queue-pair.js';
import type { SkRdmaParts } from '../sk/rdma-parts.js';
import type { FlowTerms } from './flow-options.js';

const MTU = 4096;

/** A protocol that is spoken on queue pairs of storage. */
export type StorageService = 'sk-rdma' | 'su-rdma' | 'su-stream';

/** A queue pair to be made, and what both sides must agree on. */
interface ChannelTerms {
  /** Where it is made. */
  readonly pd: ProtectionDomain;
  readonly init: Partial<QueuePairInit> & { readonly maxSendWr: number; readonly maxRecvWr: number };
  /** This side of the exchange of addresses. */
  readonly exchange: typeof exchangeAsClient;
  /** The protocol to be spoken on the queue pair. */
  readonly service: StorageService;
  readonly flow: FlowTerms;
  /** How long the peer may be silent; see {@link ExchangeOptions}. Default: as any connection. */
  readonly totalTimeout?: number;
}

/** What a channel of either side has to be told. */
interface Channel {
  fail(error: Error): void;
  close(): Promise<void>;
}

/** A queue pair that can receive, with its completion queues; or nothing of them. */
async function createParts(
  control: ControlChannel,
  pd: ProtectionDomain,
  init: Partial<QueuePairInit> & { readonly maxSendWr: number; readonly maxRecvWr: number },
): Promise<SkRdmaParts> {
  const made: Array<{ close(): Promise<void> }> = [];
  try {
    const sendCq = await pd.device.createCq(init.maxSendWr);
    made.push(sendCq);
    const recvCq = await pd.device.createCq(init.maxRecvWr);
    made.push(recvCq);
    const qp = await pd.createQp({ sendCq, recvCq, ...init });
    made.push(qp);
    await initializeQp(qp);
    return { pd, qp, sendCq, recvCq, clock: pd.device.clock, onClosed: () => control.close() };
  } catch (error) {
    for (const one of made.reverse()) await one.close().catch(() => {}); // The first error counts.
    throw error;
  }
}

/**
 * Creates a queue pair in the domain, hands it to `over`, which posts receives and gets ready for what comes, and connects it: the peer may
 * speak before this side knows that it can. The channel fails when the peer's process
 * goes away. When anything goes wrong everything is closed again but the domain.
 */
export async function connectChannel<C extends Channel>(
  control: ControlChannel,
  { pd, init, exchange, service, flow, totalTimeout }: ChannelTerms,
  over: (parts: SkRdmaParts) => Promise<C>,
): Promise<C> {
  const parts = await createParts(control, pd, init);
  const { qp } = parts;
  const channel = await over(parts);
  try {
    await exchange(control, {
      qp,
      psn: randomInt(PSN_COUNT),
      mtu: MTU,
      ...flow,
      ...(totalTimeout !== undefined && { totalTimeout }),
      purpose: { service },
      check: (theirs) => (theirs['service'] === service ? undefined : `the peer does not speak ${service}`),
    });
  } catch (error) {
    channel.fail(error as Error);
    await channel.close();
    throw error;
  }
  // Nothing more is said on this connection; that it ends is the message.
  control.receive(Number.POSITIVE_INFINITY).catch((error: Error) => channel.fail(error));
  return channel;
}
