/**
 * Connects the queue pair of a storage connection by our JSON exchange over TCP, whose connection then signals the
 * peer's presence.
 */

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

export type StorageService = 'sk-rdma' | 'su-rdma' | 'su-stream';

interface ChannelTerms {
  readonly pd: ProtectionDomain;
  readonly init: Partial<QueuePairInit> & { readonly maxSendWr: number; readonly maxRecvWr: number };
  readonly exchange: typeof exchangeAsClient;
  readonly service: StorageService;
  readonly flow: FlowTerms;
  readonly totalTimeout?: number;
  /** Called when its memory is free. */
  readonly onClosed?: () => void;
}

interface Channel {
  fail(error: Error): void;
  close(): Promise<void>;
}

async function createParts(
  control: ControlChannel,
  pd: ProtectionDomain,
  init: Partial<QueuePairInit> & { readonly maxSendWr: number; readonly maxRecvWr: number },
  onClosed: () => void = () => {},
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
    const release = () => {
      onClosed();
      control.close();
    };
    return { pd, qp, sendCq, recvCq, clock: pd.device.clock, onClosed: release };
  } catch (error) {
    for (const one of made.reverse()) await one.close().catch(() => {});
    onClosed();
    throw error;
  }
}

/** The channel fails when the peer's process goes away. */
export async function connectChannel<C extends Channel>(
  control: ControlChannel,
  { pd, init, exchange, service, flow, totalTimeout, onClosed }: ChannelTerms,
  over: (parts: SkRdmaParts) => Promise<C>,
): Promise<C> {
  const parts = await createParts(control, pd, init, onClosed);
  const { qp } = parts;
  const channel = await over(parts).catch(async (error: unknown) => {
    for (const one of [qp, parts.recvCq, parts.sendCq]) await one.close().catch(() => {});
    parts.onClosed?.();
    throw error;
  });
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
  control.receive(Number.POSITIVE_INFINITY).catch((error: Error) => channel.fail(error));
  return channel;
}
